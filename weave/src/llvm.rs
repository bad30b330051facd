//! The part of LLVM's C interface that is used, and the shim's (shim/shim.cc).
//!
//! A handle is never null: what may be absent is an `Option`. Handles come from LLVM alone, all work is done within one call of the pass,
//! and what LLVM deletes meanwhile ([`weft_shim_to_invoke`]) is not used again. With that, functions which take handles and numbers have nothing
//! to demand and are declared `safe`; those with texts and lists are wrapped below.
#![allow(unsafe_code, reason = "LLVM is C and C++")]

mod raw;

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::ptr::NonNull;

pub(crate) use raw::*;

macro_rules! handles {
    ($($(#[$about:meta])* $name:ident;)*) => {$(
        $(#[$about])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) struct $name(NonNull<u8>);
    )*};
}

handles! {
    Module;
    Context;
    Type;
    /// A constant, global, function, argument or instruction.
    Value;
    Block;
    Builder;
    Metadata;
    Attribute;
    Comdat;
    /// LLVM's `PassBuilder`.
    PassBuilder;
}

/// Values of LLVM-C's enumerations.
pub(crate) mod constant {
    use std::ffi::c_int;

    pub(crate) const OPCODE_RET: c_int = 1;
    pub(crate) const OPCODE_INVOKE: c_int = 5;
    pub(crate) const OPCODE_UNREACHABLE: c_int = 7;
    pub(crate) const OPCODE_ALLOCA: c_int = 26;
    pub(crate) const OPCODE_BITCAST: c_int = 41;
    pub(crate) const OPCODE_CALL: c_int = 45;
    pub(crate) const OPCODE_RESUME: c_int = 58;
    pub(crate) const OPCODE_LANDINGPAD: c_int = 59;

    pub(crate) const LINKAGE_AVAILABLE_EXTERNALLY: c_int = 1;
    pub(crate) const LINKAGE_LINKONCE_ANY: c_int = 2;
    pub(crate) const LINKAGE_LINKONCE_ODR: c_int = 3;
    pub(crate) const LINKAGE_WEAK_ODR: c_int = 6;
    pub(crate) const LINKAGE_PRIVATE: c_int = 9;

    pub(crate) const VISIBILITY_HIDDEN: c_int = 1;
    pub(crate) const UNNAMED_ADDRESS_GLOBAL: c_int = 2;
    pub(crate) const ORDERING_MONOTONIC: c_int = 2;
    pub(crate) const PREDICATE_NOT_EQUAL: c_int = 33;
    /// Where attributes of a function itself are.
    pub(crate) const OF_FUNCTION: u32 = u32::MAX;
}

/// Bits of [`weft_shim_call_traits`].
pub(crate) mod traits {
    pub(crate) const NO_UNWIND: u32 = 1;
    pub(crate) const NO_RETURN: u32 = 2;
    pub(crate) const MUST_TAIL: u32 = 4;
    pub(crate) const INTRINSIC: u32 = 8;
    pub(crate) const ASSEMBLY: u32 = 16;
    pub(crate) const DEBUG: u32 = 32;
}

/// A text that LLVM keeps, copied; what is not UTF-8 in it is made legible.
///
/// # Safety
/// `text` must be null or point at so many bytes.
unsafe fn copied(text: *const u8, length: usize) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's word.
    String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(text, length) }).into_owned()
}

/// # Safety
/// `text` must be null or a C string.
unsafe fn copied_c(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's word.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

macro_rules! texts {
    ($($(#[$about:meta])* $name:ident($($argument:ident: $of:ty),*) = $function:ident;)*) => {$(
        $(#[$about])*
        pub(crate) fn $name($($argument: $of),*) -> String {
            let mut length = 0;
            // SAFETY: LLVM gives the address of a text of its own, and how long that is.
            unsafe { copied($function($($argument,)* &raw mut length), length) }
        }
    )*};
}

texts! {
    /// The source file as clang was given it.
    source_file(module: Module) = LLVMGetSourceFileName;
    /// What the original weaver tells as the module.
    identifier(module: Module) = LLVMGetModuleIdentifier;
    /// A symbol.
    name(value: Value) = LLVMGetValueName2;
    /// Content of a constant string; only for what [`LLVMIsAConstantDataSequential`] knows.
    content(constant: Value) = LLVMGetAsString;
}

macro_rules! c_texts {
    ($($(#[$about:meta])* $name:ident($($argument:ident: $of:ty),*) = $function:ident;)*) => {$(
        $(#[$about])*
        pub(crate) fn $name($($argument: $of),*) -> String {
            // SAFETY: a C string of LLVM's or the shim's that stays while it is copied.
            unsafe { copied_c($function($($argument),*)) }
        }
    )*};
}

c_texts! {
    target(module: Module) = LLVMGetTarget;
    option_abi() = weft_shim_option_abi;
    option_rules() = weft_shim_option_rules;
    own_path() = weft_shim_own_path;
}

/// A warning of the compiler, at the function where there is one with a body.
pub(crate) fn warn(module: Module, function: Option<Value>, text: &str) {
    // SAFETY: a text and its length.
    unsafe { weft_shim_warn(module, function, text.as_ptr(), text.len()) }
}

/// An error of the compiler.
pub(crate) fn error(module: Module, text: &str) {
    // SAFETY: a text and its length.
    unsafe { weft_shim_error(module, text.as_ptr(), text.len()) }
}

macro_rules! by_name {
    ($($name:ident($($argument:ident: $of:ty),*; name) -> $gives:ty = $function:ident;)*) => {$(
        pub(crate) fn $name($($argument: $of,)* name: &CStr) -> $gives {
            // SAFETY: a C string; the rest are handles.
            unsafe { $function($($argument,)* name.as_ptr()) }
        }
    )*};
}

by_name! {
    named_global(module: Module; name) -> Option<Value> = LLVMGetNamedGlobal;
    named_function(module: Module; name) -> Option<Value> = LLVMGetNamedFunction;
    add_global(module: Module, of: Type; name) -> Value = LLVMAddGlobal;
    comdat(module: Module; name) -> Comdat = LLVMGetOrInsertComdat;
    append_block(context: Context, function: Value; name) -> Block = LLVMAppendBasicBlockInContext;
    build_alloca(builder: Builder, of: Type; name) -> Value = LLVMBuildAlloca;
    build_load(builder: Builder, of: Type, from: Value; name) -> Value = LLVMBuildLoad2;
    build_bit_cast(builder: Builder, value: Value, to: Type; name) -> Value = LLVMBuildBitCast;
    build_compare(builder: Builder, predicate: c_int, left: Value, right: Value; name) -> Value = LLVMBuildICmp;
    build_landing_pad(builder: Builder, of: Type, personality: Option<Value>, clauses: u32; name) -> Value
        = LLVMBuildLandingPad;
}

pub(crate) fn add_function(module: Module, name: &CStr, of: Type) -> Value {
    // SAFETY: a C string and handles.
    unsafe { LLVMAddFunction(module, name.as_ptr(), of) }
}

pub(crate) fn function_type(gives: Type, takes: &[Type], is_variadic: bool) -> Type {
    // SAFETY: a list and its length.
    unsafe { LLVMFunctionType(gives, takes.as_ptr(), takes.len() as c_uint, c_int::from(is_variadic)) }
}

pub(crate) fn struct_type(context: Context, of: &[Type]) -> Type {
    // SAFETY: a list and its length.
    unsafe { LLVMStructTypeInContext(context, of.as_ptr(), of.len() as c_uint, 0) }
}

pub(crate) fn const_struct(context: Context, of: &[Value]) -> Value {
    // SAFETY: a list and its length.
    unsafe { LLVMConstStructInContext(context, of.as_ptr(), of.len() as c_uint, 0) }
}

/// A constant string that ends with a zero.
pub(crate) fn const_string(context: Context, text: &str) -> Value {
    // SAFETY: a text and its length.
    unsafe { LLVMConstStringInContext(context, text.as_ptr(), text.len() as c_uint, 0) }
}

pub(crate) fn build_call(builder: Builder, of: Type, function: Value, arguments: &[Value]) -> Value {
    let count = arguments.len() as c_uint;
    // SAFETY: a list and its length, an empty name.
    unsafe { LLVMBuildCall2(builder, of, function, arguments.as_ptr(), count, c"".as_ptr()) }
}

/// The address so many bytes further on.
pub(crate) fn build_offset(builder: Builder, context: Context, from: Value, bytes: u64) -> Value {
    let index = LLVMConstInt(LLVMInt64TypeInContext(context), bytes, 0);
    // SAFETY: a list of one, an empty name.
    unsafe { LLVMBuildGEP2(builder, LLVMInt8TypeInContext(context), from, &raw const index, 1, c"".as_ptr()) }
}

/// Number of an attribute; `None` where this LLVM does not have it.
pub(crate) fn attribute_kind(name: &str) -> Option<u32> {
    // SAFETY: a text and its length.
    let kind = unsafe { LLVMGetEnumAttributeKindForName(name.as_ptr(), name.len()) };
    (kind != 0).then_some(kind)
}

/// Has the function this attribute of LLVM's?
pub(crate) fn has_attribute(function: Value, name: &str) -> bool {
    attribute_kind(name)
        .is_some_and(|kind| LLVMGetEnumAttributeAtIndex(function, constant::OF_FUNCTION, kind).is_some())
}

/// Gives the function an attribute that only we know.
pub(crate) fn mark(context: Context, function: Value, key: &str) {
    // SAFETY: two texts and their lengths.
    let attribute = unsafe { LLVMCreateStringAttribute(context, key.as_ptr(), key.len() as c_uint, key.as_ptr(), 0) };
    LLVMAddAttributeAtIndex(function, constant::OF_FUNCTION, attribute);
}

/// Has it been given?
pub(crate) fn is_marked(function: Value, key: &str) -> bool {
    let (index, length) = (constant::OF_FUNCTION, key.len() as c_uint);
    // SAFETY: a text and its length.
    unsafe { LLVMGetStringAttributeAtIndex(function, index, key.as_ptr(), length).is_some() }
}

/// What is wrong with the module, if anything is.
pub(crate) fn verify(module: Module) -> Option<String> {
    /// LLVM-C: tell by the result.
    const RETURN_STATUS: c_int = 2;
    let mut message = std::ptr::null_mut();
    // SAFETY: room for one address.
    let is_wrong = unsafe { LLVMVerifyModule(module, RETURN_STATUS, &raw mut message) } != 0;
    // SAFETY: LLVM gave a text that is ours now, and is given back.
    let text = unsafe {
        let text = copied_c(message);
        LLVMDisposeMessage(message);
        text
    };
    is_wrong.then_some(text)
}

/// The functions of a module.
pub(crate) fn functions(module: Module) -> impl Iterator<Item = Value> {
    std::iter::successors(LLVMGetFirstFunction(module), |function| LLVMGetNextFunction(*function))
}

/// The blocks of a function.
pub(crate) fn blocks(function: Value) -> impl Iterator<Item = Block> {
    std::iter::successors(LLVMGetFirstBasicBlock(function), |block| LLVMGetNextBasicBlock(*block))
}

/// The instructions of a function, block by block.
pub(crate) fn instructions(function: Value) -> impl Iterator<Item = Value> {
    blocks(function).flat_map(|block| {
        std::iter::successors(LLVMGetFirstInstruction(block), |instruction| LLVMGetNextInstruction(*instruction))
    })
}

/// What an alias or a constant expression stands for.
pub(crate) fn stripped(value: Value) -> Value {
    let mut value = value;
    loop {
        value = match (LLVMIsAConstantExpr(value), LLVMIsAGlobalAlias(value)) {
            (Some(expression), _) => LLVMGetOperand(expression, 0),
            (_, Some(alias)) => LLVMAliasGetAliasee(alias),
            _ => return value,
        };
    }
}

/// The function that a call or an invoke names, if it names one.
pub(crate) fn callee(call: Value) -> Option<Value> {
    LLVMIsAFunction(stripped(LLVMGetCalledValue(call)))
}
