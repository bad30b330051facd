//! Generated traces through all rules.
