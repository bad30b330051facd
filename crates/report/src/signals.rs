//! Names of signals.

/// Numbers that all Linux machines which Weftline runs on have in common.
const NAMES: [(i32, &str); 25] = [
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (10, "SIGUSR1"),
    (11, "SIGSEGV"),
    (12, "SIGUSR2"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
    (16, "SIGSTKFLT"),
    (21, "SIGTTIN"),
    (22, "SIGTTOU"),
    (24, "SIGXCPU"),
    (25, "SIGXFSZ"),
    (26, "SIGVTALRM"),
    (27, "SIGPROF"),
    (29, "SIGIO"),
    (30, "SIGPWR"),
    (31, "SIGSYS"),
];

/// The C library keeps the first two real-time signals to itself.
const REAL_TIME: std::ops::RangeInclusive<i32> = 34..=64;

/// A signal as people know it: `SIGSEGV`, `SIGRTMIN+3`.
pub(crate) fn name(signal: i32) -> String {
    let named = NAMES.iter().find(|(number, _)| *number == signal).map(|(_, name)| (*name).to_owned());
    let real_time = || {
        REAL_TIME.contains(&signal).then(|| match signal - REAL_TIME.start() {
            0 => "SIGRTMIN".to_owned(),
            more => format!("SIGRTMIN+{more}"),
        })
    };
    named.or_else(real_time).unwrap_or_else(|| format!("signal {signal}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names() {
        for (signal, expected) in [
            (9, "SIGKILL"),
            (11, "SIGSEGV"),
            (34, "SIGRTMIN"),
            (37, "SIGRTMIN+3"),
            (0, "signal 0"),
            (777, "signal 777"),
        ] {
            assert_eq!(name(signal), expected);
        }
    }
}
