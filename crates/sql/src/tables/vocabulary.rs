//! What all tables share: the strings of a run as Arrow arrays, and what its ids say of processes and calls.
//!
//! A column of words is a dictionary array. Its keys are the ids of the index, its values one array per run: no string is touched per row.
//! Where a run has more strings than a batch has rows, [`words`] leaves out those that the batch does not use, since DataFusion looks at all
//! values of every batch that it hashes or compares.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::{Array as _, ArrayRef, DictionaryArray, Int64Array, StringArray, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::UInt32Type;
use datafusion::error::{DataFusionError, Result};
use weftline_analysis::classify::{Classes, IoCat, Rules};
use weftline_index::dictionary::{Process, Strings};
use weftline_index::{Dictionary, Run};

/// A dictionary of at most so many values is handed on whole.
const SMALL: usize = 4096;

/// What is known of a run's strings and processes.
pub(crate) struct Vocabulary {
    pub(crate) run: Arc<Run>,
    pub(crate) dictionary: Arc<Dictionary>,
    pub(crate) rules: Rules,
    pub(crate) classes: Classes,
    pub(crate) names: Arc<StringArray>,
    pub(crate) cats: Arc<StringArray>,
    pub(crate) hosts: Arc<StringArray>,
    /// The letters of all phases, by [`phase_key`].
    pub(crate) phases: Arc<StringArray>,
    /// The operations of `io`, by the number of [`IoCat`].
    pub(crate) ops: Arc<StringArray>,
    /// Whether the path of every file is known.
    pub(crate) all_known: bool,
    /// By process: its host.
    pub(crate) host_of: Vec<Option<u32>>,
    paths: OnceLock<std::result::Result<Arc<StringArray>, String>>,
}

impl std::fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vocabulary").field("names", &self.names.len()).finish_non_exhaustive()
    }
}

const LETTERS: [&str; 13] = ["X", "B", "E", "b", "e", "n", "i", "C", "M", "s", "t", "f", "A"];

/// The key of a phase's code among [`Vocabulary::phases`].
pub(crate) fn phase_key(code: u8) -> Option<u32> {
    LETTERS.iter().position(|letter| letter.as_bytes()[0] == code).map(|place| place as u32)
}

/// Arrow's text arrays hold 2 GiB.
fn array(strings: &Strings, what: &str) -> std::result::Result<Arc<StringArray>, String> {
    let bytes: usize = strings.iter().map(str::len).sum();
    if i32::try_from(bytes).is_err() {
        return Err(format!("the run has {bytes} bytes of {what}, more than a column can hold; query a part of it"));
    }
    Ok(Arc::new(strings.iter().map(Some).collect()))
}

impl Vocabulary {
    /// Of an opened run whose dictionary is known.
    pub(crate) fn new(run: Arc<Run>) -> Result<Vocabulary> {
        let dictionary = run.dictionary();
        let rules = Rules::default().keeping_all();
        let classes = Classes::new(&rules, &dictionary);
        let (mut hosts, mut ids) = (Strings::default(), HashMap::new());
        let host_of = dictionary
            .processes
            .iter()
            .map(|process| {
                let host = host_text(process)?;
                Some(*ids.entry(host.to_owned()).or_insert_with(|| hosts.intern(host)))
            })
            .collect();
        let failed = DataFusionError::Execution;
        Ok(Vocabulary {
            names: array(&dictionary.names, "names").map_err(failed)?,
            cats: array(&dictionary.cats, "categories").map_err(failed)?,
            hosts: array(&hosts, "hosts").map_err(failed)?,
            phases: Arc::new(LETTERS.iter().map(Some).collect()),
            ops: Arc::new(IoCat::ALL.iter().map(|op| Some(op.label())).collect()),
            all_known: dictionary.known.iter().all(|known| *known),
            host_of,
            paths: OnceLock::new(),
            run,
            dictionary,
            rules,
            classes,
        })
    }

    /// Paths by the ids of files; the hash where a path is not known.
    pub(crate) fn paths(&self) -> Result<&Arc<StringArray>> {
        let paths = self.paths.get_or_init(|| array(&self.dictionary.files, "paths"));
        paths.as_ref().map_err(|why| DataFusionError::Execution(why.clone()))
    }

    /// The key of a call's operation among [`Vocabulary::ops`], by its name alone.
    pub(crate) fn op_of_name(&self, name: &str) -> u32 {
        op_key(self.rules.io.get(name).copied().unwrap_or(IoCat::Other))
    }

    /// Ids of processes → what is known of each.
    pub(crate) fn of_process<T>(&self, ids: &UInt32Array, known: impl Fn(u32) -> Option<T>) -> Vec<Option<T>> {
        ids.values().iter().map(|process| known(*process)).collect()
    }
}

/// The name of a process's host, or else the hash by which events name it.
pub(crate) fn host_text(process: &Process) -> Option<&str> {
    [&process.host, &process.hhash].into_iter().find(|text| !text.is_empty()).map(String::as_str)
}

/// The key of an operation.
pub(crate) fn op_key(op: IoCat) -> u32 {
    op as u32 - 1
}

/// A column of words from their ids.
pub(crate) fn words(keys: UInt32Array, values: &Arc<StringArray>) -> Result<ArrayRef> {
    if values.len() <= SMALL.max(keys.len()) {
        return Ok(Arc::new(DictionaryArray::<UInt32Type>::try_new(keys, Arc::clone(values) as ArrayRef)?));
    }
    // By id: its new key and 1, or 0. Zeroed memory costs nothing where it is not touched.
    let mut place = vec![0u32; values.len()];
    let mut used: Vec<u32> = Vec::new();
    let mut renumber = |id: u32| {
        let place = &mut place[id as usize];
        if *place == 0 {
            used.push(id);
            *place = used.len() as u32;
        }
        *place - 1
    };
    let keys: UInt32Array = keys.iter().map(|id| id.map(&mut renumber)).collect();
    let values = take(values.as_ref(), &UInt32Array::from(used), None)?;
    Ok(Arc::new(DictionaryArray::<UInt32Type>::try_new(keys, values)?))
}

/// A column of integers.
pub(crate) fn integers(values: Vec<Option<i64>>) -> ArrayRef {
    Arc::new(Int64Array::from(values))
}
