//! Row groups one by one, for an engine that asks for them when it has room: see [`Run::pull`].

use std::sync::{Arc, Mutex, PoisonError};

use super::{Batch, Effort, Reader, Request};
use crate::part::Room;
use crate::run::{Parts, Run};
use crate::{IndexError, Result};

/// The row groups of a run that may hold a match.
pub struct Pull {
    run: Arc<Run>,
    request: Request,
    groups: Vec<(usize, usize)>,
    effort: Effort,
    /// Replaced when a page turns out to be damaged.
    parts: Mutex<Arc<Parts>>,
}

impl Run {
    /// Finds the row groups that a question needs and lets the caller read each when it likes, from any thread. A run without an index has
    /// none to choose from: nothing, use [`Run::scan`].
    pub fn pull(self: &Arc<Run>, request: Request) -> Option<Pull> {
        // A row group that was handed over cannot be taken back: what could not be replaced is compared with its sums before any is.
        let is_whole = self.is_replaceable() || self.planned(&request).is_ok();
        if self.read_from_traces().is_some() || !is_whole {
            return None;
        }
        let parts = self.parts();
        let (groups, effort) = Reader::new(self, &request).plan(&parts);
        Some(Pull { run: Arc::clone(self), request, groups, effort, parts: Mutex::new(parts) })
    }
}

impl Pull {
    /// How many row groups there are, and how many of them must be read.
    pub fn effort(&self) -> Effort {
        self.effort
    }

    /// Rows of a row group before the filter.
    pub fn rows(&self, number: usize) -> u64 {
        self.groups.get(number).map_or(0, |(place, group)| self.parts()[*place].0.meta.groups[*group].rows)
    }

    /// Reads one of the row groups that must be read, `0..effort().groups_read`, and hands on what matches.
    pub fn read(&self, number: usize, each: &mut dyn FnMut(&Batch)) -> Result<()> {
        let Some(located) = self.groups.get(number) else { return Ok(()) };
        let reader = Reader::new(&self.run, &self.request);
        let mut parts = self.parts();
        if let Err(IndexError::Damaged { path, why }) = reader.check(&parts, &[*located], 1) {
            parts = self.run.heal(&parts)?;
            // Row groups that were read already must be the same in the new index: so they are unless trace files have changed.
            if reader.plan(&parts) != (self.groups.clone(), self.effort) {
                return Err(IndexError::Damaged { path, why });
            }
            *self.parts.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&parts);
        }
        let (part, renumber) = &parts[located.0];
        let read = reader.group(part, renumber, located.1, &mut Room::new()?, each);
        read.inspect_err(|error| self.run.doubt(error))
    }

    fn parts(&self) -> Arc<Parts> {
        Arc::clone(&self.parts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
