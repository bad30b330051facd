//! `weft top`: draws a run in progress.
//!
//! ```text
//! Glance::look (drain) ─▶ its window ────┐
//! Sampler (collect) ─▶ usage ────────────┴▶ Picture (drain) ─┐
//!                                  keys ─▶ view ─────────────┴▶ draw ─▶ lines ─▶ screen
//! ```
//! Drawing is a function of a [`Picture`](weftline_drain::glance::picture::Picture), a [`view::View`] and the size of the terminal; only [`screen`] knows a terminal.

pub(crate) mod draw;
pub(crate) mod screen;
pub(crate) mod view;
