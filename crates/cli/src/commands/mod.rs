//! One file per verb. Each calls libraries and prints; none is called by another.

pub(crate) mod check;
pub(crate) mod collect;
pub(crate) mod doctor;
pub(crate) mod env;
pub(crate) mod index;
pub(crate) mod info;
pub(crate) mod pages;
pub(crate) mod query;
pub(crate) mod recover;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod top;
pub(crate) mod weave;
