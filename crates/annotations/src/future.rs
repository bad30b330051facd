//! Futures: records each poll and the whole lifetime.
//!
//! A poll is a span on the stack of its thread, like a call. A lifetime may cross others of its thread and may move
//! between threads, so it is an async span: from the first poll to the end, with the number of polls and the time spent in them. A
//! future that is dropped before it is done is marked as such.

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use weftline_recorder::annotation::{Argument, EventKind};
use weftline_recorder::table::Table;

use crate::args::{Args, Displayed};
use crate::front;
use crate::locate;
use crate::span::{Site, Span};
use crate::text::Text;

static POLLS: Text = Text::new("polls");
static BUSY: Text = Text::new("busy_ns");
static DROPPED: Text = Text::new("dropped");
static ERROR: Text = Text::new("error");

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
        Traced::of(Life::begin(site, fill), future)
    }

    /// As [`Traced::with`], where the future takes what the arguments were made of.
    #[doc(hidden)]
    pub fn of(life: Life, future: F) -> Traced<F> {
        Traced { future, life }
    }
}

impl<F: Future> Traced<F> {
    /// Polls; `look` may add arguments when it sees the result.
    fn poll_and(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        look: impl FnOnce(&F::Output, &'static Table, &mut Args),
    ) -> Poll<F::Output> {
        let this = self.project();
        if !this.life.enter() {
            return this.future.poll(context);
        }
        let polled = {
            let _poll = Span::enter(this.life.site, |_, _| {});
            this.future.poll(context)
        };
        this.life.leave();
        if let Poll::Ready(result) = &polled {
            if let Some(open) = &mut this.life.open {
                look(result, open.table, &mut open.args);
            }
            this.life.end(false);
        }
        polled
    }
}

impl<F: Future> Future for Traced<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.poll_and(context, |_, _, _| {})
    }
}

pin_project! {
    /// A [`Traced`] future that also records the error it ends with.
    #[must_use = "futures do nothing unless polled"]
    pub struct TracedResult<F> {
        #[pin]
        traced: Traced<F>,
    }
}

impl<F> TracedResult<F> {
    /// See [`Traced::of`].
    pub fn of(life: Life, future: F) -> TracedResult<F> {
        TracedResult { traced: Traced::of(life, future) }
    }
}

impl<T, E: Display, F: Future<Output = Result<T, E>>> Future for TracedResult<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.project().traced.poll_and(context, |result, table, args| {
            if let Err(error) = result {
                args.add(table, &ERROR, &Displayed(error));
            }
        })
    }
}

/// What is known of a future between its polls; tells it when dropped in between.
pub struct Life {
    site: &'static Site,
    open: Option<Open>,
}

struct Open {
    table: &'static Table,
    epoch: u32,
    start: Option<u64>,
    /// When the poll under way began.
    entered: Option<u64>,
    polls: u64,
    busy: u64,
    args: Args,
}

impl Open {
    fn new(table: &'static Table) -> Open {
        Open { table, epoch: front::epoch(table), start: None, entered: None, polls: 0, busy: 0, args: Args::new() }
    }

    fn leave(&mut self, now: u64) {
        self.busy += self.entered.take().map_or(0, |entered| now.saturating_sub(entered));
    }
}

impl Life {
    /// That of a future which is about to be made; `fill` is called only when something is recorded.
    pub fn begin(site: &'static Site, fill: impl FnOnce(&'static Table, &mut Args)) -> Life {
        let open = locate::recording().map(|table| {
            let mut open = Open::new(table);
            fill(table, &mut open.args);
            open
        });
        Life { site, open }
    }

    /// A poll begins; is it recorded?
    fn enter(&mut self) -> bool {
        let Some(table) = locate::recording() else { return false };
        let open = self.open.get_or_insert_with(|| Open::new(table));
        if !front::still(open.table, open.epoch) {
            *open = Open::new(table);
        }
        let now = front::now(table);
        open.start.get_or_insert(now);
        open.entered = Some(now);
        open.polls += 1;
        true
    }

    fn leave(&mut self) {
        if let Some(open) = &mut self.open {
            open.leave(front::now(open.table));
        }
    }

    fn end(&mut self, dropped: bool) {
        // A future that was never polled has no life to record.
        let Some((mut open, start)) = self.open.take().and_then(|open| open.start.map(|start| (open, start))) else {
            return;
        };
        let table = open.table;
        if !front::still(table, open.epoch) {
            return;
        }
        let now = front::now(table);
        // A poll that panics is not left otherwise.
        open.leave(now);
        open.args.put(POLLS.id(table), Argument::UInt(open.polls));
        open.args.put(BUSY.id(table), Argument::Ticks(open.busy));
        if std::thread::panicking() {
            open.args.put(ERROR.id(table), Argument::Text(b"panic"));
        } else if dropped {
            open.args.put(DROPPED.id(table), Argument::Bool(true));
        }
        let head = self.site.head(table, EventKind::AsyncSpan, start, now, front::new_id());
        front::emit(table, &head, open.args.as_bytes());
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.end(true);
    }
}
