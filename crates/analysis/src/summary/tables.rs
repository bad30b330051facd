//! A summary as tables, for CSV, JSON, SQLite and Parquet.

use weftline_calls::IoSums;

use crate::classify::{SIZE_BINS, bin_label};
use crate::statistics::{mean, ratio, seconds};
use crate::table::{Table, clamp};
use crate::units::Unit;

use super::layers::KnownWalls;
use super::{OperationRow, Summary, TopRow};

impl Summary {
    /// All sections by name.
    pub fn tables(&self) -> Vec<(&'static str, Table)> {
        vec![
            ("job", self.job_table()),
            ("layers", self.layer_table()),
            ("operations", operation_table(&self.operations, true)),
            ("calls", operation_table(&self.calls, false)),
            ("waits", operation_table(&self.waits, false)),
            ("spans", operation_table(&self.spans, false)),
            ("sizes", self.size_table()),
            ("top_files", top_table(&self.top_files, "file_name")),
            ("top_directories", top_table(&self.top_directories, "file_dir")),
            ("top_processes", top_table(&self.top_processes, "process")),
            ("timeline", self.timeline_table()),
            ("stragglers", self.straggler_table()),
        ]
    }

    fn job_table(&self) -> Table {
        let job = &self.job;
        let mut table = Table::with_rows(1);
        let mut int = |name: &str, unit: Unit, value: i64| table.ints(name, unit, std::iter::once(Some(value)));
        int("origin_ns", Unit::Nanoseconds, job.origin);
        int("events", Unit::Count, clamp(job.events));
        int("ignored_events", Unit::Count, clamp(job.ignored));
        int("processes", Unit::Count, clamp(job.processes));
        int("hosts", Unit::Count, clamp(job.hosts));
        int("files", Unit::Count, clamp(job.files));
        int("io_calls", Unit::Count, clamp(job.traffic.calls));
        int("total_calls", Unit::Count, clamp(job.total_calls));
        int("calls_recorded_twice", Unit::Count, clamp(job.recorded_twice));
        int("read_bytes", Unit::Bytes, clamp(job.traffic.read_bytes));
        int("written_bytes", Unit::Bytes, clamp(job.traffic.write_bytes));
        int("trace_files", Unit::Count, clamp(job.sources));
        int("trace_bytes", Unit::Bytes, clamp(job.source_bytes));
        int("flaws", Unit::Count, clamp(job.flaws));
        int("lost_bytes", Unit::Bytes, clamp(job.lost_bytes));
        int("unreadable_files", Unit::Count, clamp(job.unreadable.len() as u64));
        table.times("time", std::iter::once(Some(job.time.into())));
        table.times("io_time_sum", std::iter::once(Some(job.traffic.time_ns.into())));
        table.texts("preset", std::iter::once(Some(self.preset.name().to_owned())));
        table
    }

    fn layer_table(&self) -> Table {
        let mut table = Table::with_rows(self.layers.len());
        let each = || self.layers.iter();
        table.texts("layer", each().map(|layer| Some(layer.name.clone())));
        table.texts("parent", each().map(|layer| layer.parent.clone()));
        table.ints("count", Unit::Count, each().map(|layer| Some(clamp(layer.count))));
        table.ints("size", Unit::Bytes, each().map(|layer| Some(clamp(layer.size))));
        table.ints("processes", Unit::Count, each().map(|layer| Some(clamp(layer.processes))));
        table.times("time_sum", each().map(|layer| Some(layer.time_sum)));
        let known = KnownWalls(&self.layers);
        let wall = |value: i128, known: bool| known.then_some(value);
        table.times("time_union", each().map(|layer| wall(layer.time_union, known.union(layer))));
        table.times("time_union_proc", each().map(|layer| wall(layer.time_union_proc, known.union(layer))));
        table.times("time_union_proc_max", each().map(|layer| wall(layer.time_union_proc_max, known.union(layer))));
        table.times("time_self", each().map(|layer| wall(layer.time_self, known.own(layer))));
        table.times(
            "time_unoverlapped",
            each().map(|layer| layer.unoverlapped.and_then(|time| wall(time, known.unoverlapped(layer)))),
        );
        for (place, other) in self.layers.iter().enumerate() {
            let column = format!("overlap_{}", other.name);
            table.times(column, each().map(|layer| wall(layer.overlap[place], known.overlap(layer, other))));
        }
        table.ints("total_calls", Unit::Count, each().map(|layer| Some(clamp(layer.totals))));
        table
    }

    fn size_table(&self) -> Table {
        let mut table = Table::with_rows(SIZE_BINS);
        table.texts("size_bin", (0..SIZE_BINS).map(|bin| Some(bin_label(bin).to_owned())));
        table.ints("reads", Unit::Count, self.sizes.iter().map(|(reads, _)| Some(clamp(*reads))));
        table.ints("writes", Unit::Count, self.sizes.iter().map(|(_, writes)| Some(clamp(*writes))));
        table
    }

    fn timeline_table(&self) -> Table {
        let mut table = Table::with_rows(self.timeline.len());
        let each = || self.timeline.iter();
        let start = |bucket: u32| i128::from(bucket) * i128::from(self.width_ns);
        table.ints("time_range", Unit::Id, each().map(|(bucket, _)| Some(i64::from(*bucket))));
        table.times("time_start", each().map(|(bucket, _)| Some(start(*bucket))));
        traffic_columns(&mut table, &each().map(|(_, traffic)| *traffic).collect::<Vec<_>>());
        table
    }

    fn straggler_table(&self) -> Table {
        let mut table = Table::with_rows(self.stragglers.len());
        let each = || self.stragglers.iter();
        table.texts("kind", each().map(|one| Some(one.kind.to_owned())));
        table.texts("name", each().map(|one| Some(one.name.clone())));
        table.texts("program", each().map(|one| one.program.clone()));
        table.ints("pid", Unit::Id, each().map(|one| one.pid));
        table.times("time", each().map(|one| Some(one.time)));
        table.floats("median", Unit::Seconds, each().map(|one| Some(one.median / 1e9)));
        table.floats("ratio", Unit::Number, each().map(|one| Some(one.ratio)));
        table.floats("z_score", Unit::Number, each().map(|one| Some(one.score)));
        table
    }
}

fn top_table(rows: &[TopRow], name: &str) -> Table {
    let mut table = Table::with_rows(rows.len());
    table.texts(name, rows.iter().map(|row| Some(row.name.clone())));
    if name == "process" {
        table.texts("program", rows.iter().map(|row| row.program.clone()));
        table.ints("rank", Unit::Id, rows.iter().map(|row| row.rank));
        table.ints("pid", Unit::Id, rows.iter().map(|row| row.pid));
    } else {
        table.ints("files", Unit::Count, rows.iter().map(|row| Some(clamp(row.files))));
    }
    traffic_columns(&mut table, &rows.iter().map(|row| row.traffic).collect::<Vec<_>>());
    table
}

fn traffic_columns(table: &mut Table, rows: &[IoSums]) {
    let each = || rows.iter();
    table.ints("calls", Unit::Count, each().map(|row| Some(clamp(row.calls))));
    table.ints("metadata_calls", Unit::Count, each().map(|row| Some(clamp(row.metadata_calls))));
    table.ints("read_bytes", Unit::Bytes, each().map(|row| Some(clamp(row.read_bytes))));
    table.ints("written_bytes", Unit::Bytes, each().map(|row| Some(clamp(row.write_bytes))));
    table.times("time_sum", each().map(|row| Some(row.time_ns.into())));
    table.floats(
        "bandwidth",
        Unit::BytesPerSecond,
        each().map(|row| ratio(row.bytes() as f64, seconds(row.time_ns.into())).filter(|_| row.bytes() > 0)),
    );
}

/// `zeros`: whether calls that move nothing have a size of 0, or none.
fn operation_table(rows: &[OperationRow], zeros: bool) -> Table {
    let mut table = Table::with_rows(rows.len());
    let each = || rows.iter();
    table.texts("cat", each().map(|row| Some(row.cat.clone())));
    table.texts("name", each().map(|row| Some(row.name.clone())));
    table.texts("io_cat", each().map(|row| row.io_cat.map(|io_cat| io_cat.label().to_owned())));
    table.ints("count", Unit::Count, each().map(|row| Some(clamp(row.count))));
    table.ints("size", Unit::Bytes, each().map(|row| (zeros || row.moved).then(|| clamp(row.size))));
    table.times("time_sum", each().map(|row| Some(row.time)));
    table.floats("time_mean", Unit::Seconds, each().map(|row| mean(seconds(row.time), row.count)));
    table.times("time_min", each().map(|row| row.extremes.map(|extremes| extremes.0.into())));
    table.times("time_max", each().map(|row| row.extremes.map(|extremes| extremes.1.into())));
    for (place, name) in ["time_p50", "time_p95", "time_p99"].into_iter().enumerate() {
        table.floats(name, Unit::Seconds, each().map(|row| row.percentiles.map(|all| all[place] / 1e9)));
    }
    table.floats("size_mean", Unit::Bytes, each().map(|row| mean(row.size as f64, row.sized?)));
    table.floats(
        "bandwidth",
        Unit::BytesPerSecond,
        each().map(|row| ratio(row.size as f64, seconds(row.time)).filter(|_| row.moved && row.is_measurable())),
    );
    table.ints("total_calls", Unit::Count, each().map(|row| Some(clamp(row.totals))));
    table
}
