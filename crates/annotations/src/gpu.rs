//! The usage of NVIDIA GPUs, for spans that record their usage: from NVML, which comes with the driver and is loaded when the first such span ends.
//!
//! Under `weft run --span-usage` NVML is loaded only if the program itself has loaded CUDA or NVML: others use no GPU, and must not get
//! the descriptors that NVML opens. `gpu-usage=True` of PerfFlowAspect's options loads it in any case ([`crate::front::ask_gpu`]).
//!
//! The driver's own figures are means over a sixth of a second or more, so a reading is valid for [`FRESH`]: spans in between get the same one
//! at no cost. Nothing here waits: a thread that finds another one reading uses the previous reading.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use nvml_wrapper::Nvml;
use nvml_wrapper::enums::device::UsedGpuMemory;
use weftline_recorder::table::{Table, wants};

use crate::locate;

/// How long a reading is good for.
const FRESH: Duration = Duration::from_millis(10);
/// How long it is believed which GPUs this process computes on: asking costs the driver more than all else.
const SETTLED: Duration = Duration::from_secs(1);
/// Packages for programs to run have the name with the version only.
const NAMES: [&str; 2] = ["libnvidia-ml.so.1", "libnvidia-ml.so"];

/// The use of the GPUs that this process computes on; of all, where the driver does not know it, as in a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Percent of the last sampling period in which the busiest of them worked.
    pub(crate) busy_pct: u32,
    /// Bytes of their memory: the process's own where the driver knows them, else all that is used.
    pub(crate) memory_bytes: u64,
}

/// The library and what it said.
struct Library {
    nvml: Nvml,
    /// GPUs of this process with what it uses of their memory, and when they were asked.
    own: Vec<(u32, Option<u64>)>,
    asked: Option<Instant>,
}

#[derive(Default)]
struct State {
    /// The process that this was read in: NVML is of no use in a child that was forked.
    pid: u32,
    library: Option<Library>,
    /// It was tried and failed.
    absent: bool,
    last: Option<(Instant, Option<Reading>)>,
}

static STATE: Mutex<State> = Mutex::new(State { pid: 0, library: None, absent: false, last: None });
/// The last reading, for those who find the state taken: percent + 1, 0 for none; and bytes.
static BUSY: AtomicU64 = AtomicU64::new(0);
static MEMORY: AtomicU64 = AtomicU64::new(0);

/// A reading, if the user wants one and there is a GPU.
pub(crate) fn now(table: &Table) -> Option<Reading> {
    let wanted = table.wants_usage.load(Ordering::Relaxed);
    if wanted & (wants::GPU | wants::GPU_IF_USED) == 0 {
        return None;
    }
    let mut state = match STATE.try_lock() {
        Ok(state) => state,
        Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
        Err(TryLockError::WouldBlock) => return last(),
    };
    let (now, pid) = (Instant::now(), std::process::id());
    if state.pid != pid {
        // What a parent opened is not closed by its child.
        std::mem::forget(std::mem::take(&mut *state));
        state.pid = pid;
    }
    if let Some((at, reading)) = state.last
        && now.duration_since(at) < FRESH
    {
        return reading;
    }
    // Nothing of another project's library may reach the program.
    let fresh = catch_unwind(AssertUnwindSafe(|| Some(state.library(wanted)?.read(pid, now)))).unwrap_or(Some(None))?;
    state.last = Some((now, fresh));
    BUSY.store(fresh.map_or(0, |reading| u64::from(reading.busy_pct) + 1), Ordering::Relaxed);
    MEMORY.store(fresh.map_or(0, |reading| reading.memory_bytes), Ordering::Relaxed);
    fresh
}

fn last() -> Option<Reading> {
    let busy = BUSY.load(Ordering::Relaxed).checked_sub(1)?;
    Some(Reading { busy_pct: u32::try_from(busy).ok()?, memory_bytes: MEMORY.load(Ordering::Relaxed) })
}

impl State {
    /// The library, if it may be asked. A program may load what knows GPUs at any time, and is looked at again each time.
    fn library(&mut self, wanted: u32) -> Option<&mut Library> {
        if self.library.is_none() && !self.absent {
            let by_program = || [c"libcuda.so.1", c"libnvidia-ml.so.1"].into_iter().any(locate::is_loaded);
            if wanted & wants::GPU == 0 && !by_program() {
                return None;
            }
            let nvml = NAMES.iter().find_map(|name| Nvml::builder().lib_path(name.as_ref()).init().ok());
            self.library = nvml.map(|nvml| Library { nvml, own: Vec::new(), asked: None });
            self.absent = self.library.is_none();
        }
        self.library.as_mut()
    }
}

impl Library {
    fn read(&mut self, pid: u32, now: Instant) -> Option<Reading> {
        if self.asked.is_none_or(|asked| now.duration_since(asked) >= SETTLED) {
            self.asked = Some(now);
            self.own = self.devices_of(pid);
        }
        let mut reading = None;
        for (index, used) in &self.own {
            // A device may fall off the bus and come back.
            let Ok(device) = self.nvml.device_by_index(*index) else { continue };
            let busy = device.utilization_rates().map_or(0, |rates| rates.gpu);
            let used = used.or_else(|| device.memory_info().ok().map(|memory| memory.used)).unwrap_or(0);
            let so_far = reading.get_or_insert(Reading { busy_pct: 0, memory_bytes: 0 });
            so_far.busy_pct = so_far.busy_pct.max(busy);
            so_far.memory_bytes = so_far.memory_bytes.saturating_add(used);
        }
        reading
    }

    /// The GPUs that the process computes on, or all.
    fn devices_of(&self, pid: u32) -> Vec<(u32, Option<u64>)> {
        let all = 0..self.nvml.device_count().unwrap_or(0);
        let mut own = Vec::new();
        for index in all.clone() {
            let users = self.nvml.device_by_index(index).and_then(|device| device.running_compute_processes());
            let user = users.unwrap_or_default().into_iter().find(|user| user.pid == pid);
            own.extend(user.map(|user| match user.used_gpu_memory {
                UsedGpuMemory::Used(bytes) => (index, Some(bytes)),
                UsedGpuMemory::Unavailable => (index, None),
            }));
        }
        if own.is_empty() { all.map(|index| (index, None)).collect() } else { own }
    }
}
