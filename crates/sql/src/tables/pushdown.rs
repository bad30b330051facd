//! Conditions of a query → a filter of the index.
//!
//! DataFusion evaluates a condition on a dictionary-encoded string (`name`, `cat`, `path`, `ph`, `op`), or on a property of a process (`host`, `pid`, `rank`, `process`),
//! once per string or process, in any form: `name LIKE 'p%'`, `path IN (…)`, `regexp_like(path, …)`. Per
//! row group and row only ids remain. Times are compared with constants. DataFusion checks all conditions again, so nothing here must be exact; it
//! must only never leave out a row that matches.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, BooleanArray, Int32Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNode as _;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use weftline_analysis::events::arrow_type;
use weftline_index::column::phase_bit;
use weftline_index::dictionary::Process;
use weftline_index::schema::{ColumnKind, EventColumn, Source, column, find};
use weftline_index::{Column, Dictionary, Filter};

use super::vocabulary::{Vocabulary, integers, words};

/// What a condition is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Name,
    Cat,
    Path,
    Phase,
    Operation,
    Process,
    Time,
}

/// Columns that say something of a process.
const PROCESS_COLUMNS: [EventColumn; 4] = [column("process"), column("host"), column("pid"), column("rank")];

fn is_of_process(name: &str) -> bool {
    PROCESS_COLUMNS.iter().any(|column| column.name == name)
}

fn is_time(name: &str) -> bool {
    find(name).is_some_and(|column| matches!(column.source, Source::Stored(Column::Ts) | Source::End))
}

/// What a condition is about, when it can be pushed down.
pub(crate) fn subject(condition: &Expr) -> Option<Subject> {
    if condition.is_volatile() || !is_plain(condition) {
        return None;
    }
    let columns: HashSet<&str> = condition.column_refs().into_iter().map(|column| column.name.as_str()).collect();
    if columns.is_empty() {
        return None;
    }
    if columns.iter().all(|column| is_of_process(column)) {
        return Some(Subject::Process);
    }
    let mut names = columns.into_iter();
    let (Some(only), None) = (names.next(), names.next()) else { return None };
    match find(only)?.source {
        Source::Name => Some(Subject::Name),
        Source::Cat => Some(Subject::Cat),
        Source::Path => Some(Subject::Path),
        Source::Phase => Some(Subject::Phase),
        Source::Operation => Some(Subject::Operation),
        _ if is_time(only) => bounds(condition).map(|_| Subject::Time),
        _ => None,
    }
}

/// Whether a condition looks at nothing but its columns.
fn is_plain(condition: &Expr) -> bool {
    let other = condition.exists(|part| {
        Ok(matches!(
            part,
            Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::ScalarSubquery(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::Placeholder(_)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
        ))
    });
    !other.unwrap_or(true)
}

/// The range that a comparison of a time with a constant allows: events that end at the first or later, and start before the second.
fn bounds(condition: &Expr) -> Option<(Option<i64>, Option<i64>)> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = condition else { return None };
    let (column, op, constant) = match (left.as_ref(), right.as_ref()) {
        (Expr::Column(column), Expr::Literal(constant, _)) => (column, *op, constant),
        (Expr::Literal(constant, _), Expr::Column(column)) => (column, op.swap()?, constant),
        _ => return None,
    };
    let ScalarValue::Int64(Some(time)) = constant else { return None };
    if !is_time(&column.name) {
        return None;
    }
    let after = time.checked_add(1);
    Some(match op {
        Operator::Gt => (after, None),
        Operator::GtEq => (Some(*time), None),
        Operator::Lt => (None, Some(*time)),
        Operator::LtEq => (None, after),
        Operator::Eq => (Some(*time), after),
        _ => return None,
    })
}

/// Adds the conditions to a filter that a table begins with. Tells which were added, in words.
pub(crate) fn push(
    session: &dyn Session,
    known: &Arc<Vocabulary>,
    conditions: &[Expr],
    filter: &mut Filter,
) -> Vec<String> {
    let mut pushed = Vec::new();
    for condition in conditions {
        let Some(about) = subject(condition) else { continue };
        // A condition that cannot be evaluated beforehand fails or not when DataFusion checks it: not here.
        if add(session, known, condition, about, filter).is_ok() {
            pushed.push(condition.human_display().to_string());
        }
    }
    pushed
}

fn add(
    session: &dyn Session,
    known: &Arc<Vocabulary>,
    condition: &Expr,
    about: Subject,
    filter: &mut Filter,
) -> Result<()> {
    let word = |column: &EventColumn, values: &Arc<datafusion::arrow::array::StringArray>| {
        Answers::of_words(session, condition, column.name, values)
    };
    match about {
        Subject::Time => {
            let (from, to) = bounds(condition).unwrap_or_default();
            filter.from_ns = filter.from_ns.max(from);
            filter.to_ns = [filter.to_ns, to].into_iter().flatten().min();
        }
        Subject::Name => {
            let (answers, dictionary) = (word(&const { column("name") }, &known.names)?, Arc::clone(&known.dictionary));
            both_text(&mut filter.names, move |name| answers.text(dictionary.names.find(name)));
        }
        Subject::Cat => {
            let (answers, dictionary) = (word(&const { column("cat") }, &known.cats)?, Arc::clone(&known.dictionary));
            both_text(&mut filter.cats, move |cat| answers.text(dictionary.cats.find(cat)));
        }
        Subject::Operation => {
            let (answers, known) = (word(&const { column("op") }, &known.ops)?, Arc::clone(known));
            both_text(&mut filter.names, move |name| answers.text(Some(known.op_of_name(name) as u32)));
        }
        Subject::Path => {
            let (answers, dictionary) = (
                word(&const { column("path") }, known.paths().map_err(super::external)?)?,
                Arc::clone(&known.dictionary),
            );
            let test = move |path: Option<&str>| answers.text(path.and_then(|path| dictionary.files.find(path)));
            let before = filter.files.take();
            filter.files = Some(Arc::new(move |path| before.as_ref().is_none_or(|before| before(path)) && test(path)));
        }
        Subject::Phase => {
            let answers = word(&const { column("ph") }, &known.phases)?;
            let letters = known.phases.iter().enumerate().filter(|(key, _)| answers.text(Some(*key as u32)));
            let bits =
                letters.filter_map(|(_, letter)| letter?.bytes().next()).map(phase_bit).fold(0, |all, bit| all | bit);
            filter.phases = Some(filter.phases.unwrap_or(u16::MAX) & bits);
        }
        Subject::Process => {
            let accepted = accepted_processes(session, known, condition)?;
            let before = filter.processes.take();
            filter.processes = Some(Arc::new(move |process| {
                before.as_ref().is_none_or(|before| before(process))
                    && accepted.get(&process.key()).is_none_or(|yes| *yes)
            }));
        }
    }
    Ok(())
}

fn both_text(
    tests: &mut Option<weftline_index::filter::TextTest>,
    test: impl Fn(&str) -> bool + Send + Sync + 'static,
) {
    let before = tests.take();
    *tests = Some(Arc::new(move |text| before.as_ref().is_none_or(|before| before(text)) && test(text)));
}

/// The result of a condition for each string.
struct Answers {
    by_key: BooleanArray,
    of_null: bool,
}

impl Answers {
    fn of_words(
        session: &dyn Session,
        condition: &Expr,
        column: &str,
        values: &Arc<datafusion::arrow::array::StringArray>,
    ) -> Result<Answers> {
        // The last row is null.
        let keys: Int32Array = (0..values.len() as i32).map(Some).chain([None]).collect();
        let answers = evaluate(session, condition, vec![(column, arrow_type(ColumnKind::Word), words(keys, values)?)])?;
        let last = answers.len() - 1;
        Ok(Answers { of_null: holds(&answers, last), by_key: answers })
    }

    fn text(&self, key: Option<u32>) -> bool {
        key.map_or(self.of_null, |key| holds(&self.by_key, key as usize))
    }
}

fn holds(answers: &BooleanArray, place: usize) -> bool {
    place < answers.len() && answers.is_valid(place) && answers.value(place)
}

fn accepted_processes(session: &dyn Session, known: &Vocabulary, condition: &Expr) -> Result<HashMap<String, bool>> {
    let dictionary: &Dictionary = &known.dictionary;
    let processes = &dictionary.processes;
    let number = |value: &dyn Fn(usize, &Process) -> Option<i64>| {
        integers(processes.iter().enumerate().map(|(place, process)| value(place, process)).collect())
    };
    let hosts = words(known.host_of.iter().copied().collect(), &known.hosts)?;
    let columns = vec![
        ("process", DataType::Int64, number(&|place, _| known.identities[place].map(i64::from))),
        ("host", arrow_type(ColumnKind::Word), hosts),
        ("pid", DataType::Int64, number(&|_, process| Some(process.pid))),
        ("rank", DataType::Int64, number(&|_, process| process.rank)),
    ];
    let answers = evaluate(session, condition, columns)?;
    let mut accepted = HashMap::with_capacity(processes.len());
    for (place, process) in processes.iter().enumerate() {
        *accepted.entry(process.key()).or_insert(false) |= holds(&answers, place);
    }
    Ok(accepted)
}

/// Lets DataFusion evaluate a condition over some rows.
fn evaluate(session: &dyn Session, condition: &Expr, columns: Vec<(&str, DataType, ArrayRef)>) -> Result<BooleanArray> {
    let rows = columns.first().map_or(0, |(_, _, column)| column.len());
    let fields: Vec<Field> = columns.iter().map(|(name, kind, _)| Field::new(*name, kind.clone(), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns.into_iter().map(|(_, _, column)| column).collect())?;
    let expression = session.create_physical_expr(condition.clone(), &DFSchema::try_from(schema)?)?;
    let answers = expression.evaluate(&batch)?.into_array(rows)?;
    let answers = answers.as_boolean_opt();
    answers.cloned().ok_or_else(|| DataFusionError::Internal("a condition is not a truth value".to_owned()))
}
