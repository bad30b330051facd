//! The declarations: LLVM-C by hand, only what is used, and the shim's functions. See [`super`] for why some are safe.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong};

use super::{Attribute, Block, Builder, Comdat, Context, Metadata, Module, PassBuilder, Type, Value};

// SAFETY: declared as in llvm-c/*.h of LLVM 14 to 19 and in shim.cc; what is safe takes handles and numbers alone.
unsafe extern "C" {
    pub(crate) safe fn LLVMGetModuleContext(module: Module) -> Context;
    pub(crate) safe fn LLVMGetFirstFunction(module: Module) -> Option<Value>;
    pub(crate) safe fn LLVMGetNextFunction(function: Value) -> Option<Value>;
    pub(crate) safe fn LLVMGetFirstGlobalIFunc(module: Module) -> Option<Value>;
    pub(crate) safe fn LLVMGetNextGlobalIFunc(ifunc: Value) -> Option<Value>;
    pub(crate) safe fn LLVMGetGlobalIFuncResolver(ifunc: Value) -> Option<Value>;
    pub(crate) safe fn LLVMAliasGetAliasee(alias: Value) -> Value;

    pub(crate) safe fn LLVMIsAFunction(value: Value) -> Option<Value>;
    pub(crate) safe fn LLVMIsAGlobalAlias(value: Value) -> Option<Value>;
    pub(crate) safe fn LLVMIsAGlobalVariable(value: Value) -> Option<Value>;
    pub(crate) safe fn LLVMIsAConstantExpr(value: Value) -> Option<Value>;
    pub(crate) safe fn LLVMIsAConstantDataSequential(value: Value) -> Option<Value>;
    pub(crate) safe fn LLVMIsAConstantInt(value: Value) -> Option<Value>;
    pub(crate) safe fn LLVMIsAConstantPointerNull(value: Value) -> Option<Value>;
    pub(crate) safe fn LLVMIsDeclaration(global: Value) -> c_int;
    pub(crate) safe fn LLVMGetInitializer(global: Value) -> Option<Value>;
    pub(crate) safe fn LLVMGetNumOperands(user: Value) -> c_int;
    pub(crate) safe fn LLVMGetOperand(user: Value, index: c_uint) -> Value;
    pub(crate) safe fn LLVMConstIntGetZExtValue(constant: Value) -> c_ulonglong;

    pub(crate) safe fn LLVMGetLinkage(global: Value) -> c_int;
    pub(crate) safe fn LLVMSetLinkage(global: Value, linkage: c_int);
    pub(crate) safe fn LLVMSetVisibility(global: Value, visibility: c_int);
    pub(crate) safe fn LLVMSetGlobalConstant(global: Value, constant: c_int);
    pub(crate) safe fn LLVMSetUnnamedAddress(global: Value, kind: c_int);
    pub(crate) safe fn LLVMSetAlignment(value: Value, bytes: c_uint);
    pub(crate) safe fn LLVMSetInitializer(global: Value, constant: Value);
    pub(crate) safe fn LLVMSetComdat(global: Value, comdat: Comdat);

    pub(crate) safe fn LLVMHasPersonalityFn(function: Value) -> c_int;
    pub(crate) safe fn LLVMGetPersonalityFn(function: Value) -> Value;
    pub(crate) safe fn LLVMSetPersonalityFn(function: Value, personality: Value);
    pub(crate) safe fn LLVMGetSubprogram(function: Value) -> Option<Metadata>;
    pub(crate) safe fn LLVMDISubprogramGetLine(subprogram: Metadata) -> c_uint;
    pub(crate) safe fn LLVMGetEntryBasicBlock(function: Value) -> Block;
    pub(crate) safe fn LLVMGetFirstBasicBlock(function: Value) -> Option<Block>;
    pub(crate) safe fn LLVMGetNextBasicBlock(block: Block) -> Option<Block>;
    pub(crate) safe fn LLVMGetFirstInstruction(block: Block) -> Option<Value>;
    pub(crate) safe fn LLVMGetNextInstruction(instruction: Value) -> Option<Value>;
    pub(crate) safe fn LLVMGetPreviousInstruction(instruction: Value) -> Option<Value>;
    pub(crate) safe fn LLVMGetInstructionOpcode(instruction: Value) -> c_int;
    pub(crate) safe fn LLVMInstructionGetDebugLoc(instruction: Value) -> Option<Metadata>;
    pub(crate) safe fn LLVMGetCalledValue(call: Value) -> Value;
    pub(crate) safe fn LLVMGetUnwindDest(invoke: Value) -> Block;
    pub(crate) safe fn LLVMGetNumClauses(pad: Value) -> c_uint;
    pub(crate) safe fn LLVMGetClause(pad: Value, index: c_uint) -> Value;
    pub(crate) safe fn LLVMIsCleanup(pad: Value) -> c_int;
    pub(crate) safe fn LLVMSetCleanup(pad: Value, cleanup: c_int);
    pub(crate) safe fn LLVMSetOrdering(load: Value, ordering: c_int);

    pub(crate) safe fn LLVMInt8TypeInContext(context: Context) -> Type;
    pub(crate) safe fn LLVMInt32TypeInContext(context: Context) -> Type;
    pub(crate) safe fn LLVMInt64TypeInContext(context: Context) -> Type;
    pub(crate) safe fn LLVMVoidTypeInContext(context: Context) -> Type;
    pub(crate) safe fn LLVMPointerType(to: Type, space: c_uint) -> Type;
    pub(crate) safe fn LLVMTypeOf(value: Value) -> Type;
    pub(crate) safe fn LLVMConstInt(of: Type, value: c_ulonglong, signed: c_int) -> Value;
    pub(crate) safe fn LLVMConstNull(of: Type) -> Value;
    pub(crate) safe fn LLVMConstBitCast(constant: Value, to: Type) -> Value;

    pub(crate) safe fn LLVMCreateBuilderInContext(context: Context) -> Builder;
    pub(crate) safe fn LLVMDisposeBuilder(builder: Builder);
    pub(crate) safe fn LLVMPositionBuilderBefore(builder: Builder, instruction: Value);
    pub(crate) safe fn LLVMPositionBuilderAtEnd(builder: Builder, block: Block);
    pub(crate) safe fn LLVMSetCurrentDebugLocation2(builder: Builder, location: Option<Metadata>);
    pub(crate) safe fn LLVMDIBuilderCreateDebugLocation(
        context: Context,
        line: c_uint,
        column: c_uint,
        scope: Metadata,
        inlined_at: Option<Metadata>,
    ) -> Metadata;
    pub(crate) safe fn LLVMBuildStore(builder: Builder, value: Value, to: Value) -> Value;
    pub(crate) safe fn LLVMBuildResume(builder: Builder, exception: Value) -> Value;

    pub(crate) safe fn LLVMAddAttributeAtIndex(function: Value, index: c_uint, attribute: Attribute);
    pub(crate) safe fn LLVMGetEnumAttributeAtIndex(function: Value, index: c_uint, kind: c_uint) -> Option<Attribute>;
    pub(crate) safe fn LLVMRemoveEnumAttributeAtIndex(function: Value, index: c_uint, kind: c_uint);
    pub(crate) safe fn LLVMCreateEnumAttribute(context: Context, kind: c_uint, value: u64) -> Attribute;

    pub(crate) safe fn weft_shim_api_version() -> c_uint;
    pub(crate) safe fn weft_shim_register(builder: PassBuilder);
    pub(crate) safe fn weft_shim_option_all() -> c_uint;
    pub(crate) safe fn weft_shim_option_verify() -> c_int;
    pub(crate) safe fn weft_shim_call_traits(value: Value) -> c_uint;
    pub(crate) safe fn weft_shim_is_nounwind(function: Value) -> c_int;
    pub(crate) safe fn weft_shim_is_coroutine(function: Value) -> c_int;
    pub(crate) safe fn weft_shim_if_rarely(condition: Value, before: Value) -> Value;
    pub(crate) safe fn weft_shim_to_invoke(call: Value, pad: Block);

    pub(super) fn weft_shim_option_abi() -> *const c_char;
    pub(super) fn weft_shim_option_rules() -> *const c_char;
    pub(super) fn weft_shim_own_path() -> *const c_char;
    pub(super) fn weft_shim_warn(module: Module, function: Option<Value>, text: *const u8, length: usize);
    pub(super) fn weft_shim_error(module: Module, text: *const u8, length: usize);
    pub(super) fn LLVMGetTarget(module: Module) -> *const c_char;
    pub(super) fn LLVMGetSourceFileName(module: Module, length: *mut usize) -> *const u8;
    pub(super) fn LLVMGetModuleIdentifier(module: Module, length: *mut usize) -> *const u8;
    pub(super) fn LLVMGetValueName2(value: Value, length: *mut usize) -> *const u8;
    pub(super) fn LLVMGetAsString(constant: Value, length: *mut usize) -> *const u8;
    pub(super) fn LLVMGetNamedGlobal(module: Module, name: *const c_char) -> Option<Value>;
    pub(super) fn LLVMGetNamedFunction(module: Module, name: *const c_char) -> Option<Value>;
    pub(super) fn LLVMAddGlobal(module: Module, of: Type, name: *const c_char) -> Value;
    pub(super) fn LLVMAddFunction(module: Module, name: *const c_char, of: Type) -> Value;
    pub(super) fn LLVMGetOrInsertComdat(module: Module, name: *const c_char) -> Comdat;
    pub(super) fn LLVMFunctionType(gives: Type, takes: *const Type, count: c_uint, variadic: c_int) -> Type;
    pub(super) fn LLVMStructTypeInContext(context: Context, of: *const Type, count: c_uint, packed: c_int) -> Type;
    pub(super) fn LLVMConstStructInContext(context: Context, of: *const Value, count: c_uint, packed: c_int) -> Value;
    pub(super) fn LLVMConstStringInContext(context: Context, text: *const u8, length: c_uint, bare: c_int) -> Value;
    pub(super) fn LLVMAppendBasicBlockInContext(context: Context, function: Value, name: *const c_char) -> Block;
    pub(super) fn LLVMBuildCall2(
        builder: Builder,
        of: Type,
        function: Value,
        arguments: *const Value,
        count: c_uint,
        name: *const c_char,
    ) -> Value;
    pub(super) fn LLVMBuildAlloca(builder: Builder, of: Type, name: *const c_char) -> Value;
    pub(super) fn LLVMBuildLoad2(builder: Builder, of: Type, from: Value, name: *const c_char) -> Value;
    pub(super) fn LLVMBuildGEP2(
        builder: Builder,
        of: Type,
        from: Value,
        indices: *const Value,
        count: c_uint,
        name: *const c_char,
    ) -> Value;
    pub(super) fn LLVMBuildBitCast(builder: Builder, value: Value, to: Type, name: *const c_char) -> Value;
    pub(super) fn LLVMBuildICmp(
        builder: Builder,
        predicate: c_int,
        left: Value,
        right: Value,
        name: *const c_char,
    ) -> Value;
    pub(super) fn LLVMBuildLandingPad(
        builder: Builder,
        of: Type,
        personality: Option<Value>,
        clauses: c_uint,
        name: *const c_char,
    ) -> Value;
    pub(super) fn LLVMGetEnumAttributeKindForName(name: *const u8, length: usize) -> c_uint;
    pub(super) fn LLVMCreateStringAttribute(
        context: Context,
        key: *const u8,
        key_length: c_uint,
        value: *const u8,
        value_length: c_uint,
    ) -> Attribute;
    pub(super) fn LLVMGetStringAttributeAtIndex(
        function: Value,
        index: c_uint,
        key: *const u8,
        length: c_uint,
    ) -> Option<Attribute>;
    pub(super) fn LLVMVerifyModule(module: Module, action: c_int, message: *mut *mut c_char) -> c_int;
    pub(super) fn LLVMDisposeMessage(message: *mut c_char);
}
