//! A program that attacks its own shared memory while `weft run` drains it: `scribbler` of the suite under the oracle. It has the rights of the
//! user who traces it, or those of another user in root's shared run.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use weftline_format::reader;

use super::bounded::Bounds;
use super::sandbox::{Sandbox, differences};
use crate::product::product;
use crate::table::plain;

/// Ways to attack.
pub const WAYS: [&str; 10] = [
    // Memory: random words, random fields, and fields that make sense to whoever looks.
    "noise",
    "fields",
    "processes",
    "segments",
    "names",
    "control",
    // Files: an arena cut short, all of them gone, links in their place, twenty thousand more.
    "cut",
    "delete",
    "links",
    "flood",
];

/// More that a program of another user may try against root's supervisor: to see what is not its own, to have others use what is, to hinder that its files are opened, and to ask for
/// more than there is. It says itself what it should not have been able to do, by another status.
pub const WAYS_OF_OTHERS: [&str; 4] = ["spy", "offer", "hold", "ask"];

/// Whose rights the program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attacker {
    /// Those of the user who traces it.
    Own,
    /// Those of the user who has nothing; root traces it in a shared run.
    Nobody,
}

/// The status that the program ends with, whatever happens to it.
const STATUS: i32 = 7;

/// A shell of root's, traced, that starts programs of root's while its child, another user's program, attacks. None of them may fail.
const AS_NOBODY: [&str; 4] = [
    "/bin/sh",
    "-c",
    r#"setpriv --reuid 65534 --regid 65534 --clear-groups "$@" &
        while kill -0 $! 2> /dev/null; do /bin/true || exit 8; done
        wait $!"#,
    "sh",
];

/// Lets the program attack in one way; what was wrong.
pub fn attack(program: &Path, way: &str, seed: u64, parent: &Path, attacker: Attacker) -> Option<String> {
    let sandbox = Sandbox::within(parent);
    let run = sandbox.run();
    // Not one of the places that must not change.
    let truth = sandbox.path("cache/told/truth");
    for (name, mode) in [("cache", 0o711), ("cache/told", 0o777)] {
        fs::create_dir_all(sandbox.path(name)).expect("made");
        fs::set_permissions(sandbox.path(name), fs::Permissions::from_mode(mode)).expect("set");
    }
    let weft = |words: &[&str]| {
        let mut command: Vec<OsString> = vec![product().into()];
        command.extend(words.iter().map(Into::into));
        command
    };
    let arenas = if seed.is_multiple_of(2) { "disk" } else { "memory" };
    let mut command = weft(&["run", "-q", "--arenas", arenas, "-o"]);
    command.push(run.clone().into());
    match attacker {
        Attacker::Own => command.push("--".into()),
        Attacker::Nobody => {
            command.extend(["--share", "--"].map(Into::into));
            command.extend(AS_NOBODY.map(Into::into));
        }
    }
    command.push(program.into());
    command.extend([way.into(), seed.to_string().into(), truth.clone().into(), sandbox.path("decoy").into()]);
    let before = sandbox.snapshot();
    let ended = sandbox.command(&command, &Bounds::TRACING);
    let mut fault = ended.fault(&Bounds::TRACING);
    if fault.is_none() && ended.code != Some(STATUS) {
        fault = Some(format!("weft run ended with {:?}: {}", ended.code, ended.stderr));
    }
    for words in [&["check"][..], &["info"], &["report", "--threads", "2"]] {
        if fault.is_some() {
            break;
        }
        let mut command = weft(words);
        command.push(run.clone().into());
        let ended = sandbox.command(&command, &Bounds::READING);
        fault = ended.fault(&Bounds::READING).map(|fault| format!("afterwards, weft {}: {fault}", words[0]));
        // What a program writes into its own records cannot be told from what it did. A file that is cut or gone can.
        if fault.is_none()
            && words == ["check"]
            && ["cut", "delete", "links", "spy", "hold"].contains(&way)
            && ended.code == Some(0)
        {
            fault = silent_loss(&run, &truth);
        }
    }
    let changed = differences(&before, &sandbox.snapshot());
    if !changed.is_empty() {
        fault = Some(format!("changed outside the run: {}", changed.join("; ")));
    }
    fault.map(|fault| format!("{way} by {attacker:?}, seed {seed}: {fault}; kept in {}", sandbox.keep().display()))
}

/// Calls that had returned, are not in the trace, and are not missed.
fn silent_loss(run: &Path, truth: &Path) -> Option<String> {
    let calls: usize = fs::read_to_string(truth).ok()?.parse().ok()?;
    let seen = reader::read_run(run)
        .map_or(0, |trace| trace.events.iter().filter(|event| plain(&event.name) == "pread").count());
    (seen < calls).then(|| format!("weft check calls it complete, with {seen} of {calls} calls"))
}
