//! Optional parts of an installation: the list of `weft doctor --parts`, the end of the installer's output, and the message of a verb without its part.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use weftline_testkit::Scratch;
use weftline_testkit::product::{product, workspace};

const LIBRARY: &str = "libweft_preload.so";
const KERNEL: &str = "ok   --kernel: built in; needs root, or CAP_BPF and CAP_PERFMON";

/// Makes an installation of the files named, `weft` among them, and compares what it lists; `ROOT` stands for its directory.
fn check(weft: &str, files: &[&str], query: &str, weave: &str) {
    let scratch = Scratch::new("parts");
    let root = scratch.dir("root");
    for file in files.iter().chain([&weft]) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        if file == &weft {
            fs::copy(product(), &path).expect("a copy of weft");
        } else {
            fs::write(&path, "#!/bin/sh\necho asked \"$@\"\n").expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
        }
    }
    let here = |text: &str| text.replace("ROOT", &root.to_string_lossy());
    let listed = weft_with(&root.join(weft), &["doctor", "--parts"]);
    assert_eq!(text(&listed.stdout), here(&format!("{query}\n{KERNEL}\n{weave}\n")), "{files:?}");
    assert!(listed.status.success(), "a missing part is no failure");

    let asked = weft_with(&root.join(weft), &["query", "--schema"]);
    match query.strip_prefix("note weft query: weft-sql is not installed; ") {
        Some(remedy) => {
            let says = format!("weft: weft-sql is not installed; {remedy}\n");
            assert_eq!((asked.status.code(), text(&asked.stderr)), (Some(1), here(&says)), "{files:?}");
        }
        None => assert_eq!(text(&asked.stdout), "asked --schema --\n", "{files:?}: {}", text(&asked.stderr)),
    }
}

/// Nothing of this machine counts.
fn weft_with(weft: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(weft);
    command.args(words).env_clear().env("PATH", "/nonexistent").output().expect("weft runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_way_of_installing_has_its_own_commands() {
    let setup = "note weft weave: no plugin for clang; `weft weave --setup` adds it";
    let package = ["s/weftline/_command.py", "s/weftline/lib/weftline/libweft_preload.so"];
    check(
        "release/weft",
        &[&format!("release/{LIBRARY}")],
        "note weft query: weft-sql is not installed; `make sql` adds it",
        "note weft weave: no plugin for clang; `make weave` adds it",
    );
    check(
        "release/weft",
        &[&format!("release/{LIBRARY}"), "release/weft-sql", "weave/9/libweft_weave.so", "weave/19/libweft_weave.so"],
        "ok   weft query: answered by ROOT/release/weft-sql",
        "ok   weft weave: plugins for clang 9, 19",
    );
    check(
        "p/bin/weft",
        &[&format!("p/lib/weftline/{LIBRARY}"), "p/lib/weftline/weave/build/other.so"],
        "note weft query: weft-sql is not installed; `make sql install PREFIX=ROOT/p` in a checkout adds it",
        setup,
    );
    check(
        "s/weftline/bin/weft",
        &package,
        "note weft query: weft-sql is not installed; `pip install weftline-sql` adds it",
        setup,
    );
    check(
        "s/weftline/bin/weft",
        &[package[0], package[1], "s/weftline_sql/bin/weft-sql"],
        "ok   weft query: answered by ROOT/s/weftline_sql/bin/weft-sql",
        setup,
    );
}

#[test]
fn the_installer_ends_with_what_is_in() {
    let scratch = Scratch::new("parts");
    let prefix = scratch.dir("prefix");
    let installed = Command::new(workspace().join("tools/install.sh")).arg(product()).arg(&prefix).output();
    let installed = installed.expect("the installer runs");
    let listed = Command::new(prefix.join("bin/weft")).args(["doctor", "--parts"]).output().expect("weft runs");
    let (said, parts) = (text(&installed.stdout), text(&listed.stdout));
    assert!(parts.lines().count() == 3 && said.ends_with(&parts), "{said}\n{parts}{}", text(&installed.stderr));
    for program in fs::read_dir(prefix.join("bin")).expect("bin").flatten() {
        let symbols = Command::new("nm").arg(program.path()).output().expect("nm runs");
        assert_eq!(text(&symbols.stdout), "", "{:?} has its symbols", program.path());
    }
}
