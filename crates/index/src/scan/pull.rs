//! Row groups one by one, for an engine that asks for them when it has room: see [`Run::pull`].

use std::sync::Arc;

use super::{Batch, Effort, Reader, Request, needed, plan};
use crate::Result;
use crate::filter::Compiled;
use crate::run::{Content, Run};

/// The row groups of a run that may hold a match.
pub struct Pull {
    run: Arc<Run>,
    request: Request,
    compiled: Arc<Compiled>,
    groups: Vec<(usize, usize)>,
    effort: Effort,
}

impl Run {
    /// Finds the row groups that a question needs and lets the caller read each when it likes, from any thread. A run without an index has
    /// none to choose from: nothing, use [`Run::scan`].
    pub fn pull(self: &Arc<Run>, request: Request) -> Option<Pull> {
        let Content::Indexed(segments) = &self.content else { return None };
        let compiled = Arc::new(Compiled::new(&request.filter, &self.dictionary()));
        let (groups, effort) = plan(segments, &compiled);
        Some(Pull { run: Arc::clone(self), request, compiled, groups, effort })
    }
}

impl Pull {
    /// How many row groups there are, and how many of them must be read.
    pub fn effort(&self) -> Effort {
        self.effort
    }

    /// Rows of a row group before the filter.
    pub fn rows(&self, number: usize) -> u64 {
        self.located(number).map_or(0, |(segment, group)| segment.0.meta.groups[group].rows)
    }

    /// Reads one of the row groups that must be read, `0..effort().groups_read`, and hands on what matches.
    pub fn read(&self, number: usize, each: &mut dyn FnMut(&Batch)) -> Result<()> {
        let Some(((segment, renumber), group)) = self.located(number) else { return Ok(()) };
        let columns = needed(&self.request, &self.compiled);
        let reader = Reader { compiled: Arc::clone(&self.compiled), columns, request: &self.request };
        reader.group(segment, renumber, group, each)
    }

    fn located(&self, number: usize) -> Option<(&(crate::segment::Segment, super::Renumber), usize)> {
        let Content::Indexed(segments) = &self.run.content else { return None };
        let (place, group) = self.groups.get(number)?;
        Some((&segments[*place], *group))
    }
}
