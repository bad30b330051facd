//! The header: version, byte order, packing, and where the regions are.
//!
//! | version | modules | what changed |
//! |---|---|---|
//! | 3.00 | 16 | names have a length |
//! | 3.10 | 16 | names end with a zero |
//! | 3.20, 3.21 | 16 | `H5D` is the fourth module, those behind it moved |
//! | 3.41 | 64 | `PNETCDF_VAR` is the sixth, those behind it moved; the job has nanoseconds |

use super::bytes::{Order, Packing};
use crate::Result;
use crate::input::Input;

const MAGIC: u64 = 6_567_223;
/// The modules of the newest version, by number.
const NAMES: [&str; 18] = [
    "NULL",
    "POSIX",
    "MPI-IO",
    "H5F",
    "H5D",
    "PNETCDF_FILE",
    "PNETCDF_VAR",
    "BG/Q",
    "LUSTRE",
    "STDIO",
    "DXT_POSIX",
    "DXT_MPIIO",
    "MDHIM",
    "APXC",
    "APMPI",
    "HEATMAP",
    "DFS",
    "DAOS",
];

/// A part of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Map {
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// A module that the log has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Module {
    pub(super) name: String,
    pub(super) map: Map,
    pub(super) version: u32,
    /// Darshan ran out of memory for its records.
    pub(super) partial: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) version: (u32, u32),
    pub(super) order: Order,
    pub(super) packing: Packing,
    pub(super) names: Option<Map>,
    /// In the order of the file.
    pub(super) modules: Vec<Module>,
}

/// The byte order of a log, by its first bytes; none where they are of something else.
pub(super) fn order_of(head: &[u8]) -> Option<Order> {
    let magic = head.get(8..16)?;
    [Order::Little, Order::Big].into_iter().find(|order| order.u64(magic, 0) == MAGIC)
}

fn version_of(text: &[u8]) -> Option<(u32, u32)> {
    let text = std::str::from_utf8(text).ok()?.trim_end_matches('\0');
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// What a module is called, by its number.
pub(super) fn name_of(number: usize, minor: u32) -> String {
    if minor < 41 && number == 5 - usize::from(minor < 20) {
        return "PNETCDF".to_owned();
    }
    let mut place = number;
    place += usize::from(minor < 20 && place > 3);
    place += usize::from(minor < 41 && place > 5);
    NAMES.get(place).map_or_else(|| format!("number {number}"), |name| (*name).to_owned())
}

impl Header {
    pub(super) fn read(input: &mut Input<'_>) -> Result<Header> {
        let mut head = [0; 24];
        input.fill(&mut head)?;
        let Some(order) = order_of(&head) else {
            return Err(input.invalid(8, "no Darshan log: its magic number is missing"));
        };
        let Some(version @ (3, minor)) = version_of(&head[..8]) else {
            let found = String::from_utf8_lossy(&head[..8]).trim_end_matches('\0').to_owned();
            return Err(input.invalid(0, format!("version {found:?} of Darshan's format; those from 3.00 on are read")));
        };
        let Some(packing) = Packing::of(head[16]) else {
            return Err(input.invalid(16, format!("an unknown compression, number {}", head[16])));
        };
        let count = if minor < 41 { 16 } else { 64 };
        // The flags of 64 modules have eight bytes, and stand where eight bytes may.
        let partial = if minor < 41 {
            u64::from(order.u32(&head, 20))
        } else {
            let mut flags = [0; 8];
            input.fill(&mut flags)?;
            order.u64(&flags, 0)
        };
        let mut rest = vec![0; 16 + count * 20];
        input.fill(&mut rest)?;
        let map = |at: usize| Map { offset: order.u64(&rest, at), length: order.u64(&rest, at + 8) };
        let names = Some(map(0)).filter(|map| map.length > 0);
        let modules = (0..count).map(|number| Module {
            name: name_of(number, minor),
            map: map(16 + number * 16),
            version: order.u32(&rest, 16 + count * 16 + number * 4),
            partial: partial >> number & 1 == 1,
        });
        let mut modules: Vec<Module> = modules.filter(|module| module.map.length > 0 || module.partial).collect();
        modules.sort_by_key(|module| module.map.offset);
        Ok(Header { version, order, packing, names, modules })
    }

    /// Where the job's record ends: where the next region begins. None where nothing follows.
    pub(super) fn job_end(&self) -> Option<u64> {
        let modules = self.modules.iter().map(|module| module.map).filter(|map| map.length > 0);
        self.names.into_iter().chain(modules).map(|map| map.offset).min()
    }
}
