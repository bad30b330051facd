//! Progress reports of long work. The command line and notebooks draw a bar; by default nothing is reported.

/// Somebody who wants to know.
pub trait Progress: Sync + Send {
    /// A piece of work begins: what it is, and how many bytes of trace files it will read.
    fn begin(&self, what: &str, bytes: u64);
    /// So many bytes more are done.
    fn advance(&self, bytes: u64);
    /// It is done.
    fn end(&self);
}

/// Reports nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn end(&self) {}
}
