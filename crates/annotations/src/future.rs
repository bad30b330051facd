//! Futures: timed by their polls and by their whole life.
//!
//! A poll is a span on the stack of the thread that makes it, like a call. A life may cross others of its thread and may move
//! between threads, so it is an async span: from the first poll to the end, with the number of polls and the time spent in them. A
//! future that is dropped before it is done says so.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use weftline_recorder::annotation::{Argument, Kind};
use weftline_recorder::table::Table;

use crate::args::Args;
use crate::front;
use crate::recorder;
use crate::span::{Site, Span};
use crate::text::Text;

static POLLS: Text = Text::new("polls");
static BUSY: Text = Text::new("busy_ns");
static DROPPED: Text = Text::new("dropped");

pin_project! {
    /// A future whose polls and life are recorded: `load(path).await` becomes `Traced::new(&SITE, load(path)).await`.
    #[must_use = "futures do nothing unless polled"]
    pub struct Traced<F> {
        #[pin]
        future: F,
        life: Life,
    }
}

impl<F> Traced<F> {
    /// Records `future` under the name of `site`.
    pub fn new(site: &'static Site, future: F) -> Traced<F> {
        Traced { future, life: Life { site, open: None } }
    }

    /// As [`Traced::new`], with arguments; `fill` is called only when something is recorded.
    pub fn with(site: &'static Site, fill: impl FnOnce(&'static Table, &mut Args), future: F) -> Traced<F> {
        let open = recorder::recording().map(|table| {
            let mut args = Args::new();
            fill(table, &mut args);
            Open { table, start: None, polls: 0, busy: 0, args }
        });
        Traced { future, life: Life { site, open } }
    }
}

impl<F: Future> Future for Traced<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Some(table) = this.life.begin() else { return this.future.poll(context) };
        let before = front::now(table);
        let polled = {
            let _poll = Span::enter(this.life.site, |_, _| {});
            this.future.poll(context)
        };
        this.life.add(before, front::now(table), polled.is_ready());
        polled
    }
}

/// What is known of a future between its polls; tells it when dropped in between.
struct Life {
    site: &'static Site,
    open: Option<Open>,
}

struct Open {
    table: &'static Table,
    start: Option<u64>,
    polls: u64,
    busy: u64,
    args: Args,
}

impl Life {
    fn begin(&mut self) -> Option<&'static Table> {
        if self.open.is_none() {
            let table = recorder::recording()?;
            self.open = Some(Open { table, start: None, polls: 0, busy: 0, args: Args::new() });
        }
        self.open.as_ref().map(|open| open.table)
    }

    fn add(&mut self, from: u64, to: u64, done: bool) {
        if let Some(open) = &mut self.open {
            open.start.get_or_insert(from);
            open.polls += 1;
            open.busy += to.saturating_sub(from);
        }
        if done {
            self.end(false);
        }
    }

    fn end(&mut self, dropped: bool) {
        // A future that was never polled has no life to tell of.
        let Some((mut open, start)) = self.open.take().and_then(|open| open.start.map(|start| (open, start))) else {
            return;
        };
        let table = open.table;
        open.args.put(POLLS.id(table), Argument::UInt(open.polls));
        open.args.put(BUSY.id(table), Argument::Ticks(open.busy));
        if dropped {
            open.args.put(DROPPED.id(table), Argument::Bool(true));
        }
        let told = self.site.told(table, Kind::AsyncSpan, start, front::now(table), front::new_id());
        front::emit(table, &told, open.args.as_bytes());
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.end(true);
    }
}
