//! What a trace file holds, by a scan of all its lines: what `weft info` tells of traces that nobody wrote a manifest for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;
use weftline_format::{Phase, reader};

use crate::units::path_as_text;

/// What can be told of trace files without a manifest.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FileInventory {
    /// The file.
    #[serde(serialize_with = "path_as_text")]
    pub path: PathBuf,
    /// Why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// Who wrote it.
    pub dialect: String,
    /// Spans, instants and counters.
    pub events: u64,
    /// Of those: spans, by their starts.
    pub spans: u64,
    /// Lines that tell of processes, threads and files.
    pub metadata: u64,
    /// Pids among the events.
    pub processes: usize,
    /// Threads among them.
    pub threads: usize,
    /// When the first began, ns since the epoch.
    pub first_ns: Option<i64>,
    /// When the last ended.
    pub last_ns: Option<i64>,
    /// Events by category.
    pub categories: BTreeMap<String, u64>,
    /// What is wrong with it, in words.
    pub damage: Vec<String>,
}

impl FileInventory {
    /// Reads a whole file.
    pub fn of(path: &Path) -> FileInventory {
        let mut info = FileInventory { path: path.to_owned(), ..FileInventory::default() };
        let mut threads = BTreeSet::new();
        let scanned = reader::scan_file(path, &mut |event| {
            if event.phase == Phase::Metadata {
                info.metadata += 1;
                return;
            }
            info.events += 1;
            info.spans += u64::from(matches!(event.phase, Phase::Complete | Phase::Begin | Phase::AsyncBegin));
            threads.insert((event.pid, event.tid));
            let category: &str = &event.cat;
            match info.categories.get_mut(category) {
                Some(count) => *count += 1,
                None => {
                    info.categories.insert(category.to_owned(), 1);
                }
            }
            if let Some(start) = event.start_ns {
                info.first_ns = Some(info.first_ns.map_or(start, |first: i64| first.min(start)));
                let end = start.saturating_add(event.dur_ns.unwrap_or(0));
                info.last_ns = Some(info.last_ns.map_or(end, |last: i64| last.max(end)));
            }
        });
        let scanned = match scanned {
            Ok(scanned) => scanned,
            Err(error) => return FileInventory { unreadable: Some(error.source.to_string()), ..info },
        };
        info.threads = threads.len();
        info.processes = threads.iter().map(|(pid, _)| pid).collect::<BTreeSet<_>>().len();
        info.dialect = scanned.dialect.to_string();
        info.damage = scanned.damage.flaws.iter().map(ToString::to_string).collect();
        info
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_counted_by_what_it_holds() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("a.pfw");
        let lines = [
            r#"{"name":"process_name","ph":"M","pid":1,"tid":1,"args":{"name":"a"}}"#,
            r#"{"name":"read","cat":"POSIX","ph":"X","pid":1,"tid":1,"ts":5,"dur":2,"args":{}}"#,
            r#"{"name":"read","cat":"POSIX","ph":"X","pid":1,"tid":2,"ts":3,"dur":9,"args":{}}"#,
            r#"{"name":"cpu","cat":"sys","ph":"C","pid":2,"tid":0,"ts":4,"args":{"user":1}}"#,
        ];
        std::fs::write(&path, format!("[\n{}\n", lines.join("\n"))).expect("written");
        let found = FileInventory::of(&path);
        assert_eq!((found.events, found.spans, found.metadata), (3, 2, 1), "{found:?}");
        assert_eq!((found.processes, found.threads), (2, 3), "{found:?}");
        assert_eq!((found.first_ns, found.last_ns), (Some(3_000), Some(12_000)), "{found:?}");
        assert_eq!(found.categories, BTreeMap::from([("POSIX".to_owned(), 2), ("sys".to_owned(), 1)]));
        assert!(FileInventory::of(&place.path().join("nowhere.pfw")).unreadable.is_some());
    }
}
