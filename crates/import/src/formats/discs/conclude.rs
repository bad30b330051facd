//! Facts of folders → one conclusion per set: which files belong together, days, time zone, clocks, workload, roles.

use std::collections::{BTreeMap, HashMap};

use super::activity::Activity;
use super::align::{self, Fitted};
use super::facts::{Facts, Folder, Set};
use super::fields::{self, DAY, DateOrder, SECOND, Written};
use super::overlap::{self, Shift};
use super::roles::{self, Role};
use super::{command, overrides::Overrides};
use crate::clock::{Anchor, Clock, ClockKind};

/// What concerns more than the files of the set.
#[derive(Debug, Default)]
pub(crate) struct Conclusion {
    /// Sentences.
    pub notes: Vec<String>,
    /// Names of processes.
    pub names: BTreeMap<u32, String>,
    /// Clocks, where there is one set only.
    pub clocks: BTreeMap<ClockKind, Clock>,
}

/// By how much a clock that was laid over another activity may be wrong.
const LAID_ERROR: u64 = 60 * SECOND as u64;

/// Dated files that are compared.
const MOST_DATED: usize = 200;

impl Facts {
    /// Concludes, once all files have been looked at. `zone` is what `--tz` says, in seconds.
    pub(crate) fn conclude(&mut self, zone: Option<i32>) -> Conclusion {
        let folders = std::mem::take(&mut self.folders);
        let mut all = Conclusion::default();
        let (groups, set_of) = group(folders);
        self.set_of = set_of;
        let several = groups.len() > 1;
        for (name, folder) in groups {
            let mut concluder = Concluder { folder, overrides: &self.overrides, told: zone, notes: Vec::new() };
            let mut set = concluder.conclude();
            for note in concluder.notes {
                all.notes.push(if several { format!("{name}: {note}") } else { note });
            }
            all.names.extend(set.people.iter().map(|(pid, person)| (*pid, person.name.clone())));
            if !several {
                all.clocks.clone_from(&set.clocks);
            }
            set.paths.shrink_to_fit();
            self.sets.push(set);
        }
        all
    }
}

/// Folders that belong together: each folder with traces is a set, with what lies below it; where there is one at most, all is one set.
fn group(folders: BTreeMap<String, Folder>) -> (Vec<(String, Folder)>, BTreeMap<String, usize>) {
    let roots: Vec<String> = folders.iter().filter(|(_, folder)| folder.traced).map(|(name, _)| name.clone()).collect();
    let within = |name: &str, root: &str| {
        name == root || root.is_empty() || name.strip_prefix(root).is_some_and(|rest| rest.starts_with(['/', '!']))
    };
    let mut groups: Vec<(String, Folder)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut set_of = BTreeMap::new();
    for (name, folder) in folders {
        let root = match roots.as_slice() {
            [] => "",
            [only] => only,
            _ => {
                let above = roots.iter().filter(|root| within(&name, root)).max_by_key(|root| root.len());
                let mut below = roots.iter().filter(|root| within(root, &name));
                match (above, below.next(), below.next()) {
                    (Some(root), _, _) | (None, Some(root), None) => root,
                    _ => name.as_str(),
                }
            }
        };
        let place = *places.entry(root.to_owned()).or_insert_with(|| {
            groups.push((root.to_owned(), Folder::default()));
            groups.len() - 1
        });
        set_of.insert(name, place);
        groups[place].1.join(folder);
    }
    (groups, set_of)
}

struct Concluder<'a> {
    folder: Folder,
    overrides: &'a Overrides,
    told: Option<i32>,
    notes: Vec<String>,
}

impl Concluder<'_> {
    fn note(&mut self, sentence: impl Into<String>) {
        self.notes.push(sentence.into());
    }

    fn conclude(&mut self) -> Set {
        let host = self.overrides.host.clone().unwrap_or_else(|| std::mem::take(&mut self.folder.host));
        let workload = self.workload();
        let (people, sentences) = roles::cast(&self.folder.processes, &workload, self.overrides);
        let order = self.order();
        let near_ns = self.near(order);
        let fitted = align::fit(&self.folder.changes, near_ns.unwrap_or(0));
        let mut set =
            Set { host, workload, people, order, near_ns, has_mpstat: self.folder.has_mpstat, ..Set::default() };
        set.paths = std::mem::take(&mut self.folder.paths);
        if !set.workload.is_empty() {
            self.note(format!("Workload: {}.", set.workload));
        }
        self.notes.extend(sentences);
        self.phases();
        self.clocks(&mut set, fitted);
        self.notes.append(&mut self.folder.notes);
        set
    }

    /// What was run: as a log says, as scripts are called, as logs are called.
    fn workload(&self) -> String {
        if let Some(told) = &self.overrides.workload {
            return told.clone();
        }
        if let Some(said) = self.folder.logs.iter().find_map(|log| log.benchmark.clone()) {
            return said;
        }
        let active = || self.folder.processes.values().filter(|seen| seen.calls > 0 || !seen.gpus.is_empty());
        if let Some(known) = active().find_map(|seen| roles::known_script(&seen.command)) {
            return known.to_owned();
        }
        const SAY_NOTHING: [&str; 8] = ["app", "log", "out", "output", "stdout", "mllog", "result", "results"];
        let stems = self.folder.logs.iter().map(|log| log.stem.to_ascii_lowercase());
        if let Some(stem) = stems.filter(|stem| !SAY_NOTHING.contains(&stem.as_str())).find(|stem| !stem.is_empty()) {
            return stem.strip_suffix("_tera").unwrap_or(&stem).to_owned();
        }
        // What the one that read most runs, if it is on a GPU.
        let busiest = active().filter(|seen| !seen.gpus.is_empty()).max_by_key(|seen| seen.bytes_read);
        busiest.and_then(|seen| command::script(&seen.command)).unwrap_or_default().to_owned()
    }

    fn phases(&mut self) {
        let mut all: BTreeMap<String, u64> = BTreeMap::new();
        for (phase, count) in self.folder.logs.iter().flat_map(|log| &log.phases) {
            *all.entry(phase.clone()).or_default() += count;
        }
        if !all.is_empty() {
            let words: Vec<String> = all.iter().take(20).map(|(phase, count)| format!("{count} {phase}")).collect();
            self.note(format!("Phases in application logs: {}.", words.join(", ")));
        }
    }

    /// The local time of a dated file, the one that the others and the logs are nearest to: a host's date may be wrong in one of them.
    fn clear(&self) -> Option<i64> {
        let dated = &self.folder.dated[..self.folder.dated.len().min(MOST_DATED)];
        let logs = self.folder.logs.iter().filter_map(|log| log.written.first()).take(MOST_DATED);
        let all: Vec<i64> = dated.iter().copied().chain(logs.map(|second| second.saturating_mul(SECOND))).collect();
        let far = |at: i64| all.iter().fold(0_u64, |sum, other| sum.saturating_add(other.abs_diff(at) / SECOND as u64));
        dated.iter().copied().min_by_key(|at| (far(*at), *at))
    }

    /// Which of two numbers is the month: the order in which unclear dates are nearest to clear ones, else as Americans write.
    fn order(&mut self) -> DateOrder {
        let clear = self.clear();
        let logs = self.folder.logs.iter().filter_map(|log| log.written.first()).min();
        let Some(near) = clear.or(logs.map(|second| second.saturating_mul(SECOND))) else {
            if let Some(Written::Unclear(first, second, year)) = self.folder.unclear.first() {
                let sentence = format!(
                    "The date {first:02}/{second:02}/{year} is taken as month/day/year: nothing tells otherwise."
                );
                self.note(sentence);
            }
            return DateOrder::MonthFirst;
        };
        let far = |order: DateOrder| {
            let days = self.folder.unclear.iter().filter_map(|written| written.days(order));
            days.map(|days| near.abs_diff(days.saturating_mul(DAY)) / DAY as u64).fold(0_u64, u64::saturating_add)
        };
        if far(DateOrder::DayFirst) < far(DateOrder::MonthFirst) { DateOrder::DayFirst } else { DateOrder::MonthFirst }
    }

    /// A local time whose day is known.
    fn near(&mut self, order: DateOrder) -> Option<i64> {
        if let Some(days) = self
            .overrides
            .date
            .as_deref()
            .and_then(|date| fields::date(date.as_bytes()))
            .and_then(|date| date.days(order))
        {
            return Some(days.saturating_mul(DAY).saturating_add(DAY / 2));
        }
        let unclear = self.folder.unclear.iter().filter_map(|written| written.days(order)).min();
        let clear = self.clear();
        // A date alone is noon: the nearest time of day is then on it.
        let near = clear.or(unclear.map(|days| days.saturating_mul(DAY).saturating_add(DAY / 2)));
        if near.is_some() {
            return near;
        }
        let log = self.folder.logs.iter().filter_map(|log| log.written.first()).min();
        match log {
            Some(second) => {
                self.note("Only application logs tell the day; local times are on the day nearest to theirs.");
                let zone = self.told.or(self.overrides.tz.map(|zone| zone.seconds)).unwrap_or(0);
                Some(second.saturating_add(i64::from(zone)).saturating_mul(SECOND))
            }
            None => {
                if !self.folder.changes.is_empty() {
                    self.note("Nothing tells the day: times count from 1970-01-01.");
                }
                None
            }
        }
    }

    fn clocks(&mut self, set: &mut Set, fitted: Option<Fitted>) {
        let wall = self.device_activity(set, fitted.as_ref());
        let mut logs = Activity::default();
        let mut is_utc = false;
        // Logs in UTC count for more than those of an unknown zone.
        for utc in [true, false] {
            for log in self.folder.logs.iter().filter(|log| log.is_utc == utc) {
                if let (Some(first), Some(last)) = (log.written.first(), log.written.last())
                    && (logs.is_empty() || is_utc == utc)
                {
                    is_utc = utc;
                    logs.span(first, last);
                }
            }
        }
        let shift = overlap::shift(&wall, &logs);
        let has_local =
            !wall.is_empty() || !self.folder.dated.is_empty() || !self.folder.unclear.is_empty() || fitted.is_some();
        let zone = self.zone(shift, is_utc, has_local);
        // A log of an unknown zone: what lies between it and the devices is known, and so is their zone.
        if let (Some(found), false) = (self.log_shift(&wall), self.folder.logs.is_empty()) {
            set.log_shift = Some(found.seconds - i64::from(zone.0));
        }
        let behind = -i64::from(zone.0) * SECOND;
        if has_local || self.told.is_some() {
            let error = if zone.2 { Some(0) } else { None };
            set.clocks.insert(ClockKind::LocalText, Clock::offset(ClockKind::LocalText, behind, error, zone.1.clone()));
        }
        let monotonic = match fitted {
            Some(fitted) => {
                let anchors = fitted
                    .anchors
                    .iter()
                    .map(|anchor| Anchor { utc_ns: anchor.utc_ns.saturating_add(behind), ..*anchor });
                let how = format!("{}; {}", fitted.how, zone.1);
                self.note(format!("Clock of bpftrace: {} (± {} ns).", fitted.how, fitted.error_ns));
                Clock::through(ClockKind::Monotonic, anchors.collect(), Some(fitted.error_ns), how)
            }
            None => self.laid(set, &wall, &logs, behind),
        };
        if let Some(clock) = monotonic {
            set.clocks.insert(ClockKind::Monotonic, clock);
        }
    }

    fn log_shift(&self, wall: &Activity) -> Option<Shift> {
        let mut logs = Activity::default();
        for log in self.folder.logs.iter().filter(|log| !log.is_utc) {
            logs.span(log.written.first()?, log.written.last()?);
        }
        overlap::shift(wall, &logs)
    }

    /// When devices were busy, in seconds of local time: GPUs, else the calls of those who work.
    fn device_activity(&self, set: &Set, fitted: Option<&Fitted>) -> Activity {
        if !self.folder.gpu.is_empty() {
            return self.folder.gpu.clone();
        }
        let Some(fitted) = fitted else { return Activity::default() };
        let Some(clock) = Clock::through(ClockKind::Monotonic, fitted.anchors.clone(), None, "") else {
            return Activity::default();
        };
        let boot = self.working(set);
        let local = |second: i64| clock.to_utc(second.saturating_mul(SECOND)).div_euclid(SECOND);
        let mut activity = Activity::default();
        if let (Some(first), Some(last)) = (boot.first(), boot.last()) {
            activity.span(local(first), local(last));
        }
        activity
    }

    /// When workers and loaders made calls, in seconds since boot; where nobody has a part, the one that read most.
    fn working(&self, set: &Set) -> Activity {
        let mut activity = Activity::default();
        for (pid, seen) in &self.folder.processes {
            if set.people.get(pid).is_some_and(|person| matches!(person.role, Role::Worker | Role::Loader)) {
                seen.calls_at.inspect(|(first, last)| activity.span(*first, *last));
            }
        }
        if activity.is_empty()
            && let Some(seen) = self.folder.processes.values().max_by_key(|seen| (seen.bytes_read, seen.calls))
        {
            seen.calls_at.inspect(|(first, last)| activity.span(*first, *last));
        }
        activity
    }

    /// The zone in seconds, how it was found, and whether that is certain.
    fn zone(&mut self, shift: Option<Shift>, is_utc: bool, has_local: bool) -> (i32, String, bool) {
        if let Some(told) = self.told {
            return (told, "--tz".to_owned(), true);
        }
        if let Some(told) = self.overrides.tz.map(|zone| zone.seconds) {
            return (told, "the zone that was set".to_owned(), true);
        }
        if let Some(shift) = shift {
            let words = utc_offset(shift.seconds);
            let how = format!(
                "{words}: where devices and the application log agree best ({:.0} % in common)",
                shift.likeness * 100.0
            );
            let doubt = if shift.unclear { " Other quarters of an hour fit nearly as well." } else { "" };
            let log = if is_utc { "" } else { " The log does not name its zone and is taken as UTC." };
            self.note(format!("Time zone of the host: {how}.{doubt}{log} --tz sets another."));
            return (i32::try_from(shift.seconds).unwrap_or(0), how, false);
        }
        if let Some((seconds, name)) = self.folder.zone.clone() {
            let how = format!("{}: a file names {name}", utc_offset(i64::from(seconds)));
            self.note(format!("Time zone of the host: {how}. --tz sets another."));
            return (seconds, how, false);
        }
        if has_local {
            self.note("Time zone of the host: nothing tells it; local times are taken as UTC. --tz sets another.");
        }
        (0, "taken as UTC: nothing tells the time zone; --tz sets it".to_owned(), false)
    }

    /// Without a time-align trace: the first sign of life of those who work is laid on the first one of a device or a log.
    fn laid(&mut self, set: &Set, wall: &Activity, logs: &Activity, behind: i64) -> Option<Clock> {
        let boot = self.working(set).first()?;
        let begin = match (wall.first(), logs.first()) {
            (Some(second), _) => second.saturating_mul(SECOND).saturating_add(behind),
            (None, Some(second)) => second.saturating_mul(SECOND),
            (None, None) => {
                self.note("Clock of bpftrace: no time-align trace, and nothing else tells when it began; times count from 1970.");
                return None;
            }
        };
        let how =
            "no time-align trace: the first call of a worker is laid on the first sign of life of a device or log";
        self.note(format!("Clock of bpftrace: {how}; it may be wrong by a minute. --align moves it."));
        let offset = begin.saturating_sub(boot.saturating_mul(SECOND));
        Some(Clock::offset(ClockKind::Monotonic, offset, Some(LAID_ERROR), how))
    }
}

/// `UTC-04:00`.
fn utc_offset(seconds: i64) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let seconds = seconds.unsigned_abs();
    format!("UTC{sign}{:02}:{:02}", seconds / 3600, seconds / 60 % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(folders: &[(&str, bool)], expected: &[(&str, usize)], sets: usize) {
        let folders =
            folders.iter().map(|(name, traced)| ((*name).to_owned(), Folder { traced: *traced, ..Folder::default() }));
        let (groups, set_of) = group(folders.collect());
        assert_eq!(groups.len(), sets);
        assert_eq!(set_of.iter().map(|(name, place)| (name.as_str(), *place)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn files_that_belong_together() {
        check(&[("a", true), ("a/logs", false), ("b", false)], &[("a", 0), ("a/logs", 0), ("b", 0)], 1);
        check(
            &[("r/a", true), ("r/a/logs", false), ("r/b", true), ("r", false)],
            &[("r", 0), ("r/a", 1), ("r/a/logs", 1), ("r/b", 2)],
            3,
        );
        check(&[("x.tar!a", true), ("x.tar!ab", true)], &[("x.tar!a", 0), ("x.tar!ab", 1)], 2);
        check(&[("one/t", true), ("one", false), ("two/t", true)], &[("one", 0), ("one/t", 0), ("two/t", 1)], 2);
        check(&[("", false)], &[("", 0)], 1);
    }
}
