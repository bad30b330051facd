//! `#[weftline::critical_path]`.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt as _;
use syn::{Error, Ident, Item, ItemFn, Result};

use crate::options::{CriticalOptions, Pointcut};
use crate::weave;

/// Expands the attribute; a mistake becomes a compiler error beside the unchanged item.
pub(crate) fn expand(options: TokenStream, item: &TokenStream) -> TokenStream {
    let expanded = syn::parse2(options).and_then(|options: CriticalOptions| match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Fn(function)) => of_function(function, &options),
        _ => Err(Error::new_spanned(item, "`#[weftline::critical_path]` is for functions with a body")),
    });
    expanded.unwrap_or_else(|error| {
        let message = error.into_compile_error();
        quote!(#item #message)
    })
}

fn of_function(mut function: ItemFn, options: &CriticalOptions) -> Result<TokenStream> {
    weave::refuse_const(&function.sig, "#[weftline::critical_path]")?;
    let name = match &options.name {
        Some(name) => name.to_token_stream(),
        None => function.sig.ident.unraw().to_string().to_token_stream(),
    };
    let category = match &options.category {
        Some(category) => category.to_token_stream(),
        None => quote!(::core::module_path!()),
    };
    if options.pointcut == Pointcut::Around {
        let fill = match &options.scope {
            None => quote!(|_, _| {}),
            Some(scope) => {
                let named = |name: &str| Ident::new(name, Span::mixed_site());
                let (table, args) = (named("table"), named("args"));
                quote!(|#table, #args| ::weftline::expansion::add_scope(#args, #table, #scope))
            }
        };
        weave::around(&function.sig, &mut function.block, &weave::Spanned { name, category, fill, err: None });
        return Ok(function.into_token_stream());
    }
    let site = weave::site(&name, &category);
    let scope = match &options.scope {
        None => quote!(::core::option::Option::None),
        Some(scope) => quote! {{
            static __WEFTLINE_SCOPE: ::weftline::expansion::Text = ::weftline::expansion::Text::new(#scope);
            ::core::option::Option::Some(&__WEFTLINE_SCOPE)
        }},
    };
    let call = match options.pointcut {
        Pointcut::Before => quote!(::weftline::expansion::Pointcut::before),
        Pointcut::After => quote!(::weftline::expansion::Pointcut::after),
        Pointcut::BeforeAsync => quote!(::weftline::expansion::AsyncPointcut::before),
        Pointcut::AfterAsync => quote!(::weftline::expansion::AsyncPointcut::after),
        Pointcut::Around | Pointcut::AroundAsync => quote!(::weftline::expansion::AsyncPointcut::around),
    };
    let guard = Ident::new("__weftline_pointcut", Span::mixed_site());
    let statement = match options.pointcut {
        Pointcut::Before | Pointcut::BeforeAsync => quote!({ #site #call(&__WEFTLINE_SITE, #scope); }),
        _ => quote!(let #guard = { #site #call(&__WEFTLINE_SITE, #scope) };),
    };
    weave::prepend(&mut function.block, statement);
    Ok(function.into_token_stream())
}
