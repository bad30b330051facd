//! The code that is put into a function's body.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Block, Error, Expr, Ident, Result, ReturnType, Signature, Stmt, Type};

/// A call that is recorded as a span.
pub(crate) struct Spanned<'a> {
    /// The expression of its name.
    pub(crate) name: TokenStream,
    /// The expression of its category.
    pub(crate) category: TokenStream,
    /// The closure that fills in its arguments.
    pub(crate) fill: TokenStream,
    /// The word `err`, if the function's error is recorded.
    pub(crate) err: Option<&'a Ident>,
}

/// A `const fn` may run at compile time, where nothing can be recorded.
pub(crate) fn refuse_const(signature: &Signature, attribute: &str) -> Result<()> {
    match &signature.constness {
        None => Ok(()),
        Some(word) => {
            Err(Error::new(word.span, format!("a `const fn` may run at compile time: it cannot be `{attribute}`")))
        }
    }
}

/// The place's `static`.
pub(crate) fn site(name: &TokenStream, category: &TokenStream) -> TokenStream {
    quote! {
        static __WEFTLINE_SITE: ::weftline::expansion::Site = ::weftline::expansion::Site::new(#name, #category);
    }
}

/// Puts a statement in front of a function's body.
pub(crate) fn prepend(block: &mut Block, statement: TokenStream) {
    block.stmts.insert(0, Stmt::Expr(Expr::Verbatim(statement), None));
}

/// Makes the call of a function a span.
pub(crate) fn around(signature: &Signature, block: &mut Block, spanned: &Spanned<'_>) {
    let Spanned { name, category, fill, err } = spanned;
    let site = site(name, category);
    let variable = Ident::new("__weftline_span", Span::mixed_site());
    let result = Ident::new("__weftline_result", Span::mixed_site());
    match (signature.asyncness.is_some(), err) {
        (false, None) => {
            prepend(block, quote! { let #variable = { #site ::weftline::Span::enter(&__WEFTLINE_SITE, #fill) }; });
        }
        (false, Some(err)) => {
            let returned = match &signature.output {
                ReturnType::Type(_, written) if nameable(written) => quote!(-> #written),
                _ => TokenStream::new(),
            };
            let body = core::mem::take(&mut block.stmts);
            // Through a function that takes `FnOnce`: a closure may hand out what it was given only if it is called once.
            let call = quote!(::weftline::expansion::call(move || #returned { #(#body)* }));
            let here = Span::mixed_site().located_at(err.span());
            let note = quote_spanned!(here=> ::weftline::expansion::note_error(&mut #variable, &#result););
            prepend(
                block,
                quote! {
                    let mut #variable = { #site ::weftline::Span::enter(&__WEFTLINE_SITE, #fill) };
                    let #result = #call;
                    #note
                    #result
                },
            );
        }
        (true, err) => {
            let body = core::mem::take(&mut block.stmts);
            let hint = returned_hint(signature);
            let future = quote!(async move { #hint #(#body)* });
            // Arguments are looked at before the body takes the parameters.
            let tokens = match err {
                None => quote!(::weftline::Traced::of(#variable, #future)),
                Some(err) => {
                    let here = Span::mixed_site().located_at(err.span());
                    quote_spanned!(here=> ::weftline::expansion::TracedResult::of(#variable, #future))
                }
            };
            prepend(
                block,
                quote! {
                    let #variable = { #site ::weftline::expansion::Life::begin(&__WEFTLINE_SITE, #fill) };
                    #tokens.await
                },
            );
        }
    }
}

/// A statement that never runs and tells the compiler what an async block returns: a block that becomes a future of its own does
/// not see its function's signature, which `?` and coercions need.
fn returned_hint(signature: &Signature) -> TokenStream {
    let never = |written: &Type| matches!(written, Type::Never(_));
    match &signature.output {
        ReturnType::Type(_, written) if nameable(written) && !never(written) => {
            let value = Ident::new("__weftline_returned", Span::mixed_site());
            quote! {
                if let ::core::option::Option::Some(#value) = ::core::option::Option::None::<#written> {
                    return #value;
                }
            }
        }
        _ => TokenStream::new(),
    }
}

/// Can the type be written inside a function? `impl Trait` cannot.
fn nameable(written: &Type) -> bool {
    fn is_free(tokens: TokenStream) -> bool {
        tokens.into_iter().all(|token| match token {
            TokenTree::Ident(word) => word != "impl",
            TokenTree::Group(group) => is_free(group.stream()),
            _ => true,
        })
    }
    is_free(written.to_token_stream())
}
