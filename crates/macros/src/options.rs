//! The options in the attribute's parentheses.

use proc_macro2::Span;
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, Ident, LitStr, Result, Token, parenthesized};

use crate::fields::Field;

/// The options of `#[weftline::trace]`.
#[derive(Default)]
pub(crate) struct TraceOptions {
    pub(crate) name: Option<Expr>,
    pub(crate) category: Option<Expr>,
    pub(crate) args: Option<Args>,
    /// Parameters that `args(all)` leaves out.
    pub(crate) skipped: Option<Vec<Ident>>,
    /// The word `skip` by itself.
    pub(crate) skip: Option<Ident>,
    /// The word `err`.
    pub(crate) err: Option<Ident>,
}

/// Which arguments are recorded.
#[derive(Clone)]
pub(crate) enum Args {
    /// All that can be.
    All,
    /// These; and where they are listed.
    Listed(Span, Vec<Field>),
}

impl Parse for TraceOptions {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut options = TraceOptions::default();
        each_option(input, |key| match key.to_string().as_str() {
            "name" => once(&mut options.name, key, assigned(input)?),
            "category" | "cat" => once(&mut options.category, key, assigned(input)?),
            "args" => once(&mut options.args, key, input.parse()?),
            "skip" if input.peek(syn::token::Paren) => {
                let inside;
                parenthesized!(inside in input);
                let names = Punctuated::<Ident, Token![,]>::parse_terminated(&inside)?;
                once(&mut options.skipped, key, names.into_iter().collect())
            }
            "skip" => once(&mut options.skip, key, key.clone()),
            "err" => once(&mut options.err, key, key.clone()),
            _ => Err(unknown(key, "name, category, args, skip and err")),
        })?;
        if let (Some([first, ..]), false) = (options.skipped.as_deref(), matches!(options.args, Some(Args::All))) {
            return Err(Error::new(
                first.span(),
                "nothing is recorded that could be skipped: `skip(…)` goes with `args(all)`",
            ));
        }
        Ok(options)
    }
}

impl Parse for Args {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let inside;
        parenthesized!(inside in input);
        let ahead = inside.fork();
        if let Ok(word) = ahead.call(Ident::parse_any)
            && word == "all"
            && ahead.is_empty()
        {
            inside.call(Ident::parse_any)?;
            return Ok(Args::All);
        }
        let at = inside.span();
        let fields = Punctuated::<Field, Token![,]>::parse_terminated(&inside)?;
        Ok(Args::Listed(at, fields.into_iter().collect()))
    }
}

/// Where in a function its call is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pointcut {
    Before,
    After,
    #[default]
    Around,
    BeforeAsync,
    AfterAsync,
    AroundAsync,
}

const POINTCUTS: [(&str, Pointcut); 6] = [
    ("before", Pointcut::Before),
    ("after", Pointcut::After),
    ("around", Pointcut::Around),
    ("before_async", Pointcut::BeforeAsync),
    ("after_async", Pointcut::AfterAsync),
    ("around_async", Pointcut::AroundAsync),
];

/// The options of `#[weftline::critical_path]`.
#[derive(Default)]
pub(crate) struct CriticalOptions {
    pub(crate) pointcut: Pointcut,
    pub(crate) scope: Option<Expr>,
    pub(crate) name: Option<Expr>,
    pub(crate) category: Option<Expr>,
}

impl Parse for CriticalOptions {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut options = CriticalOptions::default();
        let mut pointcut = None;
        each_option(input, |key| match key.to_string().as_str() {
            "pointcut" => once(&mut pointcut, key, assigned::<LitStr>(input)?),
            "scope" => once(&mut options.scope, key, assigned(input)?),
            "name" => once(&mut options.name, key, assigned(input)?),
            "category" | "cat" => once(&mut options.category, key, assigned(input)?),
            _ => Err(unknown(key, "pointcut, scope, name and category")),
        })?;
        if let Some(given) = pointcut {
            let found = POINTCUTS.iter().find(|(name, _)| *name == given.value());
            let names: Vec<&str> = POINTCUTS.iter().map(|(name, _)| *name).collect();
            let message = || format!("unknown pointcut {:?}; there are {}", given.value(), names.join(", "));
            options.pointcut = found.ok_or_else(|| Error::new(given.span(), message()))?.1;
        }
        Ok(options)
    }
}

/// Calls `take` with the first word of each option, up to the end.
fn each_option(input: ParseStream<'_>, mut take: impl FnMut(&Ident) -> Result<()>) -> Result<()> {
    while !input.is_empty() {
        take(&input.call(Ident::parse_any)?)?;
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(())
}

fn assigned<T: Parse>(input: ParseStream<'_>) -> Result<T> {
    input.parse::<Token![=]>()?;
    input.parse()
}

fn once<T>(place: &mut Option<T>, key: &Ident, value: T) -> Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::new(key.span(), format!("`{key}` is given twice"))),
    }
}

fn unknown(key: &Ident, known: &str) -> Error {
    Error::new(key.span(), format!("unknown option `{key}`; there are {known}"))
}
