//! The name of a function: its symbol demangled, without return type and parameters. This is done at compile time, so that a name is a
//! constant of the program.

use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, Symbol};

/// Longest name: that of the recorder.
const LONGEST: usize = 1024;

/// The beginning of a text; names of templates may be endless.
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.0.push_str(part);
        if self.0.len() > LONGEST { Err(fmt::Error) } else { Ok(()) }
    }
}

/// The readable name of a symbol; what is no C++ symbol stays as it is.
pub(crate) fn readable(symbol: &str) -> String {
    // A leading \1 keeps LLVM from decorating an `asm("name")`.
    let symbol = symbol.strip_prefix('\u{1}').unwrap_or(symbol);
    if !symbol.starts_with("_Z") {
        return symbol.to_owned();
    }
    let mut name = Limited(String::new());
    let options = DemangleOptions::new().no_params().no_return_type();
    match Symbol::new(symbol).map(|parsed| parsed.structured_demangle(&mut name, &options)) {
        Ok(Ok(())) => without_qualifiers(&name.0).to_owned(),
        Ok(Err(_)) if name.0.len() > LONGEST => {
            let end = (0..=LONGEST).rev().find(|end| name.0.is_char_boundary(*end)).unwrap_or(0);
            name.0.truncate(end);
            name.0
        }
        _ => symbol.to_owned(),
    }
}

/// A name without what stands behind the parameters, such as `const`.
fn without_qualifiers(name: &str) -> &str {
    let mut name = name;
    while let Some(shorter) = [" const", " volatile", " &", " &&"].iter().find_map(|end| name.strip_suffix(end)) {
        name = shorter;
    }
    name
}

/// Is `callee` the part of the constructor or destructor `symbol` that does its work? Compilers make several of each: the complete one
/// (`C1`, `D1`) calls that of the base (`C2`, `D2`), the deleting one (`D0`) calls either. They are one function of the source.
pub(crate) fn does_the_work_of(callee: &str, symbol: &str) -> bool {
    let (callee, symbol) = (callee.as_bytes(), symbol.as_bytes());
    if callee.len() != symbol.len() || !symbol.starts_with(b"_ZN") {
        return false;
    }
    let mut differing = (0..symbol.len()).filter(|&at| callee[at] != symbol[at]);
    let (Some(at), None) = (differing.next(), differing.next()) else { return false };
    matches!((&symbol[at.saturating_sub(1)..=at], callee[at]), (b"C1", b'2') | (b"D1", b'2') | (b"D0", b'1' | b'2'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(symbol: &str, expected: &str) {
        assert_eq!(readable(symbol), expected);
    }

    #[test]
    fn names_are_those_of_the_source() {
        check("main", "main");
        check("\u{1}other_name", "other_name");
        check("_Z3foov", "foo");
        check("_ZL6hiddenv", "hidden");
        check("_ZN9SmokeTest3fooEv", "SmokeTest::foo");
        check("_Z4tfunIiET_S0_", "tfun<int>");
        check("_Z4tfunIdET_S0_", "tfun<double>");
        check("_ZN1KclEi", "K::operator()");
        check("_ZNK1KcvbEv", "K::operator bool");
        check("_ZN1KC2Ev", "K::K");
        check("_ZN1KD2Ev", "K::~K");
        check("_ZN12_GLOBAL__N_16hiddenEv", "(anonymous namespace)::hidden");
        check("_ZN12_GLOBAL__N_14tfunIiEET_S1_", "(anonymous namespace)::tfun<int>");
        check("_ZZ4mainENK3$_0clEv", "main::$_0::operator()");
        check("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()");
        check("_ZZN12_GLOBAL__N_15outerEvENKUliE_clEi", "(anonymous namespace)::outer()::{lambda(int)#1}::operator()");
        check("_Z5applyPFiiE", "apply");
        check("_ZN1AIPFvvEE3runEv", "A<void (*)()>::run");
        check("_ZNVKR1A3runEv", "A::run");
        check("_ZN1AanERKS_", "A::operator&");
        check("_ZN1AaaERKS_", "A::operator&&");
        check("_ZplRK1AS1_", "operator+");
    }

    #[test]
    fn what_is_no_symbol_stays() {
        check("_Znonsense", "_Znonsense");
        check("_Z", "_Z");
        check("", "");
    }

    #[test]
    fn long_names_end_somewhere() {
        assert_eq!(readable(&format!("_Z5000{}v", "x".repeat(5000))).len(), LONGEST);
    }

    #[test]
    fn variants_of_constructors() {
        let check =
            |callee: &str, symbol: &str, expected| assert_eq!(does_the_work_of(callee, symbol), expected, "{symbol}");
        check("_ZN1KC2Ev", "_ZN1KC1Ev", true);
        check("_ZN1KD2Ev", "_ZN1KD1Ev", true);
        check("_ZN1KD2Ev", "_ZN1KD0Ev", true);
        check("_ZN1KD1Ev", "_ZN1KD0Ev", true);
        check("_ZN1KC1Ev", "_ZN1KC2Ev", false);
        check("_ZN1KC1Ev", "_ZN1KC1Ev", false);
        check("_ZN1LC2Ev", "_ZN1KC1Ev", false);
        check("_ZN1K2f2Ev", "_ZN1K2f1Ev", false);
        check("f2", "f1", false);
    }
}
