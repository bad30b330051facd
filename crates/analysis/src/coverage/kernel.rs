//! The ledger from kernel events (`--kernel`): the bytes of each program, whether or not a hook saw them.
//!
//! Unlike `rchar` and `wchar` it includes io_uring and page faults, distinguishes programs without our library, and needs no
//! process to be alive when it is read.

use std::collections::BTreeMap;

use serde::Serialize;
use weftline_format::manifest::{KernelTotals, SupervisorRecord};

use super::{Direction, NOTABLE, traced};

/// One program, all its processes together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelLine {
    /// Its executable.
    pub program: String,
    /// Bytes read.
    pub read: Direction,
    /// Bytes written.
    pub write: Direction,
    /// Bytes of files that page faults brought into memory; no hook sees those.
    pub faulted: u64,
}

impl KernelLine {
    /// Whether the kernel saw more than the start of any program explains.
    pub fn is_notable(&self) -> bool {
        [self.read, self.write].iter().any(|direction| direction.gap() > NOTABLE.max(direction.kernel / 100))
    }
}

/// All programs with kernel events, by name.
pub(super) fn lines(records: &[SupervisorRecord]) -> Vec<KernelLine> {
    let mut programs: BTreeMap<&str, KernelTotals> = BTreeMap::new();
    for (program, totals) in
        records.iter().filter_map(|record| record.kernel.as_ref()).flat_map(|kernel| &kernel.programs)
    {
        let sum = programs.entry(program).or_default();
        sum.read += totals.read + totals.uring_read;
        sum.written += totals.written + totals.uring_written;
        sum.faulted += totals.faulted;
    }
    let mut hooked: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for process in records.iter().flat_map(|record| &record.processes) {
        let (read, written) = traced(process);
        let sum = hooked.entry(&process.exe).or_default();
        *sum = (sum.0 + read, sum.1 + written);
    }
    let line = |(program, totals): (&str, KernelTotals)| {
        let (read, written) = hooked.get(program).copied().unwrap_or_default();
        KernelLine {
            program: program.to_owned(),
            read: Direction { kernel: totals.read, traced: read, before: 0 },
            write: Direction { kernel: totals.written, traced: written, before: 0 },
            faulted: totals.faulted,
        }
    };
    programs.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use weftline_format::manifest::{KernelRecord, ProcessRecord, TracedBytes};

    use super::*;

    #[test]
    fn programs_without_hooks_have_gaps() {
        let totals = |read, uring_read, faulted| KernelTotals { read, uring_read, faulted, ..KernelTotals::default() };
        let programs = [
            ("/bin/static".to_owned(), totals(1 << 20, 0, 4096)),
            ("/bin/hooked".to_owned(), totals(1 << 20, 0, 0)),
            ("/bin/ring".to_owned(), totals(0, 1 << 20, 0)),
        ];
        let kernel = KernelRecord { programs: programs.into(), ..KernelRecord::default() };
        let traced = TracedBytes { posix_read: 1 << 20, ..TracedBytes::default() };
        let hooked = ProcessRecord { exe: "/bin/hooked".into(), traced, ..ProcessRecord::default() };
        // The collector that asked the kernel and the supervisor that traced need not be one.
        let records = [
            SupervisorRecord { kernel: Some(kernel), ..SupervisorRecord::default() },
            SupervisorRecord { processes: vec![hooked], ..SupervisorRecord::default() },
        ];
        let seen: Vec<(String, u64, u64, bool)> = lines(&records)
            .into_iter()
            .map(|line| (line.program.clone(), line.read.gap(), line.faulted, line.is_notable()))
            .collect();
        assert_eq!(
            seen,
            [
                ("/bin/hooked".into(), 0, 0, false),
                ("/bin/ring".into(), 1 << 20, 0, true),
                ("/bin/static".into(), 1 << 20, 4096, true),
            ]
        );
    }
}
