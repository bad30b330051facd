//! Queries: runs the program `weft-sql` and passes on the Arrow stream that it prints.

use std::ffi::OsString;
use std::io::{BufReader, ErrorKind, Read as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;

use crate::failure::Error;
use crate::stream::Source;

/// The answer to a query. The first reading continues what was started to see whether the query works; others ask again.
pub(crate) struct Answer {
    program: PathBuf,
    words: Vec<OsString>,
    schema: SchemaRef,
    first: Mutex<Option<Batches>>,
}

impl Answer {
    /// Starts the program and waits for the form of its answer.
    pub(crate) fn of(program: PathBuf, words: Vec<OsString>) -> PyResult<Answer> {
        let first = Batches::start(&program, &words)?;
        Ok(Answer { program, words, schema: first.stream.schema(), first: Mutex::new(Some(first)) })
    }
}

impl Source for Answer {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    fn open(&self) -> PyResult<Box<dyn RecordBatchReader + Send>> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        match first {
            Some(first) => Ok(Box::new(first)),
            None => Ok(Box::new(Batches::start(&self.program, &self.words)?)),
        }
    }
}

/// What the program prints.
struct Batches {
    program: Program,
    stream: StreamReader<BufReader<ChildStdout>>,
}

impl Batches {
    fn start(path: &PathBuf, words: &[OsString]) -> PyResult<Batches> {
        let mut command = Command::new(path);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            let advice = if error.kind() == ErrorKind::NotFound { "; does WEFT_SQL name the right file?" } else { "" };
            Error::new_err(format!("cannot start {} ({error}){advice}", path.display()))
        })?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        // Read at the same time, or a program that complains much would wait for us while we wait for its answer.
        let complaints = std::thread::spawn(move || {
            let mut text = Vec::new();
            // What could be read is reported; a broken pipe has no more.
            let _ = stderr.map(|mut stderr| stderr.read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        });
        let mut program = Program { child, complaints: Some(complaints) };
        let stream = stdout.ok_or_else(|| Error::new_err("weft-sql has no output"))?;
        match StreamReader::try_new(BufReader::new(stream), None) {
            Ok(stream) => Ok(Batches { program, stream }),
            Err(error) => Err(Error::new_err(program.failure().unwrap_or_else(|| format!("weft-sql: {error}")))),
        }
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.stream.next() {
            Some(Ok(batch)) => Some(Ok(batch)),
            // A truncated result ends like a complete one: only the exit code shows the difference.
            other => match (self.program.failure(), other) {
                (Some(failure), _) => Some(Err(ArrowError::ExternalError(failure.into()))),
                (None, other) => other,
            },
        }
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }
}

/// A running program. It ends with its reader.
struct Program {
    child: Child,
    complaints: Option<JoinHandle<String>>,
}

impl Program {
    /// Waits for the end: what it complained about, when it failed.
    fn failure(&mut self) -> Option<String> {
        let complaints = self.complaints.take()?.join().unwrap_or_default();
        match self.child.wait() {
            Ok(status) if status.success() => None,
            Ok(status) => {
                let complaint = complaints.trim();
                let complaint = complaint.strip_prefix("weft-sql: ").unwrap_or(complaint);
                Some(if complaint.is_empty() { format!("weft-sql ended with {status}") } else { complaint.to_owned() })
            }
            Err(error) => Some(format!("cannot wait for weft-sql: {error}")),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.complaints.is_some() {
            // It has ended, or does so now; there is nobody to tell.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
