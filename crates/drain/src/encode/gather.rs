//! Records that are not one call each: annotations, which may take several records, and unfinished calls.

use weftline_recorder::annotation::{ANNOTATION, CONTINUED, SKIPPED};

use super::Encoder;
use crate::arena::{Arena, RecordCopy, SegmentAt, SegmentInfo};
use crate::image::Image;
use crate::procfs;

impl Encoder {
    /// Takes what is not simply a call: an annotation, or a record that is not finished. How many records it takes up.
    #[inline(never)]
    #[allow(clippy::too_many_arguments, reason = "one call site; a struct of these would only rename them")]
    pub(super) fn other_record(
        &mut self,
        image: &Image,
        at: SegmentAt,
        index: u32,
        info: &SegmentInfo,
        dead: bool,
        found: Option<RecordCopy>,
        records: &mut Vec<RecordCopy>,
    ) -> u32 {
        let late = || (!dead).then(|| self.late_record(image, at, index, info.tid)).flatten();
        let Some(record) = found.or_else(late) else { return 1 };
        if record.head & ANNOTATION == 0 {
            records.push(record);
            return 1;
        }
        let stored = image.arena.records(at);
        let behind = |place| stored?.get(index + 1 + place).filter(|_| index + 1 + place < info.taken);
        match self.annotations.gather(&record, behind) {
            Some(more) => {
                records.push(record);
                1 + more
            }
            None => {
                // Not counted: the rest of an annotation whose thread died before it was complete, and room that was left.
                self.totals.damaged += u64::from(!means_nothing(record.head));
                1
            }
        }
    }

    /// A record of a living process that is not there yet.
    #[cold]
    fn late_record(&mut self, image: &Image, at: SegmentAt, index: u32, tid: u32) -> Option<RecordCopy> {
        // The slots of an annotation are taken together: one that stays empty stands for all.
        let follows = index > 0 && self.late == Some((at, index - 1));
        // One or two in a segment, from threads that are in a signal handler. A program can leave gaps everywhere, and must not hold up the drain.
        let patient = self.late_times < LATE_AT_MOST;
        self.late_times += u32::from(!follows);
        let record = if follows || !patient { None } else { wait_for(&image.arena, at, index) };
        if record.is_some() {
            return record;
        }
        self.late = Some((at, index));
        // A process that is ending loses its threads one by one; the call of one that is gone never returned.
        if !(follows || patient && thread_is_gone(image, tid)) {
            self.totals.unfinished += 1;
        }
        None
    }
}

/// Records of a segment that are waited for.
const LATE_AT_MOST: u32 = 16;

/// Whether a record of an annotation is none by itself.
pub(super) fn means_nothing(head: u32) -> bool {
    matches!(head, CONTINUED | SKIPPED)
}

/// A record that its thread began before a signal handler filled and closed the segment: it is finished as soon as the
/// handler returns. One that jumped away instead never returns, so the wait is short.
#[cold]
fn wait_for(arena: &Arena, at: SegmentAt, index: u32) -> Option<RecordCopy> {
    (0..20).find_map(|_| {
        weftline_recorder::sys::nap(50_000);
        arena.record(at, index)
    })
}

/// Whether the thread is gone. In another pid namespace thread ids cannot be compared: then it counts as there, and its record as lost.
#[cold]
fn thread_is_gone(image: &Image, tid: u32) -> bool {
    let same_namespace = procfs::pid_namespace("self") == Some(image.info.birth.pid_namespace);
    // A thread that is being killed stays visible for a moment.
    same_namespace
        && (0..20).any(|_| {
            let gone = !procfs::has_thread(image.info.birth.pid, tid);
            if !gone {
                weftline_recorder::sys::nap(1_000_000);
            }
            gone
        })
}
