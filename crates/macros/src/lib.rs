//! The attributes of the crate `weftline`. They expand to safe code.
use proc_macro::TokenStream;

/// Records each call of a function.
#[proc_macro_attribute]
pub fn trace(_options: TokenStream, function: TokenStream) -> TokenStream {
    function
}

/// Records a function that is likely to be on the critical path of a workflow.
#[proc_macro_attribute]
pub fn critical_path(_options: TokenStream, function: TokenStream) -> TokenStream {
    function
}
