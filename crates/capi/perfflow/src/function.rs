//! The name of a function: its symbol demangled, without return type and parameters.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, Symbol};

/// Longest name; names of templates may be endless.
const LONGEST: usize = 1024;

/// Symbols, and what they are called.
type Names = HashMap<Box<[u8]>, Box<[u8]>>;

thread_local! {
    /// Those that this thread has met. A name is demangled once for each thread, so that no thread waits for another.
    static NAMES: RefCell<Names> = RefCell::default();
}

/// Calls `then` with the name of the function with this symbol.
pub(crate) fn with_name<T>(symbol: &[u8], then: impl Fn(&[u8]) -> T) -> T {
    // The symbol of a C function is its name.
    if !symbol.starts_with(b"_Z") {
        return then(symbol);
    }
    let known = NAMES.try_with(|names| {
        let mut names = names.try_borrow_mut().ok()?;
        if let Some(name) = names.get(symbol) {
            return Some(then(name));
        }
        let name = names.entry(symbol.into()).or_insert_with(|| readable(symbol));
        Some(then(name))
    });
    // At the end of a thread, or in a handler that interrupted this very function.
    known.ok().flatten().unwrap_or_else(|| then(&readable(symbol)))
}

/// The beginning of a text.
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.0.push_str(part);
        if self.0.len() > LONGEST { Err(fmt::Error) } else { Ok(()) }
    }
}

fn readable(symbol: &[u8]) -> Box<[u8]> {
    let mut name = Limited(String::new());
    let options = DemangleOptions::new().no_params().no_return_type();
    match Symbol::new(symbol).map(|parsed| parsed.structured_demangle(&mut name, &options)) {
        Ok(Ok(())) => without_qualifiers(&name.0).into(),
        // A long name is cut.
        Ok(Err(_)) if name.0.len() > LONGEST => name.0.into_bytes().into(),
        _ => symbol.into(),
    }
}

/// A name without what stands behind the parameters, such as `const`.
fn without_qualifiers(name: &str) -> &[u8] {
    let mut name = name;
    while let Some(shorter) = [" const", " volatile", " &", " &&"].iter().find_map(|end| name.strip_suffix(end)) {
        name = shorter;
    }
    name.as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(symbol: &str, expected: &str) {
        let name = with_name(symbol.as_bytes(), |name| String::from_utf8_lossy(name).into_owned());
        assert_eq!(name, expected);
    }

    /// Symbols as clang 19 makes them; the original cut all names at the first parenthesis.
    #[test]
    fn names_are_those_of_the_source() {
        check("main", "main");
        check("_Z3foov", "foo");
        check("_Z3barRKSt6vectorIiSaIiEE", "bar");
        check("_ZN9SmokeTest3fooEv", "SmokeTest::foo");
        check("_ZN2ns3inlEi", "ns::inl");
        check("_Z4tfunIiET_S0_", "tfun<int>");
        check("_Z4tfunIdET_S0_", "tfun<double>");
        check("_ZN1KclEi", "K::operator()");
        check("_ZNK1KcvbEv", "K::operator bool");
        check("_ZN1KC1Ev", "K::K");
        check("_ZN1KD2Ev", "K::~K");
        check("_ZN12_GLOBAL__N_16hiddenEv", "(anonymous namespace)::hidden");
        check("_ZZ4mainENK3$_0clEv", "main::$_0::operator()");
        check("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()");
        check("_Z5applyPFiiE", "apply");
        check("_ZN1AIPFvvEE3runEv", "A<void (*)()>::run");
        check("_ZNVKR1A3runEv", "A::run");
        check("_ZNO1A3runEv", "A::run");
        check("_ZN1AanERKS_", "A::operator&");
        check("_ZN1AaaERKS_", "A::operator&&");
    }

    #[test]
    fn what_is_no_symbol_stays() {
        check("_Znonsense", "_Znonsense");
        check("_Z", "_Z");
        check("", "");
        check("_ZN9", "_ZN9");
        let nested = format!("_Z1f{}i{}", "N1aI".repeat(5000), "EE".repeat(5000));
        check(&nested, &nested);
    }

    #[test]
    fn long_names_end_somewhere() {
        let name = "x".repeat(5000);
        let length = with_name(format!("_Z5000{name}v").as_bytes(), <[u8]>::len);
        assert!((LONGEST..=5000).contains(&length), "{length}");
    }
}
