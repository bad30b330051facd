//! A summary as tables, for CSV, JSON, SQLite and Parquet.

use crate::classify::{SIZE_BINS, bin_label};
use crate::statistics::{mean, ratio, seconds};
use crate::table::{Table, clamp};

use super::layers::KnownWalls;
use super::{Summary, TopRow, Traffic};

impl Summary {
    /// All sections by name.
    pub fn tables(&self) -> Vec<(&'static str, Table)> {
        vec![
            ("job", self.job_table()),
            ("layers", self.layer_table()),
            ("operations", self.operation_table()),
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
        let mut int = |name: &str, value: i64| table.ints(name, std::iter::once(Some(value)));
        int("origin_ns", job.origin);
        int("events", clamp(job.events));
        int("ignored_events", clamp(job.ignored));
        int("processes", clamp(job.processes));
        int("hosts", clamp(job.hosts));
        int("files", clamp(job.files));
        int("io_calls", clamp(job.traffic.calls));
        int("total_calls", clamp(job.total_calls));
        int("calls_recorded_twice", clamp(job.recorded_twice));
        int("read_bytes", clamp(job.traffic.read));
        int("written_bytes", clamp(job.traffic.written));
        int("trace_files", clamp(job.sources));
        int("trace_bytes", clamp(job.source_bytes));
        int("flaws", clamp(job.flaws));
        int("lost_bytes", clamp(job.lost_bytes));
        int("unreadable_files", clamp(job.unreadable.len() as u64));
        table.floats("time", std::iter::once(Some(seconds(job.time.into()))));
        table.floats("io_time_sum", std::iter::once(Some(seconds(job.traffic.time))));
        table.texts("preset", std::iter::once(Some(self.preset.name().to_owned())));
        table
    }

    fn layer_table(&self) -> Table {
        let mut table = Table::with_rows(self.layers.len());
        let each = || self.layers.iter();
        table.texts("layer", each().map(|layer| Some(layer.name.clone())));
        table.texts("parent", each().map(|layer| layer.parent.clone()));
        table.ints("count", each().map(|layer| Some(clamp(layer.count))));
        table.ints("size", each().map(|layer| Some(clamp(layer.size))));
        table.ints("processes", each().map(|layer| Some(clamp(layer.processes))));
        table.floats("time_sum", each().map(|layer| Some(seconds(layer.time_sum))));
        let known = KnownWalls(&self.layers);
        let wall = |value: i128, known: bool| known.then(|| seconds(value));
        table.floats("time_union", each().map(|layer| wall(layer.time_union, known.union(layer))));
        table.floats("time_union_proc", each().map(|layer| wall(layer.time_union_proc, known.union(layer))));
        table.floats("time_union_proc_max", each().map(|layer| wall(layer.time_union_proc_max, known.union(layer))));
        table.floats("time_self", each().map(|layer| wall(layer.time_self, known.own(layer))));
        table.floats(
            "time_unoverlapped",
            each().map(|layer| layer.unoverlapped.and_then(|time| wall(time, known.unoverlapped(layer)))),
        );
        for (place, other) in self.layers.iter().enumerate() {
            let column = format!("overlap_{}", other.name);
            table.floats(column, each().map(|layer| wall(layer.overlap[place], known.overlap(layer, other))));
        }
        table.ints("total_calls", each().map(|layer| Some(clamp(layer.totals))));
        table
    }

    fn operation_table(&self) -> Table {
        let mut table = Table::with_rows(self.operations.len());
        let each = || self.operations.iter();
        table.texts("cat", each().map(|row| Some(row.cat.clone())));
        table.texts("name", each().map(|row| Some(row.name.clone())));
        table.texts("io_cat", each().map(|row| row.io_cat.map(|io_cat| io_cat.label().to_owned())));
        table.ints("count", each().map(|row| Some(clamp(row.count))));
        table.ints("size", each().map(|row| Some(clamp(row.size))));
        table.floats("time_sum", each().map(|row| Some(seconds(row.time))));
        table.floats("time_mean", each().map(|row| mean(seconds(row.time), row.count)));
        table.floats("time_min", each().map(|row| row.extremes.map(|extremes| seconds(extremes.0.into()))));
        table.floats("time_max", each().map(|row| row.extremes.map(|extremes| seconds(extremes.1.into()))));
        for (place, name) in ["time_p50", "time_p95", "time_p99"].into_iter().enumerate() {
            table.floats(name, each().map(|row| row.percentiles.map(|all| all[place] / 1e9)));
        }
        table.floats("size_mean", each().map(|row| mean(row.size as f64, row.sized?)));
        table.floats("bandwidth", each().map(|row| ratio(row.size as f64, seconds(row.time)).filter(|_| row.moved)));
        table.ints("total_calls", each().map(|row| Some(clamp(row.totals))));
        table
    }

    fn size_table(&self) -> Table {
        let mut table = Table::with_rows(SIZE_BINS);
        table.texts("size_bin", (0..SIZE_BINS).map(|bin| Some(bin_label(bin).to_owned())));
        table.ints("reads", self.sizes.iter().map(|(reads, _)| Some(clamp(*reads))));
        table.ints("writes", self.sizes.iter().map(|(_, writes)| Some(clamp(*writes))));
        table
    }

    fn timeline_table(&self) -> Table {
        let mut table = Table::with_rows(self.timeline.len());
        let each = || self.timeline.iter();
        let start = |bucket: u32| seconds(i128::from(bucket) * i128::from(self.width_ns));
        table.ints("time_range", each().map(|(bucket, _)| Some(i64::from(*bucket))));
        table.floats("time_start", each().map(|(bucket, _)| Some(start(*bucket))));
        traffic_columns(&mut table, &each().map(|(_, traffic)| *traffic).collect::<Vec<_>>());
        table
    }

    fn straggler_table(&self) -> Table {
        let mut table = Table::with_rows(self.stragglers.len());
        let each = || self.stragglers.iter();
        table.texts("kind", each().map(|one| Some(one.kind.to_owned())));
        table.texts("name", each().map(|one| Some(one.name.clone())));
        table.floats("time", each().map(|one| Some(seconds(one.time))));
        table.floats("median", each().map(|one| Some(one.median / 1e9)));
        table.floats("ratio", each().map(|one| Some(one.ratio)));
        table.floats("z_score", each().map(|one| Some(one.score)));
        table
    }
}

fn top_table(rows: &[TopRow], name: &str) -> Table {
    let mut table = Table::with_rows(rows.len());
    table.texts(name, rows.iter().map(|row| Some(row.name.clone())));
    if name != "process" {
        table.ints("files", rows.iter().map(|row| Some(clamp(row.files))));
    }
    traffic_columns(&mut table, &rows.iter().map(|row| row.traffic).collect::<Vec<_>>());
    table
}

fn traffic_columns(table: &mut Table, rows: &[Traffic]) {
    let each = || rows.iter();
    table.ints("calls", each().map(|row| Some(clamp(row.calls))));
    table.ints("metadata_calls", each().map(|row| Some(clamp(row.metadata_calls))));
    table.ints("read_bytes", each().map(|row| Some(clamp(row.read))));
    table.ints("written_bytes", each().map(|row| Some(clamp(row.written))));
    table.floats("time_sum", each().map(|row| Some(seconds(row.time))));
    table.floats(
        "bandwidth",
        each().map(|row| ratio(row.bytes() as f64, seconds(row.time)).filter(|_| row.bytes() > 0)),
    );
}
