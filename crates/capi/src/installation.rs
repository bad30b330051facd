//! Finds the preload library and the command, relative to this library.

use std::path::{Path, PathBuf};

use weftline::front::c::place::own_path;
use weftline_session::LIBRARY_VARIABLE;

/// File name of the preload library.
pub(crate) const PRELOAD: &str = "libweft_preload.so";

/// From the directory of this library: a build tree and a wheel have both beside each other; an installation has `lib/libweft.so.0` and
/// `lib/weftline/libweft_preload.so`.
const PRELOAD_PLACES: [&str; 2] = ["", "weftline"];
/// From the directory of the preload library: a build tree, an installation, a wheel.
const WEFT_PLACES: [&str; 3] = ["weft", "../../bin/weft", "../bin/weft"];

/// What was found.
pub(crate) struct Installation {
    /// The library, or the program, that carries this code.
    pub(crate) own: PathBuf,
    pub(crate) preload: Option<PathBuf>,
    pub(crate) weft: Option<PathBuf>,
}

/// Looks for the rest of the installation.
pub(crate) fn find() -> Installation {
    let given = std::env::var_os(LIBRARY_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    beside(own_path(), given.as_deref())
}

fn beside(own: PathBuf, given: Option<&Path>) -> Installation {
    let directory = own.parent().unwrap_or(&own);
    let preload = match given {
        Some(given) => given.canonicalize().ok(),
        None => PRELOAD_PLACES.iter().find_map(|place| directory.join(place).join(PRELOAD).canonicalize().ok()),
    };
    let around = preload.as_deref().and_then(Path::parent).unwrap_or(directory);
    let weft =
        WEFT_PLACES.iter().find_map(|place| around.join(place).canonicalize().ok().filter(|path| path.is_file()));
    Installation { own, preload, weft }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Makes the files, and says what a library finds of them, relative to their root.
    fn check(files: &[&str], own: &str, preload: Option<&str>, weft: Option<&str>) {
        let root = tempfile::tempdir().expect("a temporary directory");
        let base = root.path().canonicalize().expect("it is there");
        for file in files.iter().chain([&own]) {
            let path = base.join(file);
            fs::create_dir_all(path.parent().expect("below the root")).expect("made");
            fs::write(path, "").expect("written");
        }
        let found = beside(base.join(own), None);
        let shown =
            |path: Option<PathBuf>| path.map(|path| path.strip_prefix(&base).expect("below the root").to_owned());
        assert_eq!(shown(found.preload).as_deref(), preload.map(Path::new), "{files:?}");
        assert_eq!(shown(found.weft).as_deref(), weft.map(Path::new), "{files:?}");
    }

    #[test]
    fn every_layout_is_known() {
        let (preload, weft) = (Some("lib/weftline/libweft_preload.so"), Some("bin/weft"));
        let installed = ["bin/weft", "lib/weftline/libweft_preload.so"];
        check(&installed, "lib/libweft.so.0", preload, weft);
        let built = ["release/weft", "release/libweft_preload.so"];
        check(&built, "release/libweft.so", Some("release/libweft_preload.so"), Some("release/weft"));
        let wheel = ["weftline/bin/weft", "weftline/lib/libweft_preload.so"];
        check(&wheel, "weftline/lib/libweft.so", Some("weftline/lib/libweft_preload.so"), Some("weftline/bin/weft"));
        check(&[], "home/program", None, None);
        check(&["home/weft/readme"], "home/program", None, None);
    }
}
