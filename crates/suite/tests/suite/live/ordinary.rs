//! The ordinary programs on a disk, as people run them.

use crate::findings::ordinary::{on_disk, ordinary_programs};

ordinary_programs! { on_disk }
