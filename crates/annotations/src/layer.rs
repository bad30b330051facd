//! A layer for `tracing_subscriber`: spans and events of the crate `tracing` go into the trace.
//!
//! ```
//! use tracing_subscriber::prelude::*;
//! tracing_subscriber::registry().with(weftline::layer()).init();
//! ```
//!
//! | of `tracing` | in the trace |
//! |---|---|
//! | a span that is entered once | one span: from the entry to the exit, with the fields it had then |
//! | a span that is entered again (a future, at each poll) | a span per entry; the fields are at the first one. When it closes, an async span for its whole life: from its making to its close, with all fields, `entered` (how often) and `busy_ns` (how long in sum) |
//! | a span that is never entered, or gets fields after its only exit | its life as an async span, so that nothing it tells is lost |
//! | an event | an instant, named by its place, with its fields; the text is `message` |
//!
//! A future that `tracing` instruments is entered at each poll, and once more when it is dropped.
//!
//! The category is the target, and `level` is an argument. A field that is recorded again replaces the earlier value. If nothing records, each
//! call of the layer is a load and a branch; the cost of the registry itself remains.

use std::cell::RefCell;
use std::fmt;

use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};
use weftline_recorder::annotation::{Argument, EventKind, Usage, arguments};
use weftline_recorder::table::Table;

use crate::args::{Args, Debugged, Displayed, Value};
use crate::front::{self, EventHead};
use crate::locate::recording;
use crate::text::Text;

static LEVEL: Text = Text::new("level");
static ERROR: Text = Text::new("error");
static ENTERED: Text = Text::new("entered");
static BUSY: Text = Text::new("busy_ns");

/// The layer: `registry().with(weftline::layer())`.
pub fn layer() -> TraceLayer {
    TraceLayer { _made_here: () }
}

/// See [`layer()`].
#[derive(Debug)]
pub struct TraceLayer {
    _made_here: (),
}

/// What the layer keeps of a span, beside it in the registry.
struct Kept {
    table: &'static Table,
    epoch: u32,
    name: u32,
    category: u32,
    made: u64,
    entered: u64,
    busy: u64,
    args: Args,
    /// Fields came after the first exit: no span on a stack has them.
    late: bool,
}

impl Kept {
    fn new(table: &'static Table, of: &'static Metadata<'static>, made: u64) -> Kept {
        Kept {
            table,
            epoch: front::epoch(table),
            name: front::intern(table, of.name().as_bytes()),
            category: front::intern(table, of.target().as_bytes()),
            made,
            entered: 0,
            busy: 0,
            args: Args::new(),
            late: false,
        }
    }

    fn head(&self, kind: EventKind, start: u64, end: u64, id: u64) -> EventHead {
        EventHead { kind, name: self.name, category: self.category, start, end, id }
    }

    /// Tells of one entry, which just ended.
    fn leave(&mut self, entry: &Entry, end: u64) {
        let mut args = Args::new();
        if self.entered == 0 {
            append(&mut args, &self.args);
        }
        if let Some(from) = entry.usage {
            args.put_usage(self.table, from);
        }
        if std::thread::panicking() {
            put_beside(&mut args, ERROR.id(self.table), Argument::Text(b"panic"));
        }
        self.entered += 1;
        self.busy += end.saturating_sub(entry.start);
        front::emit(self.table, &self.head(EventKind::Span, entry.start, end, 0), args.as_bytes());
    }

    /// Tells of the whole life, if its entries do not tell all of it.
    fn close(&mut self) {
        if self.entered == 1 && !self.late {
            return;
        }
        let end = front::now(self.table);
        put_beside(&mut self.args, ENTERED.id(self.table), Argument::UInt(self.entered));
        put_beside(&mut self.args, BUSY.id(self.table), Argument::Ticks(self.busy));
        let head = self.head(EventKind::AsyncSpan, self.made, end, front::new_id());
        front::emit(self.table, &head, self.args.as_bytes());
    }
}

fn add_level(args: &mut Args, table: &Table, of: &Metadata<'_>) {
    static LEVELS: [Text; 5] =
        [Text::new("ERROR"), Text::new("WARN"), Text::new("INFO"), Text::new("DEBUG"), Text::new("TRACE")];
    let level = match *of.level() {
        Level::ERROR => &LEVELS[0],
        Level::WARN => &LEVELS[1],
        Level::INFO => &LEVELS[2],
        Level::DEBUG => &LEVELS[3],
        Level::TRACE => &LEVELS[4],
    };
    put_beside(args, LEVEL.id(table), Argument::Name(level.id(table)));
}

fn has(args: &Args, key: u32) -> bool {
    arguments(args.as_bytes()).any(|(other, _)| other == key)
}

/// Adds what the layer knows, unless the program has a field of the same name: that is what its author looks for.
fn put_beside(args: &mut Args, key: u32, argument: Argument<'_>) {
    if !has(args, key) {
        args.put(key, argument);
    }
}

fn append(to: &mut Args, from: &Args) {
    arguments(from.as_bytes()).for_each(|(key, argument)| to.put(key, argument));
}

/// Adds fields, instead of what was there under the same names.
fn replace(args: &mut Args, new: &Args) {
    let old = std::mem::take(args);
    arguments(old.as_bytes()).filter(|(key, _)| !has(new, *key)).for_each(|(key, argument)| args.put(key, argument));
    append(args, new);
}

/// One entry into a span that has not been left yet. Entries are their thread's own: a span may be entered on several at a time.
struct Entry {
    span: u64,
    start: u64,
    usage: Option<Usage>,
}

thread_local! {
    static ENTRIES: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

/// Does something with the thread's open entries; nothing in a thread that has none any more because it is ending.
fn with_entries<T>(what: impl FnOnce(&mut Vec<Entry>) -> T) -> Option<T> {
    ENTRIES.try_with(|entries| entries.try_borrow_mut().ok().map(|mut entries| what(&mut entries))).ok().flatten()
}

/// Calls `what` with what is kept of a span; that is made now if the span is older than the recording.
fn with_kept<S>(span: &SpanRef<'_, S>, table: &'static Table, made: u64, what: impl FnOnce(&mut Kept))
where
    S: for<'a> LookupSpan<'a>,
{
    let mut extensions = span.extensions_mut();
    if extensions.get_mut::<Kept>().is_none_or(|kept| !front::still(kept.table, kept.epoch)) {
        let mut kept = Kept::new(table, span.metadata(), made);
        add_level(&mut kept.args, table, span.metadata());
        extensions.replace(kept);
    }
    if let Some(kept) = extensions.get_mut() {
        what(kept);
    }
}

impl<S> Layer<S> for TraceLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(table) = recording() else { return };
        let Some(span) = context.span(id) else { return };
        let mut kept = Kept::new(table, span.metadata(), front::now(table));
        // The program's own code formats values, and may use spans itself: not while this one is locked.
        attributes.record(&mut Fields { table, args: &mut kept.args });
        add_level(&mut kept.args, table, span.metadata());
        span.extensions_mut().replace(kept);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(table) = recording() else { return };
        let Some(span) = context.span(id) else { return };
        let mut new = Args::new();
        values.record(&mut Fields { table, args: &mut new });
        with_kept(&span, table, front::now(table), |kept| {
            replace(&mut kept.args, &new);
            kept.late |= kept.entered > 0;
        });
    }

    fn on_enter(&self, id: &Id, _: Context<'_, S>) {
        let Some(table) = recording() else { return };
        let usage = front::wanted_usage(table);
        let entry = Entry { span: id.into_u64(), start: front::now(table), usage };
        with_entries(|entries| entries.push(entry));
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let end = recording().map(|table| (table, front::now(table)));
        // Taken out even if nothing records any more.
        let entry = with_entries(|entries| {
            let place = entries.iter().rposition(|entry| entry.span == id.into_u64())?;
            Some(entries.remove(place))
        });
        if let (Some((table, end)), Some(Some(entry)), Some(span)) = (end, entry, context.span(id)) {
            with_kept(&span, table, entry.start, |kept| kept.leave(&entry, end));
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if recording().is_none() {
            return;
        }
        if let Some(span) = context.span(&id)
            && let Some(kept) = span.extensions_mut().get_mut::<Kept>()
            && front::still(kept.table, kept.epoch)
        {
            kept.close();
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let Some(table) = recording() else { return };
        let of = event.metadata();
        let mut args = Args::new();
        event.record(&mut Fields { table, args: &mut args });
        add_level(&mut args, table, of);
        let name = front::intern(table, of.name().as_bytes());
        let category = front::intern(table, of.target().as_bytes());
        let now = front::now(table);
        let head = EventHead { kind: EventKind::Instant, name, category, start: now, end: now, id: 0 };
        front::emit(table, &head, args.as_bytes());
    }
}

/// Packs fields.
struct Fields<'a> {
    table: &'static Table,
    args: &'a mut Args,
}

impl Fields<'_> {
    fn add(&mut self, field: &Field, value: &(impl Value + ?Sized)) {
        let key = front::intern(self.table, field.name().as_bytes());
        value.with(&mut |argument| self.args.put(key, argument));
    }
}

impl Visit for Fields<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, &value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, &value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, &value);
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        match i64::try_from(value) {
            Ok(value) => self.add(field, &value),
            Err(_) => self.add(field, &Displayed(value)),
        }
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        match u64::try_from(value) {
            Ok(value) => self.add(field, &value),
            Err(_) => self.add(field, &Displayed(value)),
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, &value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.add(field, &Displayed(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, &Debugged(value));
    }
}
