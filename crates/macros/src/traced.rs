//! `#[weftline::trace]`, on functions and impl blocks.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::ext::IdentExt as _;
use syn::{
    Attribute, Block, Error, Expr, ExprLit, ImplItem, ImplItemFn, Item, ItemFn, ItemImpl, Lit, Meta, Result, Signature,
    Type,
};

use crate::options::{Args, TraceOptions};
use crate::{fields, weave};

/// Expands the attribute; a mistake becomes a compiler error beside the unchanged item.
pub(crate) fn expand(options: TokenStream, item: &TokenStream) -> TokenStream {
    let expanded = syn::parse2(options).and_then(|options: TraceOptions| match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Fn(function)) => of_function(function, options),
        Ok(Item::Impl(block)) => of_impl(block, &options),
        _ => Err(Error::new_spanned(item, "`#[weftline::trace]` is for functions with a body and `impl` blocks")),
    });
    expanded.unwrap_or_else(|error| {
        let message = error.into_compile_error();
        quote!(#item #message)
    })
}

fn of_function(mut function: ItemFn, options: TraceOptions) -> Result<TokenStream> {
    if let Some(word) = &options.skip {
        return Err(Error::new(word.span(), "`skip` is for functions of an `impl` block that is traced itself"));
    }
    weave(&function.sig, &mut function.block, options, None)?;
    Ok(function.into_token_stream())
}

/// What the functions of a traced `impl` block have from it.
struct Outer<'a> {
    name: String,
    options: &'a TraceOptions,
}

fn of_impl(mut block: ItemImpl, options: &TraceOptions) -> Result<TokenStream> {
    if let Some(word) = options.skip.as_ref().or(options.err.as_ref()) {
        return Err(Error::new(
            word.span(),
            format!("`{word}` is for single functions: put `#[weftline::trace({word})]` on them"),
        ));
    }
    if let Some(Args::Listed(at, _)) = &options.args {
        return Err(Error::new(*at, "an `impl` block takes `args(all)`; list arguments on single functions"));
    }
    let name = match &options.name {
        None => type_name(&block.self_ty),
        Some(Expr::Lit(ExprLit { lit: Lit::Str(text), .. })) => text.value(),
        Some(other) => return Err(Error::new_spanned(other, "the name of an `impl` block is a string literal")),
    };
    let outer = Outer { name, options };
    let mut wrong: Option<Error> = None;
    for item in &mut block.items {
        if let ImplItem::Fn(function) = item
            && let Err(error) = of_method(function, &outer)
        {
            match &mut wrong {
                None => wrong = Some(error),
                Some(all) => all.combine(error),
            }
        }
    }
    // The methods' own attributes are gone by now: an error must not make them unknown words.
    let message = wrong.map(Error::into_compile_error);
    Ok(quote!(#block #message))
}

fn of_method(function: &mut ImplItemFn, outer: &Outer<'_>) -> Result<()> {
    let own = take_own_attribute(&mut function.attrs);
    let options = match &own {
        None => TraceOptions::default(),
        Some(Attribute { meta: Meta::Path(_), .. }) => TraceOptions::default(),
        Some(attribute) => attribute.parse_args()?,
    };
    if options.skip.is_some() || (own.is_none() && function.sig.constness.is_some()) {
        return Ok(());
    }
    weave(&function.sig, &mut function.block, options, Some(outer))
}

/// Takes `#[weftline::trace…]` out of a method's attributes: the block's own expansion stands for it.
fn take_own_attribute(attributes: &mut Vec<Attribute>) -> Option<Attribute> {
    let is_own = |attribute: &Attribute| {
        let words: Vec<String> = attribute.path().segments.iter().map(|segment| segment.ident.to_string()).collect();
        words == ["trace"] || words == ["weftline", "trace"]
    };
    let place = attributes.iter().position(is_own)?;
    Some(attributes.remove(place))
}

/// `Stack` for `crate::Stack<T>`; other types as they are written.
fn type_name(written: &Type) -> String {
    match written {
        Type::Path(path) if path.qself.is_none() => {
            path.path.segments.last().map(|segment| segment.ident.unraw().to_string()).unwrap_or_default()
        }
        Type::Reference(inner) => type_name(&inner.elem),
        Type::Paren(inner) => type_name(&inner.elem),
        Type::Group(inner) => type_name(&inner.elem),
        other => other.to_token_stream().to_string(),
    }
}

fn weave(signature: &Signature, block: &mut Block, options: TraceOptions, outer: Option<&Outer<'_>>) -> Result<()> {
    weave::refuse_const(signature, "#[weftline::trace]")?;
    let function = signature.ident.unraw().to_string();
    let name = match (&options.name, outer) {
        (Some(name), _) => name.to_token_stream(),
        (None, None) => function.to_token_stream(),
        (None, Some(outer)) => format!("{}::{function}", outer.name).to_token_stream(),
    };
    let inherited = outer.map(|outer| outer.options);
    let category = options.category.as_ref().or(inherited.and_then(|outer| outer.category.as_ref()));
    let (args, skipped) = match (options.args, inherited) {
        (Some(args), _) => (Some(args), options.skipped.unwrap_or_default()),
        (None, Some(TraceOptions { args: Some(Args::All), skipped, .. })) => {
            // A name that this function has no parameter of is meant for others of the block.
            let skipped = skipped.iter().flatten().filter(|name| fields::binds(signature, name)).cloned().collect();
            (Some(Args::All), skipped)
        }
        (None, _) => (None, Vec::new()),
    };
    let fields = fields::wanted(args, &skipped, signature)?;
    let spanned = weave::Spanned {
        name,
        category: category.map_or_else(|| quote!("app"), |category| category.to_token_stream()),
        fill: fields::fill(&fields),
        err: options.err.as_ref(),
    };
    weave::around(signature, block, &spanned);
    Ok(())
}
