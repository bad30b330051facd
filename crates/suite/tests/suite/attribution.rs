//! Every descriptor leads to the right name: copies, reuse, inheritance, relative paths, things without a path.

use rustix::process::{Resource, getrlimit};
use weftline_testkit::Case;

fn close_all(how: &str) -> Case {
    let case = Case::program("close_all")
        .args([how])
        .work("before.bin", 100)
        .work("after.bin", 100)
        .work("child.bin", 100)
        .sees("open", "keep.bin", 1)
        .sees("open", "lost.bin", 1)
        .moves("write", "keep.bin", 1, 10);
    match how {
        "close_range" => case.sees("close_range", "", 1),
        "closefrom" => case.sees("closefrom", "", 1),
        _ => case,
    }
}

fn reused(case: Case, name: &str) -> Case {
    case.sees("open", name, 1).moves("write", name, 10, 100).sees("close", name, 1)
}

hazards! {
    copies_of_a_descriptor: Case::program("dup_names")
        .sees("open", "first.bin", 1).sees("open", "second.bin", 1).sees("close", "first.bin", 1)
        .sees("dup", "first.bin", 1).sees("dup2", "first.bin", 2).sees("dup3", "first.bin", 1).sees("fcntl", "first.bin", 2)
        .sees("dup2", "second.bin", 2)
        .moves("write", "first.bin", 60, 600).moves("write", "second.bin", 20, 200);
    numbers_used_again: ["after-fdopen.bin", "after-fclose.bin", "after-closedir.bin", "after-pclose.bin",
            "after-close_range.bin", "after-raw-close.bin"].into_iter().fold(Case::program("fd_reuse"), reused)
        .sees("open", "probe.bin", 3).sees("fdopen", "probe.bin", 1).sees("fclose", "probe.bin", 1)
        .sees("fopen", "stream.bin", 1).sees("fclose", "stream.bin", 1)
        .sees("opendir", ".", 1).sees("closedir", ".", 1);
    relative_paths: Case::program("relative_paths")
        .sees("mkdir", "a", 1).sees("mkdir", "a/b", 1).sees("mkdir", "c", 1)
        .sees("chdir", "a", 2).sees("chdir", "a/b", 1).sees("open", "c", 1).sees("fchdir", "c", 1)
        .work("same.bin", 1).work("a/same.bin", 2).work("a/b/same.bin", 3).work("a/up.bin", 4).work("c/dots.bin", 5)
        .work("c/same.bin", 6).work("a/child.bin", 7).work("c/parent.bin", 8);
    directory_descriptors: [("x/in-x.bin", 1), ("x/y/in-y.bin", 2), ("x/by-copy.bin", 3), ("x/up.bin", 4), ("here.bin", 5),
            ("x/y/x-is-y.bin", 6)].into_iter().fold(Case::program("dirfds"), |case, (name, n)|
                case.sees("openat", name, 1).moves("write", name, n, 10 * n).sees("close", name, 1))
        .sees("mkdirat", "x", 1).sees("mkdirat", "x/y", 1).sees("open", "x", 1).sees("openat", "x/y", 1)
        .sees("dup", "x", 1).sees("dup2", "x/y", 1)
        .sees("renameat", "x/in-x.bin", 1).sees("unlinkat", "x/y/in-y.bin", 1);
    renamed_while_open: Case::program("renamed")
        .sees("open", "old.bin", 1).moves("write", "old.bin", 1, 10).sees("rename", "old.bin", 1).moves("write", "new.bin", 1, 10)
        .sees("open", "new.bin", 1).moves("read", "new.bin", 1, 20).sees("close", "new.bin", 2)
        .sees("open", "gone.bin", 1).sees("unlink", "gone.bin", 1).moves("write", "gone.bin", 1, 10).sees("close", "gone.bin", 1);
    without_a_path: Case::program("nameless")
        .sees("open", "file.bin", 1).sees("close", "file.bin", 1).sees("open", ".", 1).moves("pwrite", "#unnamed", 10, 100)
        .moves("pwrite", "/memfd:scratch (deleted)", 10, 100).moves("pread", "/memfd:scratch (deleted)", 10, 100)
        .moves("write", "pipe:", 20, 200).moves("read", "pipe:", 20, 200)
        .moves("write", "socket:", 10, 100).moves("read", "socket:", 10, 100);
    inherited_across_exec: Case::program("inherited_fds").work("in.bin", 1)
        .sees("open", "out.bin", 1).sees("open", "in.bin", 1).sees("dup2", "out.bin", 1).sees("dup2", "in.bin", 1)
        .moves("write", "out.bin", 20, 200).moves("read", "in.bin", 5, 50);
    passed_over_a_socket: Case::program("passed_fd")
        .sees("open", "passed.bin", 1).sees("open", "decoy.bin", 1).sees("close", "decoy.bin", 1)
        .moves("write", "passed.bin", 10, 100);
    after_close_range: close_all("close_range");
    after_closefrom: close_all("closefrom");
    after_raw_closes: close_all("loop");
}

/// 4 and 1,028 are one entry in a table of 1,024; the top is above 65,536 where the hard limit allows it.
#[test]
fn high_descriptors() {
    let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(70_001);
    assert!(hard > 2000, "the hard limit of open files is {hard}: too low for this test, raise it with ulimit -Hn");
    let top = (hard - 1).min(70_000);
    ["fd4.bin", "fd1028.bin", "fd-below-top.bin", "fd-top.bin"]
        .into_iter()
        .fold(Case::program("big_fds").args([top.to_string()]), |case, name| {
            let case = case.sees("open", name, 1).moves("write", name, 10, 100);
            // Each opens on 3 and is moved to its number.
            case.sees("dup2", name, 1).sees("close", name, 2)
        })
        .fails("write", "", 9, 1)
        .check();
}
