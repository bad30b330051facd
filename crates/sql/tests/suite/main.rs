//! `weft-sql` as users run it. Nothing here links DataFusion.
//!
//! | module | says |
//! |---|---|
//! | `ask` | how the tests ask |
//! | `tables` | every table holds what the traces hold |
//! | `kernels` | SQL and the kernels of `weftline-analysis` agree |
//! | `pruning` | conditions are pushed down, visibly, and row groups are passed over |
//! | `functions` | what the functions give |
//! | `formats` | results in all formats, and where they go |
//! | `refusals` | what is not answered, and what is said then |
//! | `document` | `docs/schema.md` is up to date, and its examples run |

mod ask;
mod document;
mod formats;
mod functions;
mod kernels;
mod pruning;
mod refusals;
mod tables;
