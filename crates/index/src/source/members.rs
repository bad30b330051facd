//! Cuts a large foreign gzip file of many members, so that threads can inflate them in parallel.
//!
//! Only our own members state where they end. A place that looks like the start of a member nearly always is one; a range of the file
//! from one such place to another is a task. The thread that inflates it finds out whether that was right: if not (or if a
//! line continues in the next member, or data is damaged), everything from the last good member on is read again sequentially.

use std::path::Path;

use weftline_format::dialect::Reading;
use weftline_format::gunzip;
use weftline_format::source::{Input as _, OpenFile};

use super::{TraceFile, Work};
use crate::{IndexError, Result};

/// Compressed bytes of a task: some 200,000 events.
const TASK: usize = 3 << 20;
/// A member of more than this is inflated as it is read, not at once.
const LONGEST: usize = 8 << 20;

/// Hands out the stretches of a file. Nothing when it does not consist of many members.
pub(super) fn cut(
    number: usize,
    file: &TraceFile,
    input: &OpenFile,
    reading: Reading,
    give: &mut impl FnMut(Work, u64) -> bool,
) -> Result<Option<bool>> {
    let head = read(input, 0, LONGEST, &file.path)?;
    if gunzip::starts(&head).take(3).count() < 3 {
        return Ok(None);
    }
    drop(head);
    let mut at = 0;
    let size = input.size();
    while at < size {
        let mut bytes = read(input, at, TASK, &file.path)?;
        if bytes.is_empty() {
            break;
        }
        if at + (bytes.len() as u64) < size {
            let mut end = last_start(&bytes);
            if end.is_none() {
                bytes = read(input, at, LONGEST, &file.path)?;
                end = last_start(&bytes);
            }
            let Some(end) = end else {
                return Ok(Some(give(Work::Rest { file: number, from: at }, size - at)));
            };
            bytes.truncate(end);
        }
        let len = bytes.len() as u64;
        let last = at + len >= size;
        if !give(Work::Gzip { file: number, reading, at, bytes, last }, len) {
            return Ok(Some(false));
        }
        at += len;
    }
    Ok(Some(true))
}

/// The last place where a member may start, but for the first byte.
fn last_start(bytes: &[u8]) -> Option<usize> {
    gunzip::starts(bytes).filter(|start| *start > 0).last()
}

fn read(input: &OpenFile, at: u64, most: usize, path: &Path) -> Result<Vec<u8>> {
    let left = usize::try_from(input.size().saturating_sub(at)).unwrap_or(usize::MAX);
    let mut bytes = vec![0; most.min(left)];
    let read = input.fill_at(at, &mut bytes).map_err(IndexError::io(path))?;
    bytes.truncate(read);
    Ok(bytes)
}
