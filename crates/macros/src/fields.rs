//! Arguments that a function records: `a`, `?a`, `key = value`, `key = ?value`, `key = %value`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned as _;
use syn::{Error, Expr, ExprReference, FnArg, Ident, Pat, Result, Signature, Token};

use crate::options::Args;

/// One argument.
#[derive(Clone)]
pub(crate) struct Field {
    key: Ident,
    value: Expr,
    manner: Manner,
}

/// How a value is recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// It implements `Value`.
    Value,
    /// By its `Debug`.
    Debug,
    /// By its `Display`.
    Display,
    /// By whatever it implements.
    Any,
}

impl Parse for Field {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut manner = Manner::parse(input)?;
        let name = input.fork().call(Ident::parse_any).ok().filter(|name| name != "self");
        let Some(key) = name else {
            return Err(input.error("give the argument a name: `name = value`"));
        };
        input.call(Ident::parse_any)?;
        if manner == Manner::Value && input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            manner = Manner::parse(input)?;
            return Ok(Field { key, value: input.parse()?, manner });
        }
        if !input.is_empty() && !input.peek(Token![,]) {
            return Err(Error::new(key.span(), "give the argument a name: `name = value`"));
        }
        Ok(Field::of_variable(key, manner))
    }
}

impl Manner {
    fn parse(input: ParseStream<'_>) -> Result<Manner> {
        if input.peek(Token![?]) {
            input.parse::<Token![?]>()?;
            return Ok(Manner::Debug);
        }
        if input.peek(Token![%]) {
            input.parse::<Token![%]>()?;
            return Ok(Manner::Display);
        }
        Ok(Manner::Value)
    }
}

impl Field {
    fn of_variable(key: Ident, manner: Manner) -> Field {
        let value = Expr::Path(syn::ExprPath { attrs: Vec::new(), qself: None, path: key.clone().into() });
        Field { key, value, manner }
    }

    /// The code that adds it to `args`.
    fn add(&self, table: &Ident, args: &Ident) -> TokenStream {
        let key = self.key.unraw().to_string();
        // Compiler errors about the value must point at the value.
        let here = Span::mixed_site().located_at(self.value.span());
        let value = Expr::Reference(ExprReference {
            attrs: Vec::new(),
            and_token: Token![&](here),
            mutability: None,
            expr: Box::new(self.value.clone()),
        });
        let add = match self.manner {
            Manner::Value => quote_spanned!(here=> #args.add(#table, &__WEFTLINE_KEY, #value)),
            Manner::Debug => {
                quote_spanned!(here=> #args.add(#table, &__WEFTLINE_KEY, &::weftline::expansion::Debugged(#value)))
            }
            Manner::Display => {
                quote_spanned!(here=> #args.add(#table, &__WEFTLINE_KEY, &::weftline::expansion::Displayed(#value)))
            }
            Manner::Any => {
                quote_spanned!(here=> ::weftline::expansion::Any::new(#value).add_to(#args, #table, &__WEFTLINE_KEY))
            }
        };
        quote! {{
            static __WEFTLINE_KEY: ::weftline::expansion::Text = ::weftline::expansion::Text::new(#key);
            #add;
        }}
    }
}

/// The closure that fills in a function's arguments.
pub(crate) fn fill(fields: &[Field]) -> TokenStream {
    let named = |name: &str| Ident::new(name, Span::mixed_site());
    let (table, args) = (named("_table"), named("_args"));
    let adds = fields.iter().map(|field| field.add(&table, &args));
    quote!(|#table, #args| { #(#adds)* })
}

/// The fields that the options ask for.
pub(crate) fn wanted(args: Option<Args>, skipped: &[Ident], signature: &Signature) -> Result<Vec<Field>> {
    let parameters = parameters(signature);
    if let Some(stranger) = skipped.iter().find(|name| !parameters.contains(name)) {
        return Err(Error::new(stranger.span(), format!("the function has no parameter `{stranger}`")));
    }
    Ok(match args {
        None => Vec::new(),
        Some(Args::Listed(_, fields)) => fields,
        Some(Args::All) => parameters
            .into_iter()
            .filter(|name| !skipped.contains(name) && !name.unraw().to_string().starts_with('_'))
            .map(|name| Field::of_variable(name, Manner::Any))
            .collect(),
    })
}

/// Does one of the function's parameters have this name?
pub(crate) fn binds(signature: &Signature, name: &Ident) -> bool {
    parameters(signature).contains(name)
}

/// The names that a function's parameters bind, without `self`.
fn parameters(signature: &Signature) -> Vec<Ident> {
    let mut names = Vec::new();
    for input in &signature.inputs {
        if let FnArg::Typed(typed) = input {
            bound(&typed.pat, &mut names);
        }
    }
    names
}

fn bound(pattern: &Pat, names: &mut Vec<Ident>) {
    match pattern {
        Pat::Ident(ident) => names.push(ident.ident.clone()),
        Pat::Reference(inner) => bound(&inner.pat, names),
        Pat::Paren(inner) => bound(&inner.pat, names),
        Pat::Type(inner) => bound(&inner.pat, names),
        Pat::Tuple(inner) => inner.elems.iter().for_each(|pattern| bound(pattern, names)),
        Pat::TupleStruct(inner) => inner.elems.iter().for_each(|pattern| bound(pattern, names)),
        Pat::Slice(inner) => inner.elems.iter().for_each(|pattern| bound(pattern, names)),
        Pat::Struct(inner) => inner.fields.iter().for_each(|field| bound(&field.pat, names)),
        _ => {}
    }
}
