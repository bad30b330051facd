//! The rules, and the table that names them. Each is a function from evidence to findings.

mod balance;
mod catch_all;
mod coverage;
mod metadata;
mod slope;
mod training;
mod transfers;

use weftline_index::Run;

use super::evidence::Evidence;
use super::sequences::Sequences;
use super::thresholds::Config;
use super::weigh::Weighed;
use super::{Finding, Severity, WallTime};

/// A rule, for people.
#[derive(Debug, Clone, Copy)]
pub struct RuleInfo {
    /// Its id.
    pub id: &'static str,
    /// A few words.
    pub title: &'static str,
    /// When it speaks.
    pub when: &'static str,
    /// What to do about it.
    pub advice: &'static str,
    ask: fn(&Case<'_>) -> Vec<Finding>,
}

/// What a rule may look at.
pub(crate) struct Case<'a> {
    pub run: &'a Run,
    pub evidence: &'a Evidence,
    pub sequences: &'a Sequences,
    pub config: &'a Config,
    /// Where the wall time went, if that can be told.
    pub wall: Option<&'a WallTime>,
}

/// All rules.
pub fn rules() -> &'static [RuleInfo] {
    TABLE
}

/// Asks all that are not off.
pub(crate) fn ask(
    run: &Run,
    evidence: &Evidence,
    sequences: &Sequences,
    config: &Config,
    wall: Option<&WallTime>,
) -> Vec<Finding> {
    let case = Case { run, evidence, sequences, config, wall };
    let mut found: Vec<Finding> =
        TABLE.iter().filter(|rule| !config.is_off(rule.id)).flat_map(|rule| (rule.ask)(&case)).collect();
    // Where one storm is nearly all of the metadata, its name says more.
    let storm =
        found.iter().filter(|finding| finding.rule.ends_with("-storm")).map(|finding| finding.at_stake.time_ns).max();
    found.retain(|finding| finding.rule != "metadata-bound" || storm.unwrap_or(0) < finding.at_stake.time_ns / 5 * 4);
    // What another rule explains needs no catch-all.
    let explained = found.iter().filter(|finding| !is_catch_all(&finding.rule)).map(|finding| finding.at_stake.time_ns);
    let explained = explained.max().unwrap_or(0);
    found.retain(|finding| !is_catch_all(&finding.rule) || explained < finding.at_stake.time_ns / 2);
    found
}

/// Whether a rule says where the time went rather than what is wrong.
pub(crate) fn is_catch_all(rule: &str) -> bool {
    rule == catch_all::IO || rule == catch_all::WAITING
}

impl Case<'_> {
    /// A finding of a rule; nothing when its score is zero.
    fn finding(&self, rule: &str, weighed: Weighed, what: String, query: String) -> Option<Finding> {
        let info = TABLE.iter().find(|info| info.id == rule)?;
        Some(Finding {
            rule: info.id.to_owned(),
            severity: Severity::of(weighed.score)?,
            score: weighed.score,
            title: info.title.to_owned(),
            what,
            place: weighed.place,
            at_stake: weighed.impact,
            advice: info.advice.to_owned(),
            query,
        })
    }
}

const TABLE: &[RuleInfo] = &[
    RuleInfo {
        id: "small-reads",
        title: "small reads",
        when: "Most reads of a file by a process ask the kernel for less than a page. Reads from streams do not count: a stream gathers them.",
        advice: "Read larger pieces, or through a buffer: a stream, BufReader, io.BufferedReader; pack small records into larger ones.",
        ask: transfers::small_reads,
    },
    RuleInfo {
        id: "small-writes",
        title: "small writes",
        when: "Most writes of a process to a file hand the kernel less than a page.",
        advice: "Gather output in a buffer and write it in pieces of 64 KiB or more; do not flush after every line.",
        ask: transfers::small_writes,
    },
    RuleInfo {
        id: "random-access",
        title: "random access",
        when: "Most transfers on a file begin before or far behind the end of the one before, and are not large.",
        advice: "Sort the accesses by offset, read whole blocks and pick from memory, or store what is used together side by side.",
        ask: transfers::random_access,
    },
    RuleInfo {
        id: "re-reads",
        title: "the same bytes read again",
        when: "A process reads a file's bytes several times over.",
        advice: "Keep what is used again in memory, or copy it to a local disk first.",
        ask: transfers::re_reads,
    },
    RuleInfo {
        id: "open-storm",
        title: "the same files opened again and again",
        when: "A process opens the same file many times, with or without success.",
        advice: "Open once and keep the descriptor; pread lets threads share it; remember which paths do not exist.",
        ask: metadata::open_storm,
    },
    RuleInfo {
        id: "stat-storm",
        title: "the same paths looked up again and again",
        when: "A process asks for the attributes of the same path many times.",
        advice: "Remember the answer; list a directory once instead of probing names; shorten search paths (PYTHONPATH, LD_LIBRARY_PATH).",
        ask: metadata::stat_storm,
    },
    RuleInfo {
        id: "seek-storm",
        title: "more seeks than transfers",
        when: "A process seeks in a file at least as often as it transfers.",
        advice: "Use pread and pwrite, which say where; do not ask for a position that the program knows.",
        ask: metadata::seek_storm,
    },
    RuleInfo {
        id: "fsync-per-write",
        title: "syncs to disk again and again",
        when: "A program waits for the disk many times, with few bytes each time (fsync, fdatasync, or writes to files opened with O_SYNC or O_DSYNC), and that takes its time.",
        advice: "Sync once, when a unit of work is complete; put many rows into one transaction.",
        ask: transfers::fsync_per_write,
    },
    RuleInfo {
        id: "metadata-bound",
        title: "more time for names than for content",
        when: "Most of the I/O time of a job that moves data goes to opening, closing, looking up and listing.",
        advice: "Pack many small files into few large ones (tar, WebDataset, HDF5, Parquet); open once; list once.",
        ask: metadata::metadata_bound,
    },
    RuleInfo {
        id: "reader-skew",
        title: "one process reads nearly everything",
        when: "Among processes of the same program that began together, one reads most of the bytes.",
        advice: "Let every process read its part; read collectively where the format can.",
        ask: balance::reader_skew,
    },
    RuleInfo {
        id: "writer-skew",
        title: "one process writes nearly everything",
        when: "Among processes of the same program that began together, one writes most of the bytes.",
        advice: "Let every process write its part, into files of its own or collectively.",
        ask: balance::writer_skew,
    },
    RuleInfo {
        id: "straggler-process",
        title: "all wait for one process",
        when: "Of processes of the same program that began together, one ends long after the median.",
        advice: "Look at what it did while the others had ended; give out work in smaller pieces.",
        ask: balance::straggler_process,
    },
    RuleInfo {
        id: "straggler-host",
        title: "one host is slower",
        when: "The processes of one host took much longer, or spent much longer in I/O, than those of the median host.",
        advice: "Compare the host's disks, network and load with the others'; leave it out of the job if it is ill.",
        ask: balance::straggler_host,
    },
    RuleInfo {
        id: "rank-imbalance",
        title: "ranks have unequal work",
        when: "Of ranks of the same program, the longest I/O, fetch or compute time of one is far above the mean of all.",
        advice: "I/O or waiting for data: deal out files by size rather than by number, and shuffle them. Compute: give every rank as much to compute, by cost rather than by number of items.",
        ask: balance::rank_imbalance,
    },
    RuleInfo {
        id: "unaligned-io",
        title: "transfers off block boundaries",
        when: "Most transfers of a block or more begin inside a block. Its score counts half: page caches hide much of it.",
        advice: "Start records at multiples of 4096 bytes; put headers into a block of their own.",
        ask: transfers::unaligned,
    },
    RuleInfo {
        id: "tiny-buffers",
        title: "streams without a useful buffer",
        when: "A stream is flushed for nearly every write, or was told to have no buffer and then used for small pieces.",
        advice: "Leave the stream its buffer, or give it a larger one (setvbuf); flush when a unit of work is complete.",
        ask: transfers::tiny_buffers,
    },
    RuleInfo {
        id: "read-after-write",
        title: "data passed on through files",
        when: "Bytes are read back from files that the job wrote before. Its score counts half: a part of that may be wanted.",
        advice: "Keep the data in memory, pass it through a pipe or shared memory, or put such files on a local disk or tmpfs.",
        ask: transfers::read_after_write,
    },
    RuleInfo {
        id: "checkpoint-stall",
        title: "training stands still for checkpoints",
        when: "Checkpoints take a part of the time in which nothing is computed.",
        advice: "Save in the background from a copy in memory, to a local disk first, less often, or sharded over ranks.",
        ask: training::checkpoint_stall,
    },
    RuleInfo {
        id: "loader-starvation",
        title: "the model waits for data",
        when: "The training loop waits for its next batch while nothing is computed.",
        advice: "Load ahead (more workers, prefetch), make samples cheaper to read and decode, or bring the data nearer.",
        ask: training::loader_starvation,
    },
    RuleInfo {
        id: "too-few-workers",
        title: "too few loader workers",
        when: "The model waits for data, and the loop loads it itself or its workers are busy nearly all the time.",
        advice: "Raise the number of loader workers (num_workers), as far as processors and memory go.",
        ask: training::too_few_workers,
    },
    RuleInfo {
        id: "slope",
        title: "calls that are slower than others like them",
        when: "Files, processes or periods take a large part of the I/O time, far more than the same operations of the same program take on average, and move less than their part of the bytes. The score is DFAnalyzer's normalised slope, (atan(slope) - 45°) / 45°, with calls weighed by their operation.",
        advice: "Look at those calls first: they wait for something that others do not.",
        ask: slope::slope,
    },
    RuleInfo {
        id: catch_all::IO,
        title: "most of the time is file I/O",
        when: "File I/O has most of the wall time, and no rule explains half of that. It names the operation, file and process. Its score is 0.3 from `dominant-io.seconds` on and less in proportion below: it says where the time went, not what is wrong.",
        advice: "Look at those calls first: fewer and larger ones, nearer storage, or I/O beside computing.",
        ask: catch_all::io,
    },
    RuleInfo {
        id: catch_all::WAITING,
        title: "most of the time is waiting",
        when: "Waiting has most of the wall time, and no rule explains half of that. It names whom the process waited for. Its score is 0.3 from `dominant-waiting.seconds` on and less in proportion below; half of that where waiting is what the process is there for: for children, threads, time or the terminal, or a process that computes next to nothing itself (a shell, a server).",
        advice: "Look at what the other one does meanwhile: make it faster, or let it work ahead so that nobody waits.",
        ask: catch_all::waiting,
    },
    RuleInfo {
        id: "lost-coverage",
        title: "the trace does not show everything",
        when: "Trace files are damaged, events were dropped, programs could not be traced, or the kernel counted many more bytes than the trace holds.",
        advice: "`weft check` says per process what is missing and why; other findings may be understated.",
        ask: coverage::lost_coverage,
    },
];
