//! One step of a look at a time, where the order of steps matters.

use std::time::Instant;

use weftline_calls::Call;
use weftline_format::reader;

use crate::arena::writer::{NOBODY, Program, call};
use crate::image::ImageKey;
use crate::{Drain, DrainOptions, Live, LiveOptions};

/// Regression: in one forked child of two thousand on a loaded machine, everything was lost. The child had taken, used and left a segment
/// that a worker had freed, before the worker's job was settled; retired at that moment, it seemed to own nothing.
#[test]
fn a_segment_freed_by_an_unsettled_job_is_not_forgotten() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let live = Live::create(run, &LiveOptions { run_id: "test".to_owned(), ..LiveOptions::default() }).expect("live");
    let mut drain =
        Drain::new(live, run, DrainOptions { workers: Some(0), ..DrainOptions::default() }).expect("a drain");
    let mut first = Program::start(drain.directory(), NOBODY);
    let mut second = first.fork(NOBODY + 1);
    let key = |program: &Program| {
        let info = program.arena.slot_info(program.slot);
        ImageKey { arena: program.arena.number(), slot: program.slot, generation: info.generation }
    };
    first.record(1, &call(Call::read));

    let now = Instant::now();
    drain.pool.look(drain.live.control.get(), now);
    let arenas: Vec<_> = drain.pool.used().cloned().collect();
    for arena in &arenas {
        drain.find_images(arena, now);
    }
    let used = first.arena.used_segments();
    // Without threads the job is done here and now, and settled by the next look.
    drain.retire(key(&first));
    second.record(1, &call(Call::write));
    assert_eq!(second.arena.used_segments(), used, "the second image must get the segment that the first one left");
    drain.retire(key(&second));
    drop((first, second, arenas));
    drain.finish().expect("finished");

    let trace = reader::read_run(run).expect("the run can be read");
    for name in ["read", "write"] {
        assert_eq!(trace.events.iter().filter(|event| event.name == name).count(), 1, "{name}");
    }
}
