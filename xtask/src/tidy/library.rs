//! Checks that the injected library needs nothing but glibc, and an old one.

use super::Finding;
use crate::repo;

/// The newest glibc version whose symbols may be used (CentOS 7, manylinux2014).
const NEWEST_GLIBC: [u32; 2] = [2, 17];
/// Libraries that are in every glibc process already.
const NEEDED: [&str; 3] = ["libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"];

pub(super) fn check() -> Result<Vec<Finding>, String> {
    let library = repo::release_dir().join("libweft_preload.so");
    if !library.exists() {
        return Err(format!("{} is missing; `make build` makes it", repo::shown(&library)));
    }
    let path = library.display().to_string();
    let symbols = repo::output("objdump", &["-T", &path])?;
    let headers = repo::output("objdump", &["-p", &path])?;
    let shown = repo::shown(&library);
    Ok(too_new(&symbols).chain(foreign(&headers)).map(|message| Finding::of(&shown, message)).collect())
}

/// Undefined symbols of a glibc newer than allowed, from `objdump -T`.
fn too_new(symbols: &str) -> impl Iterator<Item = String> {
    symbols.lines().filter(|line| line.contains("*UND*")).filter_map(|line| {
        let version = line.split("GLIBC_").nth(1)?.split([')', ' ']).next()?;
        let numbers: Vec<u32> = version.split('.').map_while(|part| part.parse().ok()).collect();
        let name = line.split_whitespace().last()?;
        (numbers.as_slice() > NEWEST_GLIBC.as_slice() && !is_patch_of_newest(&numbers))
            .then(|| format!("{name} needs GLIBC_{version}, newer than {}.{}", NEWEST_GLIBC[0], NEWEST_GLIBC[1]))
    })
}

fn is_patch_of_newest(numbers: &[u32]) -> bool {
    numbers.starts_with(&NEWEST_GLIBC)
}

/// Needed libraries that a program may not have, from `objdump -p`.
fn foreign(headers: &str) -> impl Iterator<Item = String> {
    headers.lines().filter_map(|line| {
        let name = line.trim().strip_prefix("NEEDED")?.trim();
        (!NEEDED.contains(&name)).then(|| format!("needs {name}, which a program may not have"))
    })
}

#[cfg(test)]
mod tests {
    use super::{foreign, too_new};

    #[test]
    fn newer_symbols_are_named() {
        let symbols = "\
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.2.5) open64
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.17) clock_gettime
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.33) stat
0000000000000000  w   D  *UND*\t0000000000000000  Base        __gmon_start__
0000000000001000 g    DF .text\t0000000000000010  Base        open
";
        assert_eq!(too_new(symbols).collect::<Vec<_>>(), ["stat needs GLIBC_2.33, newer than 2.17"]);
    }

    #[test]
    fn foreign_libraries_are_named() {
        let headers = "Dynamic Section:\n  NEEDED               libc.so.6\n  NEEDED               libgcc_s.so.1\n";
        assert_eq!(foreign(headers).collect::<Vec<_>>(), ["needs libgcc_s.so.1, which a program may not have"]);
    }
}
