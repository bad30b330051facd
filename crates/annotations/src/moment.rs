//! Events without a duration: instants, counters, metadata.

use weftline_recorder::annotation::Kind;
use weftline_recorder::table::Table;

use crate::args::Args;
use crate::span::Site;
use crate::{front, locate};

#[inline(always)]
fn tell(kind: Kind, site: &'static Site, fill: impl FnOnce(&'static Table, &mut Args)) {
    if let Some(table) = locate::recording() {
        let mut args = Args::new();
        fill(table, &mut args);
        let now = front::now(table);
        front::emit(table, &site.told(table, kind, now, now, 0), args.as_bytes());
    }
}

/// Tells that something happened now.
#[inline(always)]
pub fn instant(site: &'static Site, fill: impl FnOnce(&'static Table, &mut Args)) {
    tell(Kind::Instant, site, fill);
}

/// Tells values as they are now.
#[inline(always)]
pub fn counter(site: &'static Site, fill: impl FnOnce(&'static Table, &mut Args)) {
    tell(Kind::Counter, site, fill);
}

/// Tells a fact about the process.
#[inline(always)]
pub fn meta(site: &'static Site, fill: impl FnOnce(&'static Table, &mut Args)) {
    tell(Kind::Meta, site, fill);
}
