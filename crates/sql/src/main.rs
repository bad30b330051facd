//! SQL over the index.
fn main() {}
