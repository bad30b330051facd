//! The files that a command left: a snapshot of a directory that tests can compare.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::Hasher;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// One file as far as a program's result is concerned. Times and inode numbers differ from run to run and are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A regular file.
    File {
        /// Permission bits.
        mode: u32,
        /// Length in bytes.
        len: u64,
        /// A hash of the content.
        hash: u64,
    },
    /// A directory.
    Directory {
        /// Permission bits.
        mode: u32,
    },
    /// A symbolic link and where it points.
    Link(PathBuf),
    /// A fifo, socket or device.
    Special,
}

/// Files by their path relative to the directory.
pub type Tree = BTreeMap<PathBuf, Entry>;

/// Looks at everything below `directory`.
pub fn tree(directory: &Path) -> Tree {
    let mut found = Tree::new();
    visit(directory, directory, &mut found);
    found
}

fn visit(root: &Path, directory: &Path, found: &mut Tree) {
    let failed = |path: &Path, error: std::io::Error| -> ! { panic!("cannot look at {}: {error}", path.display()) };
    for entry in fs::read_dir(directory).unwrap_or_else(|error| failed(directory, error)) {
        let path = entry.unwrap_or_else(|error| failed(directory, error)).path();
        let metadata = fs::symlink_metadata(&path).unwrap_or_else(|error| failed(&path, error));
        let mode = metadata.permissions().mode() & 0o7777;
        let kind = metadata.file_type();
        let seen = if kind.is_dir() {
            visit(root, &path, found);
            Entry::Directory { mode }
        } else if kind.is_symlink() {
            Entry::Link(fs::read_link(&path).unwrap_or_else(|error| failed(&path, error)))
        } else if kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device() {
            Entry::Special
        } else {
            let mut hasher = DefaultHasher::new();
            hasher.write(&fs::read(&path).unwrap_or_else(|error| failed(&path, error)));
            Entry::File { mode, len: metadata.len(), hash: hasher.finish() }
        };
        found.insert(path.strip_prefix(root).expect("found below the root").to_owned(), seen);
    }
}

/// What differs between two trees, one line each; empty when nothing does.
pub fn differences(untraced: &Tree, traced: &Tree) -> Vec<String> {
    let paths: std::collections::BTreeSet<_> = untraced.keys().chain(traced.keys()).collect();
    paths
        .into_iter()
        .filter(|path| untraced.get(*path) != traced.get(*path))
        .map(|path| format!("{}: untraced {:?}, traced {:?}", path.display(), untraced.get(path), traced.get(path)))
        .collect()
}
