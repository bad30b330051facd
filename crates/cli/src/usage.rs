//! Wrong usage that the parser cannot detect: a directory that cannot be written, a variable that names no file. It is found before anything
//! starts, and the command exits with 2, as for an invalid option.

use std::fmt;
use std::io;

use rustix::io::Errno;

/// What is wrong, in one sentence.
#[derive(Debug)]
pub(crate) struct Usage(String);

impl Usage {
    pub(crate) fn new(what: impl Into<String>) -> Usage {
        Usage(what.into())
    }

    pub(crate) fn error(what: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(Usage::new(what))
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Whether an error says that a path is the wrong one. A full disk is not: it may be right tomorrow, and the program is run today.
pub(crate) fn is_wrong_place(error: &io::Error) -> bool {
    const WRONG: [Errno; 10] = [
        Errno::ACCESS,
        Errno::PERM,
        Errno::ROFS,
        Errno::NOTDIR,
        Errno::NOENT,
        Errno::EXIST,
        Errno::ISDIR,
        Errno::NAMETOOLONG,
        Errno::LOOP,
        Errno::INVAL,
    ];
    // A path with a NUL in it does not reach the system.
    error.kind() == io::ErrorKind::InvalidInput
        || Errno::from_io_error(error).is_some_and(|errno| WRONG.contains(&errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disks_are_no_wrong_usage() {
        for (errno, wrong) in [
            (Errno::ACCESS, true),
            (Errno::ROFS, true),
            (Errno::NOENT, true),
            (Errno::NOSPC, false),
            (Errno::DQUOT, false),
            (Errno::FBIG, false),
            (Errno::MFILE, false),
            (Errno::IO, false),
        ] {
            assert_eq!(is_wrong_place(&io::Error::from(errno)), wrong, "{errno}");
        }
    }
}
