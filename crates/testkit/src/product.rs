//! Finding the `weft` under test: always the release build, which is what users get.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The `weft` command: `WEFT_BIN` if set, else what `tools/build.sh` makes, built once per test process.
///
/// # Panics
/// When `WEFT_BIN` names nothing, when the build fails, or when the build leaves no command or no library.
pub fn product() -> &'static Path {
    static PRODUCT: OnceLock<PathBuf> = OnceLock::new();
    PRODUCT.get_or_init(|| match std::env::var_os("WEFT_BIN") {
        Some(given) => {
            let path = std::fs::canonicalize(&given)
                .unwrap_or_else(|error| panic!("WEFT_BIN={}: {error}", Path::new(&given).display()));
            assert!(path.is_file(), "WEFT_BIN={} is not a file", path.display());
            path
        }
        None => build(),
    })
}

/// The root of the workspace.
pub fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("crates/testkit lies two levels below the workspace").to_owned()
}

fn build() -> PathBuf {
    let root = workspace();
    let script = root.join("tools/build.sh");
    // It prints where the product is, on a stdout that belongs to the test runner.
    let status = Command::new(&script).current_dir(&root).stdout(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("building the product failed ({status}): {}", script.display()),
        Err(error) => panic!("cannot start {}: {error}", script.display()),
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
    for name in ["weft", "libweft_preload.so", "libweft.so", "libdftracer_core.so", "libperfflow_runtime.so"] {
        let file = target.join("release").join(name);
        assert!(file.is_file(), "the build succeeded but left no {}", file.display());
    }
    target.join("release/weft")
}
