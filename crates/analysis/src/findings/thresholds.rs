//! Every number that a rule compares with: its name, default, unit and reason, in one table from which `docs/findings.md` is made.

use std::path::Path;

use super::yaml::{self, Node};
use super::{FindingsError, custom, rules};

/// A number that can be set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// `rule.threshold`, as `--set` takes it.
    pub name: &'static str,
    /// Its value when nobody says otherwise.
    pub default: f64,
    /// What it counts.
    pub unit: &'static str,
    /// Why that value.
    pub why: &'static str,
}

macro_rules! thresholds {
    ($($key:ident: $name:literal = $default:literal, $unit:literal, $why:literal;)*) => {
        /// A threshold's place in the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Limit { $($key),* }

        const TABLE: &[Threshold] = &[
            $(Threshold { name: $name, default: $default, unit: $unit, why: $why }),*
        ];
    };
}

thresholds! {
    Share: "matter.share" = 0.05, "of the time", "What takes less than a twentieth of the job cannot make it noticeably faster.";
    Seconds: "matter.seconds" = 0.1, "s", "Less is within the noise of a program's start.";
    Calls: "matter.calls" = 10000.0, "calls", "So many calls count even if a cache made each of them cheap here: on a shared file system they are not.";
    FullShare: "matter.full-share" = 0.5, "of the time", "At this share a finding has its full score.";
    FullSeconds: "matter.full-seconds" = 2.0, "s", "Below it the score goes down in proportion: nobody tunes a program for a fraction of a second.";
    SmallRead: "small-reads.size" = 4096.0, "bytes", "A call below one page costs more for itself than for its bytes.";
    SmallReadPart: "small-reads.part" = 0.5, "of the reads", "A format with a few small headers is not meant.";
    SmallWrite: "small-writes.size" = 4096.0, "bytes", "As for reads; also, part of a page may have to be read before it can be written.";
    SmallWritePart: "small-writes.part" = 0.5, "of the writes", "As for reads.";
    RandomPart: "random-access.part" = 0.5, "of the transfers", "Below one half, read-ahead still does most of the work.";
    RandomSize: "random-access.size" = 262144.0, "bytes", "Larger pieces pay for the jump to them.";
    RandomGap: "random-access.gap" = 131072.0, "bytes", "A step ahead within Linux's default read-ahead window is as good as sequential.";
    RandomCalls: "random-access.calls" = 1000.0, "calls", "Fewer jumps are a directory of records or an index, not a pattern.";
    RereadFactor: "re-reads.factor" = 3.0, "times", "Once to look and once to read is usual; three times on average is not.";
    RereadBytes: "re-reads.bytes" = 67108864.0, "bytes", "Less fits into any cache.";
    OpenPerFile: "open-storm.per-file" = 50.0, "opens", "A file that one process opens so often could have stayed open.";
    StatPerFile: "stat-storm.per-file" = 100.0, "calls", "The answer did not change a hundred times.";
    SeekPart: "seek-storm.per-transfer" = 1.0, "seeks", "More seeks than transfers: most of them move nothing.";
    SyncCalls: "fsync-per-write.calls" = 50.0, "syncs", "A program that makes a few files durable is right to do so.";
    SyncBytes: "fsync-per-write.bytes" = 4194304.0, "bytes per sync", "A sync of more, a checkpoint's, takes as long as the disk needs for the bytes; fewer syncs would not make it faster.";
    MetadataPart: "metadata-bound.part" = 0.5, "of the I/O time", "More time for names and attributes than for content (as in WisIO's rule).";
    MetadataSeconds: "metadata-bound.seconds" = 1.0, "s", "Programs whose job is metadata (find, du, git status) are done by then.";
    MetadataPerFile: "metadata-bound.per-file" = 20.0, "calls per file", "To touch a file once takes fewer (zip and unzip: about ten), so packing, unpacking or copying a tree is not meant.";
    SkewPart: "writer-skew.part" = 0.8, "of the bytes", "With equal parts each of four processes would have a quarter.";
    SkewBytes: "writer-skew.bytes" = 67108864.0, "bytes", "Small outputs are rightly written by one.";
    SkewPeers: "writer-skew.peers" = 4.0, "processes", "With fewer, one of them having most is no pattern.";
    ReaderPart: "reader-skew.part" = 0.8, "of the bytes", "As for writers.";
    ReaderBytes: "reader-skew.bytes" = 67108864.0, "bytes", "As for writers.";
    ReaderPeers: "reader-skew.peers" = 4.0, "processes", "As for writers.";
    StragglerRatio: "straggler-process.ratio" = 1.5, "times the median", "Usual variation between equal processes stays below.";
    StragglerPeers: "straggler-process.peers" = 4.0, "processes", "A median of fewer says little.";
    StragglerSpread: "straggler-process.start-spread" = 0.1, "of the longest", "Only processes that began together are compared.";
    StragglerSeconds: "straggler-process.seconds" = 1.0, "s", "Waiting less is not worth a look.";
    HostRatio: "straggler-host.ratio" = 1.5, "times the median", "Equal hosts differ by less.";
    HostPeers: "straggler-host.peers" = 3.0, "hosts", "Of two hosts nobody knows which one is odd.";
    HostSeconds: "straggler-host.seconds" = 1.0, "s", "Waiting less is not worth a look.";
    UnalignedBlock: "unaligned-io.block" = 4096.0, "bytes", "The page, and the block of most file systems.";
    UnalignedPart: "unaligned-io.part" = 0.5, "of the transfers", "A header that shifts everything shows in nearly all of them.";
    UnalignedCalls: "unaligned-io.calls" = 1000.0, "calls", "Fewer do not matter.";
    TinyBufferPart: "tiny-buffers.flushes" = 0.5, "flushes per write", "A stream that is flushed after every other write has no buffer.";
    AgainBytes: "read-after-write.bytes" = 67108864.0, "bytes", "Less stays in the page cache and costs a copy.";
    AgainShare: "read-after-write.share" = 0.1, "of the time", "Handing files to the next program is usual; here it must cost.";
    CheckpointShare: "checkpoint-stall.share" = 0.05, "of the time", "Checkpoints that take less are well hidden.";
    FetchShare: "loader-starvation.fetch" = 0.2, "of the time", "DFAnalyzer's `fetch_pressure`: a fifth of the loop waits for data.";
    ComputeShare: "loader-starvation.compute" = 0.85, "of the time", "Above it the model is busy, whatever the loader does; DFAnalyzer's limit.";
    WorkerBusy: "too-few-workers.busy" = 0.8, "of a worker's time", "Workers that idle are not too few.";
    RankRatio: "rank-imbalance.ratio" = 1.5, "times the mean", "DFAnalyzer's `fetch_rank_imbalance`.";
    RankSeconds: "rank-imbalance.seconds" = 1.0, "s", "Waiting less is not worth a look.";
    RankPeers: "rank-imbalance.peers" = 4.0, "ranks", "A mean of fewer says little.";
    DominantIoShare: "dominant-io.share" = 0.5, "of the time", "Most of it.";
    DominantIoSeconds: "dominant-io.seconds" = 10.0, "s", "Below it, the score goes down in proportion: copies and builds are done by then.";
    DominantWaitingShare: "dominant-waiting.share" = 0.5, "of the time", "Most of it.";
    DominantWaitingSeconds: "dominant-waiting.seconds" = 10.0, "s", "As for I/O.";
    LostPart: "lost-coverage.part" = 0.1, "of the bytes", "The loader and locale files are never seen; a tenth is more than they are.";
    LostBytes: "lost-coverage.bytes" = 16777216.0, "bytes", "Less than that is the start of programs.";
    SlopeScore: "slope.score" = 0.3, "score", "The reference's limit between low and medium.";
    SlopePart: "slope.part" = 0.2, "of the I/O time", "A slow file that is hardly used is not a bottleneck.";
    SlopeSeconds: "slope.seconds" = 1.0, "s", "Programs differ in what they do; a second of odd calls is worth a look.";
    Streams: "limits.streams" = 1000000.0, "open files", "Sequences of calls are followed for so many at once (about 100 MB); what is beyond is counted and named.";
}

/// All thresholds.
pub fn thresholds() -> &'static [Threshold] {
    TABLE
}

/// Thresholds as they are to be, rules that are off, and rules of the user's own.
#[derive(Debug, Clone)]
pub struct Config {
    values: Vec<f64>,
    off: Vec<String>,
    pub(crate) custom: Vec<custom::Rule>,
    pub(crate) skipped: Vec<super::Skipped>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            values: TABLE.iter().map(|threshold| threshold.default).collect(),
            off: Vec::new(),
            custom: Vec::new(),
            skipped: Vec::new(),
        }
    }
}

impl Config {
    pub(crate) fn get(&self, limit: Limit) -> f64 {
        self.values[limit as usize]
    }

    pub(crate) fn count(&self, limit: Limit) -> u64 {
        self.get(limit).max(0.0) as u64
    }

    pub(crate) fn is_off(&self, rule: &str) -> bool {
        self.off.iter().any(|off| off == rule)
    }

    /// The value of a threshold by its name.
    pub fn value(&self, name: &str) -> Option<f64> {
        TABLE.iter().position(|threshold| threshold.name == name).map(|place| self.values[place])
    }

    /// Takes one setting: `small-reads.size=8K`, `matter.share=10%`, `slope=off`.
    pub fn set(&mut self, setting: &str) -> Result<(), FindingsError> {
        let Some((name, value)) = setting.split_once('=') else {
            return Err(wrong(setting, "it needs the form rule.threshold=value or rule=off"));
        };
        self.set_value(name.trim(), value.trim())
    }

    fn set_value(&mut self, name: &str, value: &str) -> Result<(), FindingsError> {
        let is_rule = rules().iter().any(|rule| rule.id == name) || self.custom.iter().any(|rule| rule.id == name);
        if is_rule {
            match value {
                "off" | "false" => self.off.push(name.to_owned()),
                "on" | "true" => self.off.retain(|off| off != name),
                _ => return Err(wrong(name, "a rule is either on or off")),
            }
            return Ok(());
        }
        let Some(place) = TABLE.iter().position(|threshold| threshold.name == name) else {
            return Err(wrong(name, "there is no such threshold; docs/findings.md lists them"));
        };
        self.values[place] = number(value).ok_or_else(|| wrong(name, &format!("{value:?} is not a number")))?;
        Ok(())
    }

    /// Reads a YAML file: `thresholds:` (names and values), `off:` (a list of rules), `rules:` (rules of the user's own, or a file
    /// that is nothing but a list of them).
    pub fn read(&mut self, path: &Path) -> Result<(), FindingsError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| FindingsError::Io { path: path.to_owned(), source })?;
        self.take_yaml(&text).map_err(|error| match error {
            FindingsError::Setting { what, why } => {
                FindingsError::Setting { what: format!("{what} in {}", path.display()), why }
            }
            other => other,
        })
    }

    /// The same, from text.
    pub fn take_yaml(&mut self, text: &str) -> Result<(), FindingsError> {
        let document = yaml::parse(text)?;
        let Some(document) = document else { return Ok(()) };
        if matches!(document, Node::List(_)) || document.get("id").is_some() {
            return self.take_rules(&document);
        }
        let Node::Map(entries) = &document else {
            return Err(wrong("the file", "it needs the keys thresholds, off or rules"));
        };
        for (key, node) in entries {
            match key.as_str() {
                "rules" => self.take_rules(node)?,
                "off" => {
                    for name in node.list() {
                        self.set_value(name.text().unwrap_or_default(), "off")?;
                    }
                }
                "thresholds" => self.take_thresholds("", node)?,
                other => return Err(wrong(other, "the file may have the keys thresholds, off and rules")),
            }
        }
        Ok(())
    }

    fn take_thresholds(&mut self, prefix: &str, node: &Node) -> Result<(), FindingsError> {
        let Node::Map(entries) = node else { return Err(wrong("thresholds", "they are names with values")) };
        for (key, value) in entries {
            let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            match value {
                Node::Text(text) => self.set_value(&name, text)?,
                other => self.take_thresholds(&name, other)?,
            }
        }
        Ok(())
    }

    fn take_rules(&mut self, node: &Node) -> Result<(), FindingsError> {
        let one = [node.clone()];
        for rule in if matches!(node, Node::List(_)) { node.list() } else { &one[..] } {
            match custom::Rule::from_node(rule) {
                Ok(rule) => self.custom.push(rule),
                Err((id, why)) => self.skipped.push(super::Skipped { rule: id, why }),
            }
        }
        Ok(())
    }
}

fn wrong(what: &str, why: &str) -> FindingsError {
    FindingsError::Setting { what: what.to_owned(), why: why.to_owned() }
}

/// A number with an optional unit: `4096`, `8K`, `1.5MiB`, `10%`, `200ms`, `2s`.
fn number(text: &str) -> Option<f64> {
    let split = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_'))).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let scale = match unit.trim() {
        "" | "s" | "B" => 1.0,
        "%" => 0.01,
        "ms" => 1e-3,
        "K" | "KiB" => 1024.0,
        "M" | "MiB" => 1_048_576.0,
        "G" | "GiB" => 1_073_741_824.0,
        _ => return None,
    };
    let value: f64 = digits.replace('_', "").parse().ok()?;
    value.is_finite().then_some(value * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(setting: &str, name: &str, expected: f64) {
        let mut config = Config::default();
        config.set(setting).expect(setting);
        assert_eq!(config.value(name), Some(expected), "{setting}");
    }

    #[test]
    fn settings_are_taken() {
        check("small-reads.size=8K", "small-reads.size", 8192.0);
        check("matter.share = 10%", "matter.share", 0.1);
        check("matter.seconds=250ms", "matter.seconds", 0.25);
        check("re-reads.bytes=1.5MiB", "re-reads.bytes", 1_572_864.0);
    }

    #[test]
    fn settings_that_mean_nothing_are_refused() {
        for setting in ["small-reads.size", "small-reads.sise=1", "small-reads.size=many", "small-reads=maybe", "=1"] {
            Config::default().set(setting).expect_err(setting);
        }
    }

    #[test]
    fn files_set_thresholds_and_rules() {
        let mut config = Config::default();
        config
            .take_yaml("thresholds:\n  small-reads: {size: 1K}\n  matter.share: 0.5\noff: [slope]\n")
            .expect("understood");
        assert_eq!((config.value("small-reads.size"), config.value("matter.share")), (Some(1024.0), Some(0.5)));
        assert!(config.is_off("slope") && !config.is_off("small-reads"));
        config.take_yaml("threshold: {}\n").expect_err("an unknown key");
    }

    #[test]
    fn every_threshold_belongs_to_a_rule_and_has_a_reason() {
        for threshold in TABLE {
            let (rule, _) = threshold.name.split_once('.').expect("rule.threshold");
            let known = ["matter", "limits"].contains(&rule) || rules().iter().any(|known| known.id == rule);
            assert!(known, "{}", threshold.name);
            assert!(threshold.why.ends_with('.'), "{}", threshold.name);
        }
    }
}
