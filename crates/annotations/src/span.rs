//! Spans on the thread's stack.

use std::fmt::Display;

use weftline_recorder::annotation::{EventKind, Usage};
use weftline_recorder::table::Table;

use crate::args::{Args, Displayed, Value};
use crate::front::{self, EventHead};
use crate::locate;
use crate::text::Text;

/// A place in the program that makes events: its name and category.
#[derive(Debug)]
pub struct Site {
    pub(crate) name: Text,
    pub(crate) category: Text,
}

impl Site {
    /// A place, usually a `static`.
    pub const fn new(name: &'static str, category: &'static str) -> Site {
        Site { name: Text::new(name), category: Text::new(category) }
    }

    #[inline(always)]
    pub(crate) fn head(&self, table: &Table, kind: EventKind, start: u64, end: u64, id: u64) -> EventHead {
        EventHead { kind, name: self.name.id(table), category: self.category.id(table), start, end, id }
    }
}

/// A span from its making to its drop, be that by return, `?` or panic.
#[must_use = "a span ends where it is dropped: give it a name, such as `_span`"]
pub struct Span(Option<Open>);

struct Open {
    table: &'static Table,
    site: &'static Site,
    epoch: u32,
    start: u64,
    usage: Option<Usage>,
    args: Args,
}

impl Span {
    /// Begins a span; `fill` adds its arguments and is called only when something is recorded.
    #[inline(always)]
    pub fn enter(site: &'static Site, fill: impl FnOnce(&'static Table, &mut Args)) -> Span {
        match locate::recording() {
            None => Span(None),
            Some(table) => {
                let mut args = Args::new();
                fill(table, &mut args);
                let (epoch, usage) = (front::epoch(table), front::wanted_usage(table));
                Span(Some(Open { table, site, epoch, start: front::now(table), usage, args }))
            }
        }
    }

    /// Adds an argument that is known only later.
    pub fn record(&mut self, key: &'static str, value: &(impl Value + ?Sized)) {
        if let Some(open) = &mut self.0
            && front::still(open.table, open.epoch)
        {
            let key = front::intern(open.table, key.as_bytes());
            value.with(&mut |argument| open.args.put(key, argument));
        }
    }

    /// Is this span recorded?
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }
}

impl Drop for Span {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(open) = &mut self.0 {
            open.end();
        }
    }
}

impl Open {
    /// Out of line, so that all of a span that is off is inlined: 2.4 ns with this inlined, 0.8 ns without.
    #[inline(never)]
    fn end(&mut self) {
        let end = front::now(self.table);
        // The ids of its arguments belong to the recording that it was begun in.
        if !front::still(self.table, self.epoch) {
            return;
        }
        if let Some(from) = self.usage {
            self.args.put_usage(self.table, from);
        }
        if std::thread::panicking() {
            self.args.put(front::intern(self.table, b"error"), front::Argument::Text(b"panic"));
        }
        let head = self.site.head(self.table, EventKind::Span, self.start, end, 0);
        front::emit(self.table, &head, self.args.as_bytes());
    }
}

/// Calls `function`, once. A closure that is passed on may hand out what it was given; one that is called in place may not.
#[inline(always)]
pub fn call<T>(function: impl FnOnce() -> T) -> T {
    function()
}

/// Records the error of a result.
pub fn note_error<T, E: Display>(span: &mut Span, result: &Result<T, E>) {
    if let Err(error) = result {
        span.record("error", &Displayed(error));
    }
}
