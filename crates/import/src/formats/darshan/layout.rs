//! Which counters a record of a module has, by the module's version; and which calls they count.
//!
//! A record is its file's number, its rank (-1: all ranks), for parts of files the number of the whole file, then integers, then real numbers. Newer
//! versions have more of them, in between.

use Part::{Meta, Read, Wait, Write};

/// The counters of one module's records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// What the names of its counters begin with.
    pub(super) prefix: &'static str,
    /// Whether a record names the file that it is a part of.
    pub(super) part: bool,
    /// Names of integers, without the prefix.
    pub(super) integers: Vec<String>,
    /// Names of real numbers, without the prefix and `F_`.
    pub(super) reals: Vec<String>,
    pub(super) calls: &'static [Call],
}

/// What a call belongs to: bytes and times are known by these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Meta,
    Read,
    Write,
    Wait,
}

impl Part {
    pub(super) const ALL: [Part; 4] = [Meta, Read, Write, Wait];

    /// The counter of its bytes.
    pub(super) fn bytes(self) -> &'static str {
        match self {
            Read => "BYTES_READ",
            Write => "BYTES_WRITTEN",
            Meta | Wait => "",
        }
    }

    /// The counter of its time.
    pub(super) fn time(self) -> &'static str {
        match self {
            Meta => "META_TIME",
            Read => "READ_TIME",
            Write => "WRITE_TIME",
            Wait => "WAIT_TIME",
        }
    }

    /// Its first start and its last end.
    pub(super) fn life(self) -> (&'static str, &'static str) {
        match self {
            Meta => ("OPEN_START_TIMESTAMP", "CLOSE_END_TIMESTAMP"),
            Read => ("READ_START_TIMESTAMP", "READ_END_TIMESTAMP"),
            Write => ("WRITE_START_TIMESTAMP", "WRITE_END_TIMESTAMP"),
            Wait => ("WAIT_START_TIMESTAMP", "WAIT_END_TIMESTAMP"),
        }
    }
}

/// A kind of call that records count.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) name: &'static str,
    pub(super) part: Part,
    /// Counters whose sum it is.
    pub(super) counts: &'static [&'static str],
    /// Counters that those include and that are other calls.
    pub(super) less: &'static [&'static str],
}

const fn call(name: &'static str, part: Part, counts: &'static [&'static str]) -> Call {
    Call { name, part, counts, less: &[] }
}

// The first call of a part that was made has its bytes and time: Darshan does not tell them by call. Of a file's synchronising it adds the time to
// that of its writing.
const POSIX_CALLS: &[Call] = &[
    Call { name: "open", part: Meta, counts: &["OPENS"], less: &["FILENOS", "DUPS"] },
    call("fopen", Meta, &["FOPENS"]),
    call("stat", Meta, &["STATS"]),
    call("lseek", Meta, &["SEEKS"]),
    call("fseek", Meta, &["FSEEKS"]),
    // The file that it becomes has it too.
    call("rename", Meta, &["RENAME_SOURCES"]),
    call("dup", Meta, &["DUPS"]),
    call("fileno", Meta, &["FILENOS"]),
    call("mmap", Meta, &["MMAPS"]),
    call("read", Read, &["READS"]),
    call("fread", Read, &["FREADS"]),
    call("write", Write, &["WRITES"]),
    call("fwrite", Write, &["FWRITES"]),
    call("fsync", Write, &["FSYNCS"]),
    call("fdatasync", Write, &["FDSYNCS"]),
];
const STDIO_CALLS: &[Call] = &[
    Call { name: "fopen", part: Meta, counts: &["OPENS"], less: &["FDOPENS"] },
    call("fdopen", Meta, &["FDOPENS"]),
    call("fseek", Meta, &["SEEKS"]),
    call("fread", Read, &["READS"]),
    call("fwrite", Write, &["WRITES"]),
    call("fflush", Write, &["FLUSHES"]),
];
const MPIIO_CALLS: &[Call] = &[
    call("open", Meta, &["INDEP_OPENS", "COLL_OPENS"]),
    call("set_view", Meta, &["VIEWS"]),
    call("read", Read, &["INDEP_READS", "COLL_READS", "SPLIT_READS", "NB_READS"]),
    call("write", Write, &["INDEP_WRITES", "COLL_WRITES", "SPLIT_WRITES", "NB_WRITES"]),
    call("sync", Write, &["SYNCS"]),
];
const H5F_CALLS: &[Call] = &[call("open", Meta, &["OPENS"]), call("flush", Meta, &["FLUSHES"])];
const H5D_CALLS: &[Call] = &[
    call("open", Meta, &["OPENS"]),
    call("flush", Meta, &["FLUSHES"]),
    call("read", Read, &["READS"]),
    call("write", Write, &["WRITES"]),
];
const PNETCDF_CALLS: &[Call] = &[call("open", Meta, &["INDEP_OPENS", "COLL_OPENS"])];
// Bytes of a whole file are those of its variables and of the library itself: they stay counters.
const PNETCDF_FILE_CALLS: &[Call] = &[
    call("create", Meta, &["CREATES"]),
    call("open", Meta, &["OPENS"]),
    call("redef", Meta, &["REDEFS"]),
    call("sync", Meta, &["SYNCS"]),
    call("wait", Wait, &["INDEP_WAITS", "COLL_WAITS"]),
];
const PNETCDF_VAR_CALLS: &[Call] = &[
    call("open", Meta, &["OPENS"]),
    call("read", Read, &["INDEP_READS", "COLL_READS", "NB_READS"]),
    call("write", Write, &["INDEP_WRITES", "COLL_WRITES", "NB_WRITES"]),
];

const POSIX: &str = "OPENS FILENOS DUPS READS WRITES SEEKS STATS MMAPS FSYNCS FDSYNCS RENAME_SOURCES RENAME_TARGETS \
    RENAMED_FROM MODE BYTES_READ BYTES_WRITTEN MAX_BYTE_READ MAX_BYTE_WRITTEN CONSEC_READS CONSEC_WRITES SEQ_READS \
    SEQ_WRITES RW_SWITCHES MEM_NOT_ALIGNED MEM_ALIGNMENT FILE_NOT_ALIGNED FILE_ALIGNMENT MAX_READ_TIME_SIZE \
    MAX_WRITE_TIME_SIZE *SIZES *STRIDES *ACCESSES *RANKS";
const STDIO: &str = "OPENS FDOPENS READS WRITES SEEKS FLUSHES BYTES_WRITTEN BYTES_READ MAX_BYTE_READ MAX_BYTE_WRITTEN \
    *RANKS";
const MPIIO: &str = "INDEP_OPENS COLL_OPENS INDEP_READS INDEP_WRITES COLL_READS COLL_WRITES SPLIT_READS SPLIT_WRITES \
    NB_READS NB_WRITES SYNCS HINTS VIEWS MODE BYTES_READ BYTES_WRITTEN RW_SWITCHES MAX_READ_TIME_SIZE \
    MAX_WRITE_TIME_SIZE *SIZES_AGG *ACCESSES *RANKS";
const H5D: &str = "OPENS READS WRITES FLUSHES BYTES_READ BYTES_WRITTEN RW_SWITCHES REGULAR_HYPERSLAB_SELECTS \
    IRREGULAR_HYPERSLAB_SELECTS POINT_SELECTS MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE *SIZES_AGG *SHAPES DATASPACE_NDIMS \
    DATASPACE_NPOINTS DATATYPE_SIZE CHUNK_SIZE_D1 CHUNK_SIZE_D2 CHUNK_SIZE_D3 CHUNK_SIZE_D4 CHUNK_SIZE_D5 \
    USE_MPIIO_COLLECTIVE USE_DEPRECATED *RANKS";
const PNETCDF_FILE: &str = "CREATES OPENS REDEFS INDEP_WAITS COLL_WAITS SYNCS BYTES_READ BYTES_WRITTEN WAIT_FAILURES";
const PNETCDF_VAR: &str = "OPENS INDEP_READS INDEP_WRITES COLL_READS COLL_WRITES NB_READS NB_WRITES BYTES_READ \
    BYTES_WRITTEN RW_SWITCHES PUT_VAR PUT_VAR1 PUT_VARA PUT_VARS PUT_VARM PUT_VARN PUT_VARD GET_VAR GET_VAR1 GET_VARA \
    GET_VARS GET_VARM GET_VARN GET_VARD IPUT_VAR IPUT_VAR1 IPUT_VARA IPUT_VARS IPUT_VARM IPUT_VARN IGET_VAR IGET_VAR1 \
    IGET_VARA IGET_VARS IGET_VARM IGET_VARN BPUT_VAR BPUT_VAR1 BPUT_VARA BPUT_VARS BPUT_VARM BPUT_VARN \
    MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE *SIZES_AGG *SHAPES NDIMS NPOINTS DATATYPE_SIZE IS_RECORD_VAR *RANKS";

/// The real numbers of all modules that move bytes, but STDIO.
const REALS: &str = "OPEN_START_TIMESTAMP READ_START_TIMESTAMP WRITE_START_TIMESTAMP CLOSE_START_TIMESTAMP \
    OPEN_END_TIMESTAMP READ_END_TIMESTAMP WRITE_END_TIMESTAMP CLOSE_END_TIMESTAMP READ_TIME WRITE_TIME META_TIME \
    MAX_READ_TIME MAX_WRITE_TIME *TIMES";
const STDIO_REALS: &str = "META_TIME WRITE_TIME READ_TIME OPEN_START_TIMESTAMP CLOSE_START_TIMESTAMP \
    WRITE_START_TIMESTAMP READ_START_TIMESTAMP OPEN_END_TIMESTAMP CLOSE_END_TIMESTAMP WRITE_END_TIMESTAMP \
    READ_END_TIMESTAMP *TIMES";
const OPEN_REALS: &str = "OPEN_START_TIMESTAMP CLOSE_START_TIMESTAMP OPEN_END_TIMESTAMP CLOSE_END_TIMESTAMP";
const WAIT_REALS: &str = "OPEN_START_TIMESTAMP CLOSE_START_TIMESTAMP WAIT_START_TIMESTAMP OPEN_END_TIMESTAMP \
    CLOSE_END_TIMESTAMP WAIT_END_TIMESTAMP META_TIME WAIT_TIME";
/// Real numbers that came later than the others.
const LATER: &[&str] = &["CLOSE_START_TIMESTAMP", "OPEN_END_TIMESTAMP"];

const BINS: [&str; 10] =
    ["0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M", "1M_4M", "4M_10M", "10M_100M", "100M_1G", "1G_PLUS"];

/// The names in a text; a word with a star stands for several.
fn expand(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for word in text.split_whitespace() {
        let four = |form: &str| (1..=4).map(|place| form.replace('#', &place.to_string())).collect::<Vec<_>>();
        let sizes = |agg: &str| {
            let way = |way: &str| BINS.map(|bin| format!("SIZE_{way}_{agg}{bin}"));
            [way("READ"), way("WRITE")].concat()
        };
        names.extend(match word {
            "*SIZES" => sizes(""),
            "*SIZES_AGG" => sizes("AGG_"),
            "*STRIDES" => [four("STRIDE#_STRIDE"), four("STRIDE#_COUNT")].concat(),
            "*ACCESSES" => [four("ACCESS#_ACCESS"), four("ACCESS#_COUNT")].concat(),
            "*SHAPES" => {
                let shapes = four("ACCESS#_").into_iter().flat_map(|access| {
                    let along = |what: &str| (1..=5).map(|side| format!("{access}{what}_D{side}")).collect::<Vec<_>>();
                    [vec![format!("{access}ACCESS")], along("LENGTH"), along("STRIDE")].concat()
                });
                [shapes.collect(), four("ACCESS#_COUNT")].concat()
            }
            "*RANKS" => {
                ["FASTEST_RANK", "FASTEST_RANK_BYTES", "SLOWEST_RANK", "SLOWEST_RANK_BYTES"].map(str::to_owned).to_vec()
            }
            "*TIMES" => ["FASTEST_RANK_TIME", "SLOWEST_RANK_TIME", "VARIANCE_RANK_TIME", "VARIANCE_RANK_BYTES"]
                .map(str::to_owned)
                .to_vec(),
            word => vec![word.to_owned()],
        });
    }
    names
}

impl Layout {
    fn new(prefix: &'static str, integers: &str, reals: &str, calls: &'static [Call]) -> Layout {
        Layout { prefix, part: false, integers: expand(integers), reals: expand(reals), calls }
    }

    fn of_parts(mut self) -> Layout {
        self.part = true;
        self
    }

    /// Without some counters.
    fn without(mut self, names: &[&str]) -> Layout {
        for all in [&mut self.integers, &mut self.reals] {
            all.retain(|name| !names.contains(&name.as_str()));
        }
        self
    }

    /// The layout of a module's version; none where it is not known.
    pub(super) fn of(module: &str, version: u32) -> Option<Layout> {
        const RENAMES: &[&str] = &["FILENOS", "DUPS", "RENAME_SOURCES", "RENAME_TARGETS", "RENAMED_FROM"];
        const STREAMS: [&str; 4] = ["FOPENS", "FREADS", "FWRITES", "FSEEKS"];
        let posix = || Layout::new("POSIX_", POSIX, REALS, POSIX_CALLS);
        let stdio = || Layout::new("STDIO_", STDIO, STDIO_REALS, STDIO_CALLS);
        let mpiio = || Layout::new("MPIIO_", MPIIO, REALS, MPIIO_CALLS);
        let h5d = || Layout::new("H5D_", H5D, REALS, H5D_CALLS);
        let pnetcdf = || Layout::new("PNETCDF_", "INDEP_OPENS COLL_OPENS", OPEN_REALS, PNETCDF_CALLS);
        let layout = match (module, version) {
            ("POSIX", 1) => {
                let mut layout = posix().without(RENAMES).without(LATER);
                layout.integers.splice(6..6, STREAMS.map(str::to_owned));
                layout
            }
            ("POSIX", 2) => posix().without(RENAMES).without(LATER),
            ("POSIX", 3) => posix().without(RENAMES),
            ("POSIX", 4) => posix(),
            ("STDIO", 1) => stdio().without(&["FDOPENS"]),
            ("STDIO", 2) => stdio(),
            ("MPI-IO", 1 | 2) => mpiio().without(LATER),
            ("MPI-IO", 3) => mpiio(),
            ("H5F", 1) => Layout::new("H5F_", "OPENS", OPEN_REALS, H5F_CALLS).without(LATER),
            ("H5F", 2) => Layout::new("H5F_", "OPENS", OPEN_REALS, H5F_CALLS),
            ("H5F", 3) => Layout::new("H5F_", "OPENS FLUSHES USE_MPIIO", &format!("{OPEN_REALS} META_TIME"), H5F_CALLS),
            ("H5D", 1) => h5d(),
            ("H5D", 2) => h5d().of_parts(),
            ("PNETCDF" | "PNETCDF_FILE", 1) => pnetcdf().without(LATER),
            ("PNETCDF" | "PNETCDF_FILE", 2) => pnetcdf(),
            ("PNETCDF_FILE", 3) => Layout::new("PNETCDF_FILE_", PNETCDF_FILE, WAIT_REALS, PNETCDF_FILE_CALLS),
            ("PNETCDF_VAR", 1) => Layout::new("PNETCDF_VAR_", PNETCDF_VAR, REALS, PNETCDF_VAR_CALLS).of_parts(),
            _ => return None,
        };
        Some(layout)
    }

    /// Bytes of a record.
    pub(super) fn length(&self) -> usize {
        (2 + usize::from(self.part) + self.integers.len() + self.reals.len()) * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_the_lengths_that_darshan_writes() {
        for (module, version, length) in [
            ("POSIX", 1, 680),
            ("POSIX", 2, 648),
            ("POSIX", 3, 664),
            ("POSIX", 4, 704),
            ("STDIO", 1, 240),
            ("STDIO", 2, 248),
            ("MPI-IO", 1, 544),
            ("MPI-IO", 2, 544),
            ("MPI-IO", 3, 560),
            ("H5F", 1, 40),
            ("H5F", 2, 56),
            ("H5F", 3, 80),
            ("H5D", 1, 904),
            ("H5D", 2, 912),
            ("PNETCDF", 1, 48),
            ("PNETCDF", 2, 64),
            ("PNETCDF_FILE", 3, 152),
            ("PNETCDF_VAR", 1, 1120),
        ] {
            let layout = Layout::of(module, version).expect("a layout");
            assert_eq!(layout.length(), length, "{module} {version}");
        }
        assert_eq!(Layout::of("POSIX", 5), None);
        assert_eq!(Layout::of("BG/Q", 1), None);
    }

    #[test]
    fn calls_name_counters_that_some_version_has() {
        let known = |module: &str| {
            let layouts = (1..9).filter_map(|version| Layout::of(module, version));
            layouts.fold((Vec::new(), &[][..]), |(mut names, _), layout| {
                names.extend(layout.integers);
                (names, layout.calls)
            })
        };
        for module in ["POSIX", "STDIO", "MPI-IO", "H5F", "H5D", "PNETCDF", "PNETCDF_FILE", "PNETCDF_VAR"] {
            let (names, calls) = known(module);
            for counter in calls.iter().flat_map(|call| call.counts.iter().chain(call.less)) {
                assert!(names.iter().any(|name| name == counter), "{module}: {counter}");
            }
        }
    }
}
