//! Modules whose records are counters: all that are not 0 survive as facts about the file, and what they count as totals of calls.
//!
//! Calls that a trace module has one by one are no totals: the totals of such modules are held until the segments are read, and what the segments do not
//! have is given then.

use std::collections::HashMap;

use super::bytes::{Order, Region, nanoseconds};
use super::layout::{Layout, Part};
use super::out::{Out, Total};
use crate::Result;
use crate::event::Arg;

/// Totals that wait for their segments. Further ones are given at once, and their segments are left out.
pub(super) const MOST_HELD: usize = 1 << 20;

/// By file and rank: reading and writing.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) totals: HashMap<(u64, i64), [Total; 2]>,
    /// Whether there was no room for all.
    pub(super) full: bool,
}

/// One record.
struct Record<'l> {
    layout: &'l Layout,
    id: u64,
    rank: i64,
    whole: Option<u64>,
    integers: Vec<i64>,
    reals: Vec<f64>,
}

impl Record<'_> {
    fn parse(&mut self, bytes: &[u8], order: Order) {
        (self.id, self.rank) = (order.u64(bytes, 0), order.i64(bytes, 8));
        self.whole = self.layout.part.then(|| order.u64(bytes, 16));
        let first = 16 + 8 * usize::from(self.layout.part);
        let (integers, reals) = (self.layout.integers.len(), self.layout.reals.len());
        self.integers.clear();
        self.integers.extend((0..integers).map(|place| order.i64(bytes, first + place * 8)));
        self.reals.clear();
        self.reals.extend((0..reals).map(|place| order.f64(bytes, first + (integers + place) * 8)));
    }

    /// A counter; 0 where the version has none, or a number that counts nothing.
    fn integer(&self, name: &str) -> u64 {
        let place = self.layout.integers.iter().position(|known| known == name);
        place.and_then(|place| u64::try_from(self.integers[place]).ok()).unwrap_or(0)
    }

    fn real(&self, name: &str) -> f64 {
        let place = self.layout.reals.iter().position(|known| known == name);
        place.map_or(0.0, |place| self.reals[place])
    }

    /// When calls of a part were made, in UTC: of the file as a whole where the part does not tell.
    fn life(&self, part: Part, out: &Out<'_>) -> (i64, i64) {
        let named = part.life();
        if let (Some(start), Some(end)) = (out.moment(self.real(named.0)), out.moment(self.real(named.1)))
            && start <= end
        {
            return (start, end);
        }
        let stamps = self.layout.reals.iter().zip(&self.reals).filter(|(name, _)| name.ends_with("_TIMESTAMP"));
        let moments = stamps.filter_map(|(_, seconds)| out.moment(*seconds));
        let range = moments.fold(None, |range: Option<(i64, i64)>, moment| {
            Some(range.map_or((moment, moment), |(from, to)| (from.min(moment), to.max(moment))))
        });
        range.unwrap_or_else(|| out.life())
    }

    /// Calls of each kind. Bytes and time of a part are with the first of its calls that were made.
    fn totals(&self, out: &Out<'_>) -> Vec<(&'static str, Part, Total)> {
        let mut totals = Vec::new();
        for part in Part::ALL {
            let mut bytes = self.integer(part.bytes());
            let mut time_ns = nanoseconds(self.real(part.time()).max(0.0)).map_or(0, i64::unsigned_abs);
            let life = self.life(part, out);
            for call in self.layout.calls.iter().filter(|call| call.part == part) {
                let sum = |names: &[&str]| names.iter().fold(0u64, |sum, name| sum.saturating_add(self.integer(name)));
                let calls = sum(call.counts).saturating_sub(sum(call.less));
                if calls > 0 {
                    let (bytes, time_ns) = (std::mem::take(&mut bytes), std::mem::take(&mut time_ns));
                    totals.push((call.name, part, Total { calls, bytes, time_ns, life }));
                }
            }
        }
        totals
    }
}

/// Reads a module. `held`: where totals of reading and writing wait for segments.
pub(super) fn read(
    region: &mut Region<'_, '_>,
    layout: &Layout,
    module: &str,
    order: Order,
    out: &mut Out<'_>,
    mut held: Option<&mut Held>,
) -> Result<()> {
    let names: Vec<String> = layout.integers.iter().map(|name| format!("{}{name}", layout.prefix)).collect();
    let real_names: Vec<String> = layout.reals.iter().map(|name| format!("{}F_{name}", layout.prefix)).collect();
    let mut bytes = vec![0; layout.length()];
    let mut record = Record { layout, id: 0, rank: 0, whole: None, integers: Vec::new(), reals: Vec::new() };
    let mut made = Vec::new();
    while region.next(&mut bytes)? {
        record.parse(&bytes, order);
        let Some(pid) = out.pid(record.rank) else {
            out.sink.skip("rank that the job does not have", region.offset());
            continue;
        };
        out.tell(record.rank, pid)?;
        let file = out.names.of(record.id, &mut made).to_vec();
        let mount = out.job.mount(&file).cloned();
        let whole_name = format!("{}FILE_REC_ID", layout.prefix);
        let mut args =
            vec![("fhash", Arg::Path(&file)), ("id", Arg::Unsigned(record.id)), ("rank", Arg::Int(record.rank))];
        if let Some((kind, path)) = &mount {
            args.extend([("mount", Arg::Text(path.as_bytes())), ("fs", Arg::Text(kind.as_bytes()))]);
        }
        args.extend(record.whole.map(|whole| (whole_name.as_str(), Arg::Unsigned(whole))));
        for (name, number) in names.iter().zip(&record.integers).filter(|(_, number)| **number != 0) {
            // That one is the number of another record.
            let is_id = name.ends_with("RENAMED_FROM");
            args.push((name, if is_id { Arg::Unsigned(*number as u64) } else { Arg::Int(*number) }));
        }
        let reals = real_names.iter().zip(&record.reals).filter(|(_, number)| **number != 0.0);
        args.extend(reals.map(|(name, number)| (name.as_str(), Arg::Float(*number))));
        out.about(module, pid, &args)?;
        let totals = record.totals(out);
        let mut waiting = [Total::default(); 2];
        let hold = held.as_deref_mut().is_some_and(|held| {
            let room = held.totals.len() < MOST_HELD;
            held.full |= !room;
            room
        });
        for (name, part, total) in totals {
            match part {
                Part::Read if hold && name == "read" => waiting[0] = total,
                Part::Write if hold && name == "write" => waiting[1] = total,
                _ => out.total(module, name, pid, &file, &total)?,
            }
        }
        if let Some(held) = held.as_deref_mut().filter(|_| hold && waiting.iter().any(|total| total.calls > 0)) {
            for (known, more) in held.totals.entry((record.id, record.rank)).or_default().iter_mut().zip(waiting) {
                known.add(&more);
            }
        }
    }
    Ok(())
}

impl Total {
    fn add(&mut self, more: &Total) {
        if more.calls == 0 {
            return;
        }
        let life = if self.calls == 0 { more.life } else { self.life };
        self.life = (life.0.min(more.life.0), life.1.max(more.life.1));
        self.calls = self.calls.saturating_add(more.calls);
        self.bytes = self.bytes.saturating_add(more.bytes);
        self.time_ns = self.time_ns.saturating_add(more.time_ns);
    }

    /// Less one call that is known by itself.
    pub(super) fn subtract(&mut self, bytes: u64, time_ns: u64) {
        self.calls = self.calls.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
        self.time_ns = self.time_ns.saturating_sub(time_ns);
    }
}
