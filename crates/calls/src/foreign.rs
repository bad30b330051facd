//! Names without a hook: system calls that glibc wraps under another name, and calls that other tracers record (DFTracer, DFAnalyzer's
//! table).

use crate::hooked::Shape;
use crate::{CallInfo, Family, Operation};

macro_rules! names {
    ($( $operation:ident { $( $name:ident $( ($canonical:ident) )? )* } )*) => {
        /// All of them.
        pub static NAMES: &[CallInfo] = &[ $( $( CallInfo {
            name: stringify!($name),
            canonical: canonical!($name $( $canonical )?),
            family: Family::Posix,
            operation: Operation::$operation,
            detail: None,
            shape: Shape::none,
        }, )* )* ];
    };
}

macro_rules! canonical {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:ident $canonical:ident) => {
        stringify!($canonical)
    };
}

names! {
    Open { openat2 }
    StatPath { newfstatat(fstatat) }
    Access { faccessat2(faccessat) }
    Seek { seek(lseek) }
    Metadata {
        getdents getdents64(getdents) readdir_r readdir64_r(readdir_r) seekdir telldir
        getxattr lgetxattr fgetxattr setxattr lsetxattr fsetxattr
        listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr
    }
    Advise { fadvise64(posix_fadvise) }
    Submit { io_uring_enter }
    Descriptor { dirfd }
    Ipc { msgctl msgget msgrcv msgsnd semctl semget semop shmat shmctl shmdt shmget }
    Exec { exec }
    Process { kill }
}
