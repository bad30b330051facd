//! No code. Its manifest names crates that several products share, with all the features that any of them needs.
//!
//! cargo joins the features of the packages that are built together. The command, the Python modules, the tests and `weft-sql` are built by different
//! commands; without this, a feature that only one of them has (`syn`'s `visit-mut`, say) builds every crate above it once more for each.
//! `format` depends on this crate, and everything that is heavy on `format`. `cargo xtask tidy` compares what each product asks for.
#![forbid(unsafe_code)]
