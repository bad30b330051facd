//! What a compiler's command line does: does it compile something that can be woven, does it link?
//!
//! Build systems call a compiler for many things: to ask its version, to preprocess, to assemble, to link objects. Flags of the plugin
//! belong only where code is compiled, the runtime library only where something is linked; everywhere else the
//! compiler must see exactly what it was given.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

/// What a command line does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Something is compiled to an object, to assembly or to LLVM's own code.
    pub compiles: bool,
    /// Whether something is linked, and how.
    pub links: Linking,
    /// Index of a `--` behind which all words are files: flags must stand before it.
    pub files_from: Option<usize>,
}

/// Is a program or library made?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linking {
    /// Neither.
    #[default]
    No,
    /// With shared libraries.
    Dynamic,
    /// With `-static`: no shared library can take part.
    Static,
}

/// Options whose value is the next word.
const WITH_VALUE: &[&str] = &[
    "-o",
    "-I",
    "-D",
    "-U",
    "-L",
    "-l",
    "-x",
    "-A",
    "-B",
    "-F",
    "-G",
    "-T",
    "-b",
    "-e",
    "-u",
    "-z",
    "-include",
    "-include-pch",
    "-imacros",
    "-isystem",
    "-isystem-after",
    "-idirafter",
    "-iquote",
    "-iprefix",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-iwithsysroot",
    "-isysroot",
    "-iframework",
    "-ivfsoverlay",
    "-MF",
    "-MT",
    "-MQ",
    "-MJ",
    "-Xclang",
    "-Xlinker",
    "-Xassembler",
    "-Xpreprocessor",
    "-Xanalyzer",
    "-Xcuda-fatbinary",
    "-Xcuda-ptxas",
    "-Xopenmp-target",
    "-mllvm",
    "-target",
    "--target",
    "--sysroot",
    "--param",
    "-arch",
    "-framework",
    "-aux-info",
    "-wrapper",
    "-working-directory",
    "-gcc-toolchain",
    "-serialize-diagnostics",
    "--serialize-diagnostics",
    "-rpath",
    "-Tbss",
    "-Tdata",
    "-Ttext",
    "-main-file-name",
    "-dumpbase",
    "-dumpbase-ext",
    "-dumpdir",
    "-specs",
    "--config",
    "-mthread-model",
    "-fmodule-file",
    "-install_name",
    "-current_version",
    "-compatibility_version",
    "-undefined",
    "-resource-dir",
];

/// Options after which nothing is compiled to code.
const ONLY_LOOKING: &[&str] = &[
    "-E",
    "-M",
    "-MM",
    "-fsyntax-only",
    "--analyze",
    "--version",
    "-version",
    "-dumpversion",
    "-dumpmachine",
    "-dumpspecs",
    "--help",
    "-help",
    "--help-hidden",
    "-cc1",
    "-cc1as",
    "--preprocess",
    "-emit-ast",
    "-module-file-info",
    "-verify-pch",
];
/// The same, by how they begin.
const ONLY_LOOKING_PREFIXES: &[&str] = &["-print-", "--print-", "--help=", "-emit-ast"];
/// Options after which nothing is linked.
const NOT_LINKING: &[&str] = &["-c", "-S", "--compile", "--assemble", "-r", "--precompile", "-emit-merged-ifs"];
/// File names whose code is compiled by LLVM.
const CODE: &[&str] = &[
    "c", "i", "cc", "cp", "cxx", "cpp", "c++", "C", "CC", "CPP", "CXX", "ii", "m", "mi", "mm", "M", "mii", "cppm",
    "ccm", "cxxm", "c++m", "cu", "cui", "hip", "ll", "bc",
];
/// Languages of `-x` whose code is compiled by LLVM.
const LANGUAGES: &[&str] = &[
    "c",
    "c++",
    "objective-c",
    "objective-c++",
    "cpp-output",
    "c++-cpp-output",
    "objective-c-cpp-output",
    "objective-c++-cpp-output",
    "c++-module",
    "cuda",
    "hip",
    "ir",
    "cuda-cpp-output",
];
/// File names of headers: alone they are precompiled, and nothing is linked.
const HEADERS: &[&str] = &["h", "H", "hh", "hp", "hxx", "hpp", "HPP", "h++", "tcc"];
/// Response files may name others; a file that names itself must end somewhere.
const DEEPEST: u32 = 8;

/// Looks at the words behind the compiler's name.
pub fn work(words: &[OsString]) -> Work {
    let files_from = words.iter().position(|word| word == "--");
    let mut all = Vec::new();
    for word in words {
        expand(word, &mut all, DEEPEST);
    }
    let mut seen = Seen::default();
    let mut rest = all.iter().map(OsString::as_os_str);
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy();
        if seen.only_files || text == "-" || !text.starts_with('-') {
            seen.file(&text);
        } else if text == "--" {
            seen.only_files = true;
        } else if WITH_VALUE.contains(&&*text) {
            let value = rest.next().unwrap_or_default().to_string_lossy();
            match &*text {
                "-x" => seen.language(&value),
                "-l" => seen.files = true,
                _ => {}
            }
        } else {
            seen.option(&text);
        }
    }
    let links = match (seen.files && !seen.only_looks && !seen.stops_early, seen.is_static) {
        (false, _) => Linking::No,
        (true, false) => Linking::Dynamic,
        (true, true) => Linking::Static,
    };
    Work { compiles: seen.code && !seen.only_looks, links, files_from }
}

/// What a file is to the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputKind {
    Code,
    Header,
    Other,
}

impl InputKind {
    fn of_file(name: &str) -> InputKind {
        match Path::new(name).extension().and_then(OsStr::to_str) {
            Some(end) if CODE.contains(&end) => InputKind::Code,
            Some(end) if HEADERS.contains(&end) => InputKind::Header,
            _ => InputKind::Other,
        }
    }

    fn of_language(name: &str) -> Option<InputKind> {
        match name {
            "none" => None,
            name if LANGUAGES.contains(&name) => Some(InputKind::Code),
            name if name.contains("-header") => Some(InputKind::Header),
            _ => Some(InputKind::Other),
        }
    }
}

/// What has been seen of a command line.
#[derive(Debug, Default)]
struct Seen {
    only_files: bool,
    /// What `-x` says of the files behind it; `None`: their names tell.
    language: Option<InputKind>,
    code: bool,
    /// Files that end in what is linked.
    files: bool,
    only_looks: bool,
    stops_early: bool,
    is_static: bool,
}

impl Seen {
    fn file(&mut self, name: &str) {
        let kind = self.language.unwrap_or_else(|| InputKind::of_file(name));
        self.code |= kind == InputKind::Code;
        self.files |= kind != InputKind::Header;
    }

    fn language(&mut self, name: &str) {
        self.language = InputKind::of_language(name);
    }

    fn option(&mut self, text: &str) {
        self.only_looks |=
            ONLY_LOOKING.contains(&text) || ONLY_LOOKING_PREFIXES.iter().any(|begin| text.starts_with(begin));
        self.stops_early |= NOT_LINKING.contains(&text);
        self.is_static |= matches!(text, "-static" | "--static" | "-static-pie");
        if let Some(name) = text.strip_prefix("-x") {
            self.language(name);
        }
        // `-lfoo` by itself is something to link.
        self.files |= text.starts_with("-l") && text.len() > 2;
    }
}

/// Replaces `@file` by the words in the file, as the compiler does; a file that cannot be read stays a word.
fn expand(word: &OsStr, into: &mut Vec<OsString>, deeper: u32) {
    let name = word.as_bytes().strip_prefix(b"@").filter(|name| !name.is_empty() && deeper > 0);
    match name.and_then(|name| std::fs::read(OsStr::from_bytes(name)).ok()) {
        Some(content) => split(&content).iter().for_each(|word| expand(word, into, deeper - 1)),
        None => into.push(word.to_owned()),
    }
}

/// The words of a response file: blanks between them, quotes around them, a backslash before a single character.
fn split(content: &[u8]) -> Vec<OsString> {
    let mut words = Vec::new();
    let (mut word, mut open, mut quote) = (Vec::new(), false, None);
    let mut bytes = content.iter().copied();
    while let Some(byte) = bytes.next() {
        match (quote, byte) {
            (_, b'\\') => {
                word.extend(bytes.next());
                open = true;
            }
            (Some(mark), _) if mark == byte => quote = None,
            (Some(_), _) => word.push(byte),
            (None, b'"' | b'\'') => {
                quote = Some(byte);
                open = true;
            }
            (None, byte) if byte.is_ascii_whitespace() => {
                if std::mem::take(&mut open) {
                    words.push(OsString::from_vec(std::mem::take(&mut word)));
                }
            }
            (None, byte) => {
                word.push(byte);
                open = true;
            }
        }
    }
    if open {
        words.push(OsString::from_vec(word));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, compiles: bool, links: Linking) {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let work = work(&words);
        assert_eq!((work.compiles, work.links), (compiles, links), "{line}");
    }

    #[test]
    fn flags_go_where_they_are_needed() {
        use Linking::{Dynamic, No, Static};
        check("main.c", true, Dynamic);
        check("-O2 -c main.cpp -o main.o", true, No);
        check("-S main.c", true, No);
        check("-emit-llvm -c main.c", true, No);
        check("-c already.bc", true, No);
        check("main.o util.o -o program", false, Dynamic);
        check("-shared -o libx.so x.o", false, Dynamic);
        check("-fuse-ld=lld -flto main.o", false, Dynamic);
        check("-static main.c", true, Static);
        check("-r a.o b.o -o c.o", false, No);
        check("main.c start.s", true, Dynamic);
    }

    #[test]
    fn what_only_asks_is_left_alone() {
        use Linking::No;
        for line in [
            "",
            "-v",
            "--version",
            "-dumpmachine",
            "-print-search-dirs",
            "--print-file-name=libc.so",
            "-E main.c",
            "-E -",
            "-M main.c",
            "-MM main.c",
            "-fsyntax-only main.c",
            "-E -x c /dev/null -dM",
            "-cc1 -emit-obj main.c",
            "-qversion",
        ] {
            check(line, false, No);
        }
    }

    #[test]
    fn assembler_is_not_compiled_by_llvm() {
        use Linking::{Dynamic, No};
        check("-c start.s", false, No);
        check("-c start.S -o start.o", false, No);
        check("-x assembler-with-cpp -c odd.c", false, No);
        check("start.s", false, Dynamic);
        check("-c all.h", false, No);
        check("-x c++-header all.in -o all.pch", false, No);
        check("all.hpp", false, No);
    }

    #[test]
    fn values_are_not_files() {
        use Linking::{Dynamic, No};
        check("-o main.c -c start.s", false, No);
        check("-include config.c -c start.s", false, No);
        check("-MF main.c -v", false, No);
        check("-xc -c odd.name", true, No);
        check("-x c - -c -o out.o", true, No);
        check("-x c a.in -x none b.o", true, Dynamic);
        check("-c -- -odd.c", true, No);
        check("-lm", false, Dynamic);
    }

    #[test]
    fn the_place_of_the_last_option_is_known() {
        let words = ["-c", "--", "a.c"].map(OsString::from);
        assert_eq!(work(&words).files_from, Some(1));
    }

    #[test]
    fn response_files_are_read() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("words");
        std::fs::write(&path, "-c\n'my file.cpp' -o \"a \\\"b\\\".o\" back\\ slash ''").expect("written");
        let mut words = Vec::new();
        expand(OsStr::new(&format!("@{}", path.display())), &mut words, DEEPEST);
        assert_eq!(words, ["-c", "my file.cpp", "-o", "a \"b\".o", "back slash", ""]);
        check(&format!("@{}", path.display()), true, Linking::No);
        check("-c @no/such/file.c", true, Linking::No);
        std::fs::write(&path, format!("-c a.c @{}", path.display())).expect("written");
        check(&format!("@{}", path.display()), true, Linking::No);
    }
}
