//! `--kernel`: records kernel tracepoints beside the trace. Without permission, or without the feature, it prints one sentence and the
//! run continues without kernel events.

use std::path::Path;

use weftline_collect::collector::Collector;
use weftline_format::manifest::KernelRecord;

/// Tracepoints in place, and a thread that writes what they tell.
pub(crate) struct Watch {
    #[cfg(feature = "kernel")]
    recording: weftline_collect::kernel::recording::Recording,
    /// There is none without the feature.
    #[cfg(not(feature = "kernel"))]
    never: std::convert::Infallible,
}

#[cfg(feature = "kernel")]
impl Watch {
    /// Follows what this process is about to start.
    pub(crate) fn follow_own_children(&self, say: &mut dyn FnMut(&str)) {
        if let Err(error) = self.recording.follow_own_children() {
            say(&error.to_string());
        }
    }

    pub(crate) fn leave_own_children(&self) {
        self.recording.leave_own_children();
    }

    /// Follows what a collector follows, and ends with it.
    pub(crate) fn add_to(self, collector: &mut Collector) {
        collector.add_kernel(self.recording);
    }

    pub(crate) fn finish(self) -> KernelRecord {
        self.recording.finish()
    }
}

#[cfg(not(feature = "kernel"))]
impl Watch {
    pub(crate) fn follow_own_children(&self, _say: &mut dyn FnMut(&str)) {
        match self.never {}
    }

    pub(crate) fn leave_own_children(&self) {
        match self.never {}
    }

    pub(crate) fn add_to(self, _collector: &mut Collector) {
        match self.never {}
    }

    pub(crate) fn finish(self) -> KernelRecord {
        match self.never {}
    }
}

/// Puts the tracepoints in place; says why where that is not possible, and returns that too.
#[cfg(feature = "kernel")]
pub(crate) fn start(run: &Path, say: &mut dyn FnMut(&str)) -> Result<Watch, String> {
    use weftline_collect::kernel::Options;
    use weftline_collect::kernel::recording::Recording;
    use weftline_collect::own::Own;

    match Recording::start(&Options::default(), run, &Own::read()) {
        Ok(recording) => {
            for absent in recording.absent() {
                say(&format!("this kernel lacks some tracepoints: {absent}"));
            }
            Ok(Watch { recording })
        }
        Err(error) => {
            say(&format!("without --kernel: {error}"));
            Err(error.to_string())
        }
    }
}

/// Says how to get what was asked for.
#[cfg(not(feature = "kernel"))]
pub(crate) fn start(_run: &Path, say: &mut dyn FnMut(&str)) -> Result<Watch, String> {
    let why =
        format!("this weft was built without it; {} adds it", crate::parts::remedy(crate::parts::Component::Kernel));
    say(&format!("without --kernel: {why}"));
    Err(why)
}
