//! Turns interned names into full paths.
//!
//! An entry is bytes and the id of a base: the directory they are relative to. Joining and normalising is done here, not in
//! the traced process. It is lexical: `.`, `..` and doubled slashes are removed, symbolic links stay as the program named them.

/// Bases of bases that are followed; a damaged arena may hold a circle.
const MAX_DEPTH: usize = 64;

/// Bytes of one name, and of all that a path is joined of, that are used: twice what the kernel takes for one path.
const PART_MAX: usize = 8 << 10;
const JOINED_MAX: usize = 16 << 10;

/// The full path of name `id`, `None` when the arena has no such name. `entry` gives base and bytes of an id.
pub(crate) fn resolve<'a>(entry: impl Fn(u32) -> Option<(u32, &'a [u8])>, id: u32) -> Option<Vec<u8>> {
    let entry = |id: u32| entry(id).map(|(base, bytes)| (base, &bytes[..bytes.len().min(PART_MAX)]));
    let (mut base, bytes) = entry(id)?;
    let (mut parts, mut length) = (vec![bytes], bytes.len());
    while !is_absolute(parts[parts.len() - 1]) && base != 0 && parts.len() < MAX_DEPTH {
        let Some((next, bytes)) = entry(base).filter(|(_, bytes)| length + bytes.len() <= JOINED_MAX) else { break };
        parts.push(bytes);
        length += bytes.len();
        base = next;
    }
    let alone = parts.len() == 1;
    if alone && stands_as_it_is(bytes) {
        return Some(bytes.to_vec());
    }
    let mut joined = Vec::with_capacity(parts.iter().map(|part| part.len() + 1).sum());
    for part in parts.iter().rev() {
        if !joined.is_empty() && !part.is_empty() {
            joined.push(b'/');
        }
        joined.extend_from_slice(part);
    }
    Some(normalise(&joined))
}

fn is_absolute(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'/')
}

/// Names that the kernel gives to things without a path: `pipe:[1]`, `socket:[2]`, `/memfd:x (deleted)`.
fn stands_as_it_is(bytes: &[u8]) -> bool {
    !bytes.contains(&b'/') || bytes.ends_with(b" (deleted)")
}

/// Takes `.`, `..` and empty parts out.
fn normalise(path: &[u8]) -> Vec<u8> {
    let absolute = is_absolute(path);
    let mut out: Vec<u8> = Vec::with_capacity(path.len());
    // Length of what `..` must not take away: parts that are `..` themselves.
    let mut fixed = 0;
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if out.len() > fixed => {
                let cut = out[fixed..].iter().rposition(|byte| *byte == b'/').map_or(fixed, |at| fixed + at);
                out.truncate(cut);
            }
            b".." if absolute => {}
            part => {
                if absolute || !out.is_empty() {
                    out.push(b'/');
                }
                out.extend_from_slice(part);
                if part == b".." {
                    fixed = out.len();
                }
            }
        }
    }
    if out.is_empty() {
        out.push(if absolute { b'/' } else { b'.' });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(entries: &[(u32, &[u8])], expected: Option<&str>) {
        let entry = |id: u32| entries.get((id as usize).checked_sub(1)?).copied();
        let found = resolve(entry, entries.len() as u32);
        assert_eq!(found.as_deref().map(|path| path.escape_ascii().to_string()), expected.map(str::to_owned));
    }

    #[test]
    fn names_become_paths() {
        check(&[], None);
        check(&[(0, b"/data/x")], Some("/data/x"));
        check(&[(0, b"/data//./y/../x/")], Some("/data/x"));
        check(&[(0, b"/../..")], Some("/"));
        check(&[(0, b"/home/u"), (1, b"data/x")], Some("/home/u/data/x"));
        check(&[(0, b"/home/u"), (1, b"../v")], Some("/home/v"));
        check(&[(0, b"/home/u"), (1, b"/etc/passwd")], Some("/etc/passwd"));
        check(&[(0, b"/home/u"), (1, b"")], Some("/home/u"));
        check(&[(0, b"/home/u"), (1, b".")], Some("/home/u"));
        check(&[(0, b"/"), (1, b"x")], Some("/x"));
        check(&[(0, b"/a"), (1, b"b"), (2, b"../c"), (3, b"d")], Some("/a/c/d"));
        check(&[(0, b"pipe:[17]")], Some("pipe:[17]"));
        check(&[(0, b"/memfd:x (deleted)")], Some("/memfd:x (deleted)"));
        check(&[(0, b"/tmp/a/../b (deleted)")], Some("/tmp/a/../b (deleted)"));
        check(&[(0, b"lone")], Some("lone"));
        check(&[(0, b"a/../../b")], Some("../b"));
        check(&[(0, b"../../a/..")], Some("../.."));
        check(&[(0, b"a/..")], Some("."));
        check(&[(0, b"/a\xff/..\xff")], Some("/a\\xff/..\\xff"));
        check(
            &[(1, b"x")],
            Some(
                "x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x",
            ),
        );
        check(&[(9, b"x/y")], Some("x/y"));
    }

    /// A damaged arena may hold names without end, in a circle.
    #[test]
    fn paths_are_bounded() {
        let long = vec![b'x'; 1 << 20];
        let path = resolve(|id| Some((id, &long)), 1).expect("a name");
        assert!(path.len() <= JOINED_MAX + MAX_DEPTH, "{}", path.len());
    }
}
