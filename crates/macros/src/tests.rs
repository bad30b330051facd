//! Messages and where they point, and what is left alone. That expansions compile, behave and record is tested where they are used:
//! in `crates/annotations/tests` and in `crates/testkit`.

use proc_macro2::{TokenStream, TokenTree};

use crate::{critical, traced};

type Expand = fn(TokenStream, &TokenStream) -> TokenStream;
const TRACE: Expand = traced::expand;
const CRITICAL: Expand = critical::expand;

fn tokens(text: &str) -> TokenStream {
    text.parse().expect("the test's own text is Rust")
}

/// The texts of all `compile_error!`s, each with the first word that it points at.
fn messages(of: TokenStream, found: &mut Vec<(String, String)>) {
    let tokens: Vec<TokenTree> = of.into_iter().collect();
    for (place, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else { continue };
        let is_message = place >= 2 && tokens[place - 2].to_string() == "compile_error";
        match group.stream().into_iter().next() {
            Some(TokenTree::Literal(text)) if is_message => {
                let text = text.to_string().trim_matches('"').replace("\\\"", "\"");
                let at = tokens[place - 2].span().source_text().unwrap_or_default();
                found.push((text, at));
            }
            _ => messages(group.stream(), found),
        }
    }
}

/// Expands and compares the messages; `expected` holds pairs of a message and the text it points at.
fn check(expand: Expand, options: &str, item: &str, expected: &[(&str, &str)]) {
    let given = tokens(item);
    let expanded = expand(tokens(options), &given);
    let mut found = Vec::new();
    messages(expanded.clone(), &mut found);
    let found: Vec<(&str, &str)> = found.iter().map(|(text, at)| (text.as_str(), at.as_str())).collect();
    assert_eq!(found, expected, "#[…({options})] {item}");
    if !expected.is_empty() {
        let kept = expanded.to_string();
        let head = given.to_string().split('{').next().expect("the first part").trim().to_owned();
        assert!(kept.contains(&head), "the item is still there: {kept}");
    }
}

#[test]
fn options_of_trace() {
    for options in
        ["", "name = \"a\"", "name = NAME, cat = module_path!(),", "args(x, y = ?x, z = %(x + 1), ?x)", "args()", "err"]
    {
        check(TRACE, options, "fn f(x: u8) -> R { }", &[]);
    }
    let f = "fn f(x: u8, y: u8) { }";
    let known = "there are name, category, args, skip and err";
    check(TRACE, "nmae = \"a\"", f, &[(&format!("unknown option `nmae`; {known}"), "nmae")]);
    check(TRACE, "name = \"a\", name = \"b\"", f, &[("`name` is given twice", "name")]);
    check(TRACE, "cat = \"a\", category = \"b\"", f, &[("`category` is given twice", "category")]);
    check(TRACE, "name", f, &[("expected `=`", "")]);
    check(TRACE, "args(self.x)", f, &[("give the argument a name: `name = value`", "self")]);
    check(TRACE, "args(x.y)", f, &[("give the argument a name: `name = value`", "x")]);
    check(TRACE, "args(all), skip(z)", f, &[("the function has no parameter `z`", "z")]);
    let nothing = "nothing is recorded that could be skipped: `skip(…)` goes with `args(all)`";
    check(TRACE, "skip(x)", f, &[(nothing, "x")]);
    check(TRACE, "args(x), skip(y)", f, &[(nothing, "y")]);
}

#[test]
fn places_of_trace() {
    check(
        TRACE,
        "",
        "pub const fn f() { }",
        &[("a `const fn` may run at compile time: it cannot be `#[weftline::trace]`", "const")],
    );
    check(
        TRACE,
        "",
        "struct S { x : u8 }",
        &[("`#[weftline::trace]` is for functions with a body and `impl` blocks", "struct")],
    );
    check(TRACE, "", "fn f();", &[("`#[weftline::trace]` is for functions with a body and `impl` blocks", "fn")]);
    check(TRACE, "skip", "fn f() { }", &[("`skip` is for functions of an `impl` block that is traced itself", "skip")]);
}

#[test]
fn impl_blocks() {
    let block = "impl<T> a::Stack<T> {
        const N: u8 = 1;
        pub fn push(&mut self, value: T) { }
        const fn len(&self) -> usize { 0 }
        #[weftline::trace(skip)] fn quiet(&self) { }
        #[trace(name = \"own\")] fn other(&self) { }
        #[::weftline::trace] fn third(&self) { }
    }";
    check(TRACE, "args(all), skip(value)", block, &[]);
    let expanded = traced::expand(tokens(""), &tokens(block)).to_string();
    let sites = expanded.matches("Site :: new (").count();
    assert_eq!(sites, 3, "{expanded}");
    for name in ["\"Stack::push\"", "\"own\"", "\"Stack::third\""] {
        assert!(expanded.contains(name), "{name} in {expanded}");
    }
    assert!(!expanded.contains("trace"), "no attribute is left: {expanded}");
    let named = traced::expand(tokens("name = \"S\", cat = \"c\""), &tokens(block)).to_string();
    assert!(named.contains("new (\"S::push\" , \"c\")"), "{named}");

    check(TRACE, "err", block, &[("`err` is for single functions: put `#[weftline::trace(err)]` on them", "err")]);
    check(TRACE, "args(x)", block, &[("an `impl` block takes `args(all)`; list arguments on single functions", "x")]);
    check(TRACE, "name = N", block, &[("the name of an `impl` block is a string literal", "N")]);
    let two = "impl S {
        #[weftline::trace(what)] fn f(&self) { }
        #[weftline::trace] const fn g(&self) { }
    }";
    check(
        TRACE,
        "",
        two,
        &[
            ("unknown option `what`; there are name, category, args, skip and err", "what"),
            ("a `const fn` may run at compile time: it cannot be `#[weftline::trace]`", "const"),
        ],
    );
}

#[test]
fn names_of_types() {
    for (written, name) in [
        ("Stack", "Stack"),
        ("a::b::C<'a, T>", "C"),
        ("&'a mut D", "D"),
        ("r#type", "type"),
        ("[u8]", "[u8]"),
        ("(A, B)", "(A , B)"),
    ] {
        let expanded = traced::expand(tokens(""), &tokens(&format!("impl T for {written} {{ fn f() {{ }} }}")));
        assert!(expanded.to_string().contains(&format!("\"{name}::f\"")), "{written}: {expanded}");
    }
}

#[test]
fn options_of_critical_path() {
    let f = "fn f() { }";
    for pointcut in ["before", "after", "around", "before_async", "after_async", "around_async"] {
        check(CRITICAL, &format!("pointcut = \"{pointcut}\", scope = \"s\""), f, &[]);
        check(CRITICAL, &format!("pointcut = \"{pointcut}\", category = \"io\""), f, &[]);
    }
    check(CRITICAL, "", f, &[]);
    check(
        CRITICAL,
        "pointcut = \"arround\"",
        f,
        &[(
            "unknown pointcut \"arround\"; there are before, after, around, before_async, after_async, around_async",
            "\"arround\"",
        )],
    );
    check(CRITICAL, "cat = \"io\", category = \"io\"", f, &[("`category` is given twice", "category")]);
    check(CRITICAL, "pointcut = around", f, &[("expected string literal", "around")]);
    check(
        CRITICAL,
        "flow = \"in\"",
        f,
        &[("unknown option `flow`; there are pointcut, scope, name and category", "flow")],
    );
    check(
        CRITICAL,
        "",
        "const fn f() { }",
        &[("a `const fn` may run at compile time: it cannot be `#[weftline::critical_path]`", "const")],
    );
    check(
        CRITICAL,
        "",
        "impl S { fn f(&self) { } }",
        &[("`#[weftline::critical_path]` is for functions with a body", "impl")],
    );
}
