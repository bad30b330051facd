//! Changes to trace files: members get other headers, another order, other texts.

use std::path::Path;
use std::sync::OnceLock;

use weftline_format::member::{self, Deflater};

use super::json::text;
use super::{number, open};
use crate::hostile::sandbox::Sandbox;
use crate::random::Random;

/// Changes a trace file; nothing when it is no file any more.
pub(super) fn change(random: &mut Random, sandbox: &Sandbox, path: &Path) -> Option<String> {
    open(path)?;
    let bytes = std::fs::read(path).ok()?;
    let mut members: Vec<Vec<u8>> = member::walk(&bytes).map(|(range, _)| bytes[range].to_vec()).collect();
    if members.is_empty() {
        return None;
    }
    let at = random.below(members.len() as u64) as usize;
    let what = match random.below(10) {
        0..3 => {
            let (name, offset, size) = *random.one_of(&[("count", 20, 4), ("size", 24, 8), ("sequence", 32, 8)]);
            let value = number(random);
            members[at][offset..offset + size].copy_from_slice(&value.to_le_bytes()[..size]);
            format!("{name} of member {at} is {value:#x}")
        }
        3 => {
            members.remove(at);
            format!("without member {at}")
        }
        4 => {
            let copies = 1 + random.below(1000) as usize;
            let copy = members[at].clone();
            members.splice(at..at, std::iter::repeat_n(copy, copies));
            format!("member {at} {copies} times more")
        }
        5 => {
            let other = random.below(members.len() as u64) as usize;
            members.swap(at, other);
            format!("members {at} and {other} exchanged")
        }
        6 => {
            let name = members.len().to_string();
            members.push(bomb(random.below(3) as usize).to_vec());
            format!("a text of 250 MiB as member {name}")
        }
        _ => {
            let sequence = member::parse_header(&members[at]).ok()?.seq;
            let mut lines = member::inflate_member(&members[at]).ok()?;
            let what = change_text(random, sandbox, &mut lines);
            members[at] = sealed(&lines, sequence);
            format!("{what} in member {at}")
        }
    };
    std::fs::write(path, members.concat()).ok()?;
    Some(what)
}

fn sealed(text: &[u8], sequence: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let count = text.iter().filter(|byte| **byte == b'\n').count();
    member::seal(text, count as u32, sequence, &mut out, &mut Deflater::new());
    out
}

/// Members that are small and hold much: spaces, one line without end, lists in lists.
fn bomb(kind: usize) -> &'static [u8] {
    static BOMBS: [OnceLock<Vec<u8>>; 3] = [const { OnceLock::new() }; 3];
    BOMBS[kind].get_or_init(|| {
        let byte = [b' ', b'x', b'['][kind];
        sealed(&vec![byte; 250 << 20], 7)
    })
}

/// Changes the text of a member; what, in words.
fn change_text(random: &mut Random, sandbox: &Sandbox, lines: &mut Vec<u8>) -> String {
    let at = random.below(lines.len().max(1) as u64) as usize;
    let mut splice = |at: usize, end: usize, with: &[u8]| drop(lines.splice(at..end, with.iter().copied()));
    match random.below(7) {
        // A number becomes another one.
        0..3 => {
            let digit = |byte: &u8| byte.is_ascii_digit();
            let Some(start) = lines[at..].iter().position(digit).map(|found| at + found) else {
                return "nothing".into();
            };
            let end = lines[start..].iter().position(|byte| !digit(byte)).map_or(lines.len(), |found| start + found);
            let value = match random.below(5) {
                0 => "-1".to_owned(),
                1 => "1e400".to_owned(),
                2 => "9".repeat(40),
                3 => format!("\"{}\"", number(random)),
                _ => number(random).to_string(),
            };
            lines.splice(start..end, value.bytes());
            format!("the number at {start} is {value}")
        }
        3 => {
            splice(at, at, &vec![b'['; 1 << (4 + random.below(14))]);
            format!("lists at {at}")
        }
        4 => {
            let long = random.one_of(&[b'x', b'\\', b'"', 0xff, 0]);
            splice(at, at, &vec![*long; 1 << random.below(23)]);
            format!("many of {long:#x} at {at}")
        }
        5 => {
            let line = format!(
                "{{\"name\":{0:?},\"cat\":\"POSIX\",\"ph\":\"X\",\"pid\":{1},\"tid\":{2},\"ts\":{3},\"dur\":{4},\"args\":{{\"fhash\":{0:?},\"ret\":{5},\"size\":{6}}}}}\n",
                text(random, sandbox),
                number(random),
                number(random),
                number(random),
                number(random),
                number(random),
                number(random)
            );
            let end = lines.iter().position(|byte| *byte == b'\n').map_or(lines.len(), |end| end + 1);
            lines.splice(end..end, line.bytes());
            "a line more".to_owned()
        }
        _ => {
            lines.truncate(at);
            format!("nothing behind {at}")
        }
    }
}
