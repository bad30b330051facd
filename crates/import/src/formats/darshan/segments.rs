//! DXT: reads and writes one by one, as spans.

use super::bytes::{Order, Region, nanoseconds};
use super::counters::Held;
use super::out::Out;
use crate::Result;
use crate::event::{Arg, Event, Shape};

/// File, rank, whether it is shared, host, writes, reads.
const HEAD: usize = 16 + 8 + 64 + 16;
/// Offset, length, start, end.
const SEGMENT: usize = 32;

/// Reads a module. `cat`: the layer whose calls it has; `offsets`: whether it knows where in the file they were.
pub(super) fn read(
    region: &mut Region<'_, '_>,
    cat: &str,
    offsets: bool,
    order: Order,
    out: &mut Out<'_>,
    held: &mut Held,
) -> Result<()> {
    let mut head = [0; HEAD];
    let mut segment = [0; SEGMENT];
    let mut made = Vec::new();
    while region.next(&mut head)? {
        let (id, rank) = (order.u64(&head, 0), order.i64(&head, 8));
        let (writes, reads) = (order.i64(&head, 88), order.i64(&head, 96));
        let (Ok(writes), Ok(reads)) = (u64::try_from(writes), u64::try_from(reads)) else {
            return Err(region.invalid("a record has less than no segments"));
        };
        let pid = out.pid(rank);
        let key = [(id, rank), (id, -1)].into_iter().find(|key| held.totals.contains_key(key));
        // Where totals had no room to wait, they hold these calls already.
        let wanted = pid.filter(|_| key.is_some() || !held.full);
        if wanted.is_none() {
            let reason = match pid {
                None => "rank that the job does not have",
                Some(_) => "segments of a file whose totals are counted",
            };
            out.sink.skip(reason, region.offset());
        }
        let file = out.names.of(id, &mut made).to_vec();
        if let Some(pid) = wanted {
            out.tell(rank, pid)?;
            let host = head[24..88].split(|byte| *byte == 0).next().unwrap_or_default();
            let args = [
                ("fhash", Arg::Path(&file)),
                ("id", Arg::Unsigned(id)),
                ("rank", Arg::Int(rank)),
                ("hostname", Arg::Text(host)),
                ("write_count", Arg::Unsigned(writes)),
                ("read_count", Arg::Unsigned(reads)),
            ];
            out.about(if cat == "POSIX" { "DXT_POSIX" } else { "DXT_MPIIO" }, pid, &args)?;
        }
        for (name, count) in [("write", writes), ("read", reads)] {
            for _ in 0..count {
                region.fill(&mut segment)?;
                let Some(pid) = wanted else { continue };
                let (offset, length) = (order.i64(&segment, 0), order.i64(&segment, 8));
                let times = (nanoseconds(order.f64(&segment, 16)), nanoseconds(order.f64(&segment, 24)));
                let (Some(start), Some(end)) = times else {
                    out.sink.skip("segment without times", region.offset());
                    continue;
                };
                let total = key.and_then(|key| held.totals.get_mut(&key));
                if let Some(total) = total.map(|totals| &mut totals[usize::from(name == "write")]) {
                    total.subtract(u64::try_from(length).unwrap_or(0), end.saturating_sub(start).max(0) as u64);
                }
                // What a layer above the calls moves is no result of a call.
                let size = if cat == "POSIX" { "ret" } else { "size_sum" };
                let args = [("fhash", Arg::Path(&file)), (size, Arg::Int(length)), ("offset", Arg::Int(offset))];
                let args = if offsets { &args[..] } else { &args[..2] };
                let start_ns = out.clock.to_utc(start);
                let shape = Shape::Span { end_ns: out.clock.to_utc(end).max(start_ns) };
                out.sink.event(&Event { shape, name, cat, pid, tid: pid, start_ns, args })?;
            }
        }
    }
    Ok(())
}

/// Gives what is left of totals when all segments are read.
pub(super) fn rest(cat: &str, out: &mut Out<'_>, held: Held) -> Result<()> {
    let mut all: Vec<_> = held.totals.into_iter().collect();
    all.sort_unstable_by_key(|(key, _)| *key);
    let mut made = Vec::new();
    for ((id, rank), totals) in all {
        let Some(pid) = out.pid(rank) else { continue };
        let file = out.names.of(id, &mut made).to_vec();
        for (name, total) in ["read", "write"].into_iter().zip(&totals) {
            if total.calls == 0 && total.bytes > 0 {
                // Counters and segments of one log tell the same, or it is damaged.
                out.sink.skip("bytes that a file's segments do not have", 0);
            }
            out.total(cat, name, pid, &file, total)?;
        }
    }
    Ok(())
}
