//! Things that a run does not have: links, pipes, directories in the place of files, files with odd names.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Role;
use crate::hostile::sandbox::{STEM, Sandbox, directory, file};
use crate::random::Random;

/// Plants something in the place of a file, or where `weft` would make one; what, in words.
pub(super) fn plant(random: &mut Random, sandbox: &Sandbox, files: &[(Role, PathBuf)]) -> String {
    let run = sandbox.run();
    if random.percent(15) {
        return odd_name(random, &run);
    }
    let wanted = [
        ".weft".to_owned(),
        ".weft/index".to_owned(),
        ".weft/index/lock".to_owned(),
        ".weft/index/index.json".to_owned(),
        ".weft/verdict.json".to_owned(),
        "run.json".to_owned(),
        "run.d".to_owned(),
        ".live".to_owned(),
        format!(".live/{STEM}"),
        format!(".live/{STEM}.done"),
        format!(".live/{STEM}/lock"),
        format!(".live/{STEM}/journal"),
        format!(".live/{STEM}/settings"),
        format!(".live/{STEM}/a300"),
        format!("run.d/{STEM}.json"),
        format!("run.d/{STEM}.live"),
        format!("run.d/{STEM}.room"),
        "run.d/zz-1-2.live".to_owned(),
        format!(".{STEM}.tail"),
        format!("{STEM}.samples.pfw.gz"),
        "manifest.json".to_owned(),
    ];
    let path = match files {
        [] => run.join(random.one_of(&wanted)),
        _ if random.percent(50) => run.join(random.one_of(&wanted)),
        files => random.one_of(files).1.clone(),
    };
    if !path.parent().is_some_and(Path::is_dir) {
        return "nothing".to_owned();
    }
    clear_away(&path);
    let shown = path.strip_prefix(&run).unwrap_or(&path).display().to_string();
    let targets = sandbox.targets();
    let target = random.one_of(&targets).clone();
    let what = match random.below(8) {
        0..3 => symlink(&target, &path).map(|()| format!("a link to {}", target.display())),
        3 => symlink(&path, &path).map(|()| "a link to itself".to_owned()),
        4 => symlink(random.one_of(&["/dev/zero", "/dev/full", "/dev/null", "/proc/self/mem", "."]), &path)
            .map(|()| "a link to a device".to_owned()),
        5 => {
            let made = Command::new("mkfifo").arg(&path).status();
            assert!(made.is_ok_and(|status| status.success()), "mkfifo {}", path.display());
            Ok("a pipe".to_owned())
        }
        6 => {
            directory(&path);
            if random.percent(50) {
                file(&path.join("stranger"), b"x");
            }
            Ok("a directory".to_owned())
        }
        _ => fs::hard_link(sandbox.path("decoy/thesis.tex"), &path)
            .map(|()| "a second name of a file outside".to_owned()),
    };
    format!("{shown}: {}", what.unwrap_or_else(|error| error.to_string()))
}

/// Takes away what lies there. Only in the sandbox, and never through a link.
fn clear_away(path: &Path) {
    let _ = match fs::symlink_metadata(path) {
        Ok(data) if data.is_dir() => fs::remove_dir_all(path),
        _ => fs::remove_file(path),
    };
}

/// Files that are called as no run calls them, or that are very many.
fn odd_name(random: &mut Random, run: &Path) -> String {
    let names: [&[u8]; 8] = [
        b"\n.pfw.gz",
        b"\xff\xfe.pfw",
        b"-rf.pfw.gz",
        b"..pfw.gz",
        b"a b;$(x).pfw.gz",
        b"\x1b[2J.json",
        b".pfw",
        b"*.pfw.gz",
    ];
    let name = match random.below(10) {
        8 => [vec![b'n'; 240], b".pfw.gz".to_vec()].concat(),
        9 => return many(random, run),
        index => names[index as usize].to_vec(),
    };
    let path = run.join(std::ffi::OsStr::from_bytes(&name));
    const CONTENTS: [&[u8]; 5] = [b"", b"[\n{}\n", b"\x1f\x8b\x08", b"{\"traceEvents\":[", b"\0\0\0\0"];
    let content = *random.one_of(&CONTENTS);
    file(&path, content);
    if random.percent(20) {
        // Sparse; nobody may read all of it.
        let _ = File::options().write(true).open(&path).and_then(|file| file.set_len(1 << 40));
    }
    format!("a file {:?}", String::from_utf8_lossy(&name))
}

fn many(random: &mut Random, run: &Path) -> String {
    let live = run.join(".live").join(STEM);
    if random.percent(50) && live.is_dir() {
        for number in 0..2000 {
            file(&live.join(format!("a{}", 400 + number)), b"");
        }
        return "2000 empty arenas".to_owned();
    }
    let deep: PathBuf = std::iter::repeat_n("deep", 60).collect();
    directory(&run.join(deep));
    "directories in directories".to_owned()
}
