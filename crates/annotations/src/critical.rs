//! What `#[critical_path]` expands to: the pointcuts of aspect-style annotation.
//!
//! | pointcut | what is recorded |
//! |---|---|
//! | `before`, `after` | only the start, only the end of a span on the thread's stack |
//! | `around` | the span |
//! | `before_async`, `after_async` | only the start, only the end of an async span; a common `scope` pairs them, across threads |
//! | `around_async` | the async span |

use weftline_recorder::annotation::{Argument, EventKind};
use weftline_recorder::table::Table;

use crate::args::Args;
use crate::span::Site;
use crate::text::Text;
use crate::{front, locate};

static SCOPE: Text = Text::new("scope");
static ERROR: Text = Text::new("error");

/// Adds the scope of a span that is recorded as one event.
pub fn add_scope(args: &mut Args, table: &Table, scope: &'static str) {
    args.add(table, &SCOPE, scope);
}

/// One end of a span on the thread's stack, recorded separately.
pub struct Pointcut;

impl Pointcut {
    /// Tells that the function begins.
    pub fn before(site: &'static Site, scope: Option<&'static Text>) {
        tell(site, EventKind::Begin, scope, 0);
    }

    /// Tells that it ended when the guard is dropped, by return or panic.
    #[must_use = "the end is recorded when this is dropped"]
    pub fn after(site: &'static Site, scope: Option<&'static Text>) -> impl Drop {
        AtEnd { site, kind: EventKind::End, scope }
    }
}

/// One end of an async span, or both.
pub struct AsyncPointcut;

impl AsyncPointcut {
    /// Tells that it begins.
    pub fn before(site: &'static Site, scope: Option<&'static Text>) {
        tell(site, EventKind::AsyncBegin, scope, shared_id(site, scope));
    }

    /// Tells that it ended when the guard is dropped.
    #[must_use = "the end is recorded when this is dropped"]
    pub fn after(site: &'static Site, scope: Option<&'static Text>) -> impl Drop {
        AtEnd { site, kind: EventKind::AsyncEnd, scope }
    }

    /// Tells the whole span when the guard is dropped.
    #[must_use = "the span ends when this is dropped"]
    pub fn around(site: &'static Site, scope: Option<&'static Text>) -> impl Drop {
        let start = locate::recording().map_or(0, front::now);
        Around { site, scope, start }
    }
}

/// The id of a span with two separate events: the same scope means the same span.
fn shared_id(site: &Site, scope: Option<&Text>) -> u64 {
    front::id_of(scope.unwrap_or(&site.name).as_str())
}

fn tell(site: &'static Site, kind: EventKind, scope: Option<&'static Text>, id: u64) {
    if let Some(table) = locate::recording() {
        let now = front::now(table);
        tell_span(site, kind, scope, id, now, now);
    }
}

fn tell_span(site: &'static Site, kind: EventKind, scope: Option<&'static Text>, id: u64, start: u64, end: u64) {
    if let Some(table) = locate::recording() {
        let mut args = Args::new();
        if let Some(scope) = scope {
            args.put(SCOPE.id(table), Argument::Name(scope.id(table)));
        }
        if kind != EventKind::Begin && kind != EventKind::AsyncBegin && std::thread::panicking() {
            args.put(ERROR.id(table), Argument::Text(b"panic"));
        }
        front::emit(table, &site.head(table, kind, start, end, id), args.as_bytes());
    }
}

struct AtEnd {
    site: &'static Site,
    kind: EventKind,
    scope: Option<&'static Text>,
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        let id = if self.kind == EventKind::AsyncEnd { shared_id(self.site, self.scope) } else { 0 };
        tell(self.site, self.kind, self.scope, id);
    }
}

struct Around {
    site: &'static Site,
    scope: Option<&'static Text>,
    start: u64,
}

impl Drop for Around {
    fn drop(&mut self) {
        if let Some(table) = locate::recording().filter(|_| self.start != 0) {
            tell_span(self.site, EventKind::AsyncSpan, self.scope, front::new_id(), self.start, front::now(table));
        }
    }
}
