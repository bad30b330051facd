//! Sandboxes, dropped privileges and resource limits: the program is as free and as bound as without us, and recorded.

use rustix::process::geteuid;
use weftline_testkit::Case;

/// These programs need root to get into their situation.
fn as_root(name: &str) -> Case {
    assert!(geteuid().is_root(), "{name} needs root: it changes its user, its root directory or its namespaces");
    Case::program(name)
}

fn limits(what: &str) -> Case {
    as_root("limits").args([what]).work("before.bin", 100)
}

hazards! {
    seccomp_kills_on_open_and_mmap: Case::program("seccomp").work("before.bin", 100)
        .sees("open", "sandboxed.bin", 1).moves("write", "sandboxed.bin", 22_000, 220_000);
    chroot: as_root("chrooted").work("before.bin", 100).sees("mkdir", "jail", 1).sees("chroot", "jail", 1)
        .work("/inside.bin", 5000).work("/deeper.bin", 100).work("after.bin", 100);
    privileges_dropped: as_root("privileges_dropped").work("before.bin", 100).sees("chmod", ".", 1)
        .work("nobody.bin", 5000).work("child.bin", 100).untraced("/privileges_dropped", "not reachable");
    file_size_limit: limits("fsize").work("limited.bin", 1000).sees("open", "limited.bin", 1)
        .moves("pread", "limited.bin", 50_000, 50_000).sees("close", "limited.bin", 1).work("child.bin", 100);
    file_size_limit_from_the_start: Case::program("fsize_from_start").work("executed.bin", 100);
    descriptor_limit: limits("nofile").sees("open", "before.bin", 10).fails("open", "before.bin", 24, 1)
        .moves("pread", "before.bin", 20_100, 20_100);
    address_space_limit: limits("as").sees("open", "before.bin", 1).moves("pread", "before.bin", 100_000, 100_000)
        .work("child.bin", 100);
    process_limit: limits("nproc").sees("open", "before.bin", 1).fails("fork", "", 11, 1)
        .moves("pread", "before.bin", 20_000, 20_000);
}
