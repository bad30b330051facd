//! What must hold for programs under `weft run`: the program is not disturbed, and nothing is missing from its trace.
//!
//! One binary, so that the product is found or built once. Each hazard is a C program in `programs/`, with a header that says what
//! must hold, and a line in one of these modules that says exactly what the trace must contain.

/// One test per line: a name and a [`weftline_testkit::Case`].
macro_rules! hazards {
    ($($(#[$note:meta])* $name:ident: $case:expr;)*) => {
        $( $(#[$note])* #[test] fn $name() { $case.check(); } )*
    };
}

mod annotate_c;
mod annotate_rust;
mod arguments;
mod attribution;
mod bad_days;
mod browsers;
mod calls;
mod collect;
mod docs;
mod endings;
mod findings;
mod hostile;
mod import;
mod injection;
mod late_binding;
mod ledger;
mod live;
mod options;
mod parts;
mod perfetto;
mod privacy;
mod processes;
mod reading;
mod real_programs;
mod restrictions;
mod sigkill;
mod stdio;
mod supervisor;
mod threads_signals;
mod top;
mod usage;
mod weekly;
