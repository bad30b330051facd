//! Settings: the numbers that rules compare with, which rules are off, and rules of the user's own.
//!
//! A threshold is declared where it is used: in the file of its rule, or where all rules ask (`weigh`, `sequences`).

use std::collections::BTreeMap;
use std::path::Path;

use super::yaml::{self, Node};
use super::{FindingsError, custom, rules, sequences, weigh};

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

impl Threshold {
    /// One of these. Whoever declares it also lists it among the thresholds of its rule, or no setting reaches it.
    pub(crate) const fn new(name: &'static str, default: f64, unit: &'static str, why: &'static str) -> Threshold {
        Threshold { name, default, unit, why }
    }
}

/// All thresholds: those that hold for every rule, those of each rule, limits of what is followed.
pub fn thresholds() -> impl Iterator<Item = &'static Threshold> {
    let of_rules = rules().iter().flat_map(|rule| rule.thresholds);
    weigh::THRESHOLDS.iter().chain(of_rules).chain(sequences::THRESHOLDS)
}

fn named(name: &str) -> Option<&'static Threshold> {
    thresholds().find(|threshold| threshold.name == name)
}

/// Thresholds as they are to be, rules that are off, and rules of the user's own.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// What was set; all else has its default.
    values: BTreeMap<&'static str, f64>,
    off: Vec<String>,
    pub(crate) custom: Vec<custom::Rule>,
    pub(crate) skipped: Vec<super::Skipped>,
}

impl Config {
    pub(crate) fn get(&self, threshold: Threshold) -> f64 {
        debug_assert!(named(threshold.name) == Some(&threshold), "{} is in no rule's list", threshold.name);
        self.values.get(threshold.name).copied().unwrap_or(threshold.default)
    }

    pub(crate) fn count(&self, threshold: Threshold) -> u64 {
        self.get(threshold).max(0.0) as u64
    }

    pub(crate) fn is_off(&self, rule: &str) -> bool {
        self.off.iter().any(|off| off == rule)
    }

    /// The value of a threshold by its name.
    pub fn value(&self, name: &str) -> Option<f64> {
        named(name).map(|threshold| self.get(*threshold))
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
        let Some(threshold) = named(name) else {
            return Err(wrong(name, "there is no such threshold; docs/findings.md lists them"));
        };
        let value = number(value).ok_or_else(|| wrong(name, &format!("{value:?} is not a number")))?;
        self.values.insert(threshold.name, value);
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
    fn every_threshold_has_one_name_and_a_reason() {
        let mut names: Vec<&str> = thresholds().map(|threshold| threshold.name).collect();
        assert!(thresholds().all(|threshold| threshold.why.ends_with('.')), "a sentence each");
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "a name is there twice");
        assert!(all > rules().len(), "{names:?}");
    }
}
