//! The kernels over whole traces: against the golden tables, a naive oracle, and what programs recorded. One binary: each one is a link of everything below.

mod findings_golden;
mod golden;
mod kernel_threads;
mod oracle;
mod summary;
mod totals;
