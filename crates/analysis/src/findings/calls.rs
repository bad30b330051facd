//! What a recorded call or span is to the rules, told by its name and category alone.
//!
//! Calls count as I/O only in the categories of the C library (`POSIX`, `STDIO`): a program may call a span of its own `read`. Calls on
//! streams are apart from those that reach the kernel, because a stream gathers small pieces by itself.

use serde::{Deserialize, Serialize};
pub(crate) use weftline_calls::Operation as Call;
use weftline_calls::{Activity, CallInfo, find};
use weftline_index::Dictionary;

use crate::classify::Activities;

/// What a call of this name does, whatever its category; nothing for calls that are not about files.
pub(crate) fn call_of(name: &str) -> Option<Call> {
    find(name).map(|call| call.operation).filter(|call| call.is_on_files())
}

/// What a span is to a training job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Role {
    /// The model works.
    Compute,
    /// The training loop waits for its next batch.
    Fetch,
    /// Samples are read and prepared, wherever that happens.
    Load,
    /// State is saved or restored.
    Checkpoint,
    /// What the loop does with a batch. It counts as computing where nothing else says what computing is.
    Step,
    /// The model is evaluated: steps in it are none of training.
    Evaluate,
    /// An epoch of training.
    Epoch,
}

/// The loop's own waiting: DLIO's and DFTracer's names, and those of `weftline.torch`.
const FETCHES: &[&str] = &["fetch.iter", "fetch-data.iter", "<module>.iter", "loop.iter"];
/// What the loop does with a batch, though it is in the loader's category.
const STEPS: &[&str] = &["loop.yield", "fetch.yield", "fetch-data.yield", "<module>.yield", "fetch.body"];
/// Whole evaluations and epochs, with their categories: those of DFTracer's AI module and ours, and DLIO's.
const EVALUATIONS: &[(&str, &str)] =
    &[("evaluate", "pipeline"), ("test", "pipeline"), ("DLIOBenchmark._eval", "dlio_benchmark")];
const EPOCHS: &[(&str, &str)] =
    &[("epoch", "pipeline"), ("epoch.block", "pipeline"), ("DLIOBenchmark._train", "dlio_benchmark")];

impl Role {
    fn of(name: &str, cat: &str) -> Option<Role> {
        let is_loader = matches!(cat, "data" | "data_loader" | "dataloader" | "reader");
        match cat {
            _ if FETCHES.contains(&name) || name == "fetch" && is_loader => Some(Role::Fetch),
            _ if STEPS.contains(&name) && is_loader || name == "step" && cat == "pipeline" => Some(Role::Step),
            _ if EVALUATIONS.contains(&(name, cat)) => Some(Role::Evaluate),
            _ if EPOCHS.contains(&(name, cat)) => Some(Role::Epoch),
            // Making the object that will save or compute is neither.
            _ if name.ends_with(".__init__") || name.ends_with("init_loader") => None,
            "compute" => Some(Role::Compute),
            // DLIO's object of this category also hands out loaders and marks steps; those spans are not steps, and would end a block.
            "ai_framework" => name.ends_with(".compute").then_some(Role::Compute),
            "checkpoint" => Some(Role::Checkpoint),
            _ if is_loader => Some(Role::Load),
            _ => None,
        }
    }
}

/// Calls and roles by the ids of a run.
pub(crate) struct NameTable {
    calls: Vec<Option<Call>>,
    on_stream: Vec<bool>,
    libc: Vec<bool>,
    names: Vec<String>,
    cats: Vec<String>,
    activities: Activities,
    checkpoint_file: Vec<bool>,
}

impl NameTable {
    pub(crate) fn new(dictionary: &Dictionary) -> NameTable {
        let cats: Vec<String> = dictionary.cats.iter().map(str::to_lowercase).collect();
        NameTable {
            calls: dictionary.names.iter().map(call_of).collect(),
            on_stream: dictionary.names.iter().map(|name| find(name).is_some_and(CallInfo::on_stream)).collect(),
            libc: cats.iter().map(|cat| cat.contains("posix") || cat.contains("stdio")).collect(),
            names: dictionary.names.iter().map(str::to_owned).collect(),
            activities: Activities::new(dictionary),
            cats,
            checkpoint_file: dictionary.files.iter().map(is_checkpoint).collect(),
        }
    }

    pub(crate) fn call(&self, name: u32, cat: u32) -> Option<Call> {
        self.libc[cat as usize].then(|| self.calls[name as usize]).flatten()
    }

    /// Whether a call works on a stream, whose buffer stands between it and the file.
    pub(crate) fn is_on_stream(&self, name: u32) -> bool {
        self.on_stream[name as usize]
    }

    pub(crate) fn role(&self, name: u32, cat: u32) -> Option<Role> {
        Role::of(&self.names[name as usize], &self.cats[cat as usize])
    }

    /// Whether a file has content of its own: it is no pipe, socket, terminal or file of the kernel.
    pub(crate) fn has_content(&self, file: u32) -> bool {
        self.activities.has_content(file)
    }

    /// What a thread does during an event.
    #[inline]
    pub(crate) fn activity(&self, name: u32, cat: u32, file: Option<u32>) -> Option<Activity> {
        self.activities.of(name, cat, file)
    }

    pub(crate) fn is_checkpoint_file(&self, file: u32) -> bool {
        self.checkpoint_file[file as usize]
    }

    /// The names of this run that are one of `calls`, as a list for SQL.
    pub(crate) fn sql_names(&self, calls: &[Call]) -> String {
        let mut names: Vec<&str> = self
            .names
            .iter()
            .zip(&self.calls)
            .filter(|(_, call)| call.is_some_and(|call| calls.contains(&call)))
            .map(|(name, _)| name.as_str())
            .collect();
        names.sort_unstable();
        names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
    }
}

fn is_checkpoint(path: &str) -> bool {
    let lower = path.to_lowercase();
    let ends = [".ckpt", ".pt", ".pth", ".safetensors", ".distcp"];
    lower.contains("checkpoint") || lower.contains("/ckpt") || ends.iter().any(|end| lower.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_roles() {
        for (name, cat, expected) in [
            ("loop.iter", "data_loader", Some(Role::Fetch)),
            ("fetch", "dataloader", Some(Role::Fetch)),
            ("loop.yield", "data_loader", Some(Role::Step)),
            ("fetch.body", "dataloader", Some(Role::Step)),
            ("step", "pipeline", Some(Role::Step)),
            ("step", "app", None),
            ("TorchFramework.compute", "ai_framework", Some(Role::Compute)),
            ("TorchFramework.trace_object", "ai_framework", None),
            ("TorchFramework.get_loader", "ai_framework", None),
            ("DLIOBenchmark._eval", "dlio_benchmark", Some(Role::Evaluate)),
            ("DLIOBenchmark._train", "dlio_benchmark", Some(Role::Epoch)),
            ("DLIOBenchmark.run", "dlio_benchmark", None),
            ("evaluate", "pipeline", Some(Role::Evaluate)),
            ("evaluate", "app", None),
            ("forward", "compute", Some(Role::Compute)),
            ("HDF5Reader.open", "reader", Some(Role::Load)),
            ("capture", "checkpoint", Some(Role::Checkpoint)),
            ("PyTorchCheckpointing.__init__", "checkpoint", None),
            ("fetch", "app", None),
        ] {
            assert_eq!(Role::of(name, cat), expected, "{name} {cat}");
        }
    }
}
