//! `weft top`: draws a run in progress.
//!
//! ```text
//! Glance::look (drain) ─▶ its window ────┐
//! ProcessSampler (collect) ─▶ usage ─────┴▶ picture ─┐
//!                              keys ─────▶ view ─────┴▶ draw ─▶ lines ─▶ screen
//! ```
//! Drawing is a function of a [`picture::Picture`], a [`view::View`] and the size of the terminal; only [`screen`] knows a terminal.

pub(crate) mod draw;
pub(crate) mod picture;
pub(crate) mod screen;
pub(crate) mod usage;
pub(crate) mod view;
