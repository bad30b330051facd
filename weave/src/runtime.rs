//! The runtime calls of woven code: declarations, the site of each function, and the instructions that make the calls.
//!
//! Weftline's own interface is that of `crates/capi`: a static `weft_woven` for each function, a look at the recorder's table before
//! anything is called, and a token that lives in a register from the beginning to the end. PerfFlowAspect's is two functions that take
//! texts.

use std::collections::HashMap;
use std::ffi::{CStr, CString};

use crate::annotation::{Flow, When};
use crate::exits::How;
use crate::llvm::{self, Builder, Context, Module, Type, Value, constant};
use crate::plan::Woven;

/// Which runtime is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Abi {
    Weft,
    Perfflow,
}

/// Version of `weft_woven`.
const SITE_VERSION: u64 = 1;
/// Where the recorder's table has the word that says whether it records; the table's layout never changes.
const ON_OFFSET: u64 = 12;

/// A module's view of the runtime.
pub(crate) struct Runtime {
    pub(crate) abi: Abi,
    pub(crate) module: Module,
    pub(crate) context: Context,
    pub(crate) pointer: Type,
    pub(crate) int64: Type,
    int32: Type,
    int8: Type,
    nothing: Type,
    file: String,
    identifier: String,
    /// Constants that were made, by content.
    texts: HashMap<String, Value>,
}

/// A function's share of the runtime: what is passed to it.
pub(crate) enum Site {
    Weft { at: Value, is_plain: bool },
    Perfflow { before: Vec<Value>, after: Vec<Value> },
}

impl Runtime {
    pub(crate) fn new(abi: Abi, module: Module) -> Runtime {
        let context = llvm::LLVMGetModuleContext(module);
        let int8 = llvm::LLVMInt8TypeInContext(context);
        Runtime {
            abi,
            module,
            context,
            pointer: llvm::LLVMPointerType(int8, 0),
            int64: llvm::LLVMInt64TypeInContext(context),
            int32: llvm::LLVMInt32TypeInContext(context),
            int8,
            nothing: llvm::LLVMVoidTypeInContext(context),
            file: llvm::source_file(module),
            identifier: llvm::identifier(module),
            texts: HashMap::new(),
        }
    }

    pub(crate) fn site(&mut self, woven: &Woven) -> Site {
        match self.abi {
            Abi::Weft => self.weft_site(woven),
            Abi::Perfflow => self.perfflow_site(woven),
        }
    }

    fn number(&self, of: Type, value: u64) -> Value {
        llvm::LLVMConstInt(of, value, 0)
    }

    /// Address of a constant string.
    fn text(&mut self, text: &str) -> Value {
        // A C string ends at its first zero, and no name has one.
        if let Some(known) = self.texts.get(text) {
            return *known;
        }
        let content = llvm::const_string(self.context, text);
        let global = llvm::add_global(self.module, llvm::LLVMTypeOf(content), c"weft.text");
        llvm::LLVMSetInitializer(global, content);
        llvm::LLVMSetLinkage(global, constant::LINKAGE_PRIVATE);
        llvm::LLVMSetGlobalConstant(global, 1);
        llvm::LLVMSetUnnamedAddress(global, constant::UNNAMED_ADDRESS_GLOBAL);
        llvm::LLVMSetAlignment(global, 1);
        let address = llvm::LLVMConstBitCast(global, self.pointer);
        self.texts.insert(text.to_owned(), address);
        address
    }

    fn text_or_null(&mut self, text: Option<&str>) -> Value {
        match text {
            Some(text) => self.text(text),
            None => llvm::LLVMConstNull(self.pointer),
        }
    }

    fn weft_site(&mut self, woven: &Woven) -> Site {
        let asked = &woven.asked;
        let file = Some(self.file.clone()).filter(|file| !file.is_empty());
        let fields = [
            self.text(&woven.name),
            self.number(self.int64, 0),
            self.text_or_null(asked.category.as_deref()),
            self.number(self.int64, 0),
            self.text_or_null(asked.scope.as_deref()),
            self.text_or_null(file.as_deref()),
            self.number(self.int32, u64::from(woven.line)),
            self.number(self.int8, asked.pointcut.when as u64),
            self.number(self.int8, u64::from(asked.pointcut.is_async)),
            self.number(self.int8, asked.flow as u64),
            self.number(self.int8, SITE_VERSION),
            self.number(self.int64, 0),
        ];
        let content = llvm::const_struct(self.context, &fields);
        // The copies of an inline function in several objects become one when they are linked; so do their sites.
        let is_shared = matches!(
            llvm::LLVMGetLinkage(woven.function),
            constant::LINKAGE_AVAILABLE_EXTERNALLY
                | constant::LINKAGE_LINKONCE_ANY
                | constant::LINKAGE_LINKONCE_ODR
                | constant::LINKAGE_WEAK_ODR
        );
        let name = CString::new(format!("weft.site.{}", woven.symbol)).unwrap_or_default();
        let global = llvm::add_global(self.module, llvm::LLVMTypeOf(content), &name);
        llvm::LLVMSetInitializer(global, content);
        llvm::LLVMSetAlignment(global, 8);
        if is_shared {
            llvm::LLVMSetLinkage(global, constant::LINKAGE_LINKONCE_ODR);
            llvm::LLVMSetVisibility(global, constant::VISIBILITY_HIDDEN);
            llvm::LLVMSetComdat(global, llvm::comdat(self.module, &name));
        } else {
            llvm::LLVMSetLinkage(global, constant::LINKAGE_PRIVATE);
        }
        let is_plain = asked.pointcut.when == When::Around && !asked.pointcut.is_async && asked.flow == Flow::None;
        Site::Weft { at: llvm::LLVMConstBitCast(global, self.pointer), is_plain }
    }

    fn perfflow_site(&mut self, woven: &Woven) -> Site {
        let asked = &woven.asked;
        // An arrow into or out of a function that is told as a whole belongs to its beginning.
        let flow_after = match (asked.pointcut.when, asked.flow) {
            (When::Around, Flow::In | Flow::Out) => Flow::None,
            (_, flow) => flow,
        };
        // The original's category is the module that the function stands in.
        let module = asked.category.clone().unwrap_or_else(|| self.identifier.clone());
        let mut arguments = |flow: Flow| {
            vec![
                self.number(self.int32, u64::from(asked.pointcut.is_async)),
                self.text(&module),
                self.text(&woven.symbol),
                self.text(asked.scope.as_deref().unwrap_or("NA")),
                self.text(flow.name()),
                self.text(asked.pointcut.name()),
            ]
        };
        Site::Perfflow { before: arguments(asked.flow), after: arguments(flow_after) }
    }

    /// A call of the runtime's function of this name. None of them throws.
    fn call(&self, builder: Builder, name: &CStr, gives: Type, arguments: &[Value]) -> Value {
        let takes: Vec<Type> = arguments.iter().map(|argument| llvm::LLVMTypeOf(*argument)).collect();
        let of = llvm::function_type(gives, &takes, false);
        let function = llvm::named_function(self.module, name).unwrap_or_else(|| {
            let function = llvm::add_function(self.module, name, of);
            if let Some(kind) = llvm::attribute_kind("nounwind") {
                let attribute = llvm::LLVMCreateEnumAttribute(self.context, kind, 0);
                llvm::LLVMAddAttributeAtIndex(function, constant::OF_FUNCTION, attribute);
            }
            function
        });
        llvm::build_call(builder, of, function, arguments)
    }

    /// Does the recorder record? Two loads that nothing is ordered by.
    pub(crate) fn is_on(&self, builder: Builder) -> Value {
        let cell = llvm::named_global(self.module, c"weft_recorder_v1")
            .unwrap_or_else(|| llvm::add_global(self.module, self.pointer, c"weft_recorder_v1"));
        let cell = llvm::LLVMConstBitCast(cell, llvm::LLVMPointerType(self.pointer, 0));
        let table = self.load_relaxed(builder, self.pointer, cell, 8);
        let on = llvm::build_offset(builder, self.context, table, ON_OFFSET);
        let on = llvm::build_bit_cast(builder, on, llvm::LLVMPointerType(self.int32, 0), c"");
        let on = self.load_relaxed(builder, self.int32, on, 4);
        self.is_not_zero(builder, on, self.int32)
    }

    fn load_relaxed(&self, builder: Builder, of: Type, from: Value, alignment: u32) -> Value {
        let load = llvm::build_load(builder, of, from, c"");
        llvm::LLVMSetOrdering(load, constant::ORDERING_MONOTONIC);
        llvm::LLVMSetAlignment(load, alignment);
        load
    }

    fn is_not_zero(&self, builder: Builder, value: Value, of: Type) -> Value {
        llvm::build_compare(builder, constant::PREDICATE_NOT_EQUAL, value, self.number(of, 0), c"")
    }

    /// Was a token given?
    pub(crate) fn is_token(&self, builder: Builder, token: Value) -> Value {
        self.is_not_zero(builder, token, self.int64)
    }

    /// What stands for no token.
    pub(crate) fn no_token(&self) -> Value {
        self.number(self.int64, 0)
    }

    /// Tells the beginning; the token, where the interface has one.
    pub(crate) fn before(&self, builder: Builder, site: &Site) -> Value {
        match site {
            Site::Weft { at, is_plain: true } => self.call(builder, c"weft_weave_begin", self.int64, &[*at]),
            Site::Weft { at, is_plain: false } => self.call(builder, c"weft_weave_enter", self.int64, &[*at]),
            Site::Perfflow { before, .. } => self.call(builder, c"perfflow_weave_before", self.nothing, before),
        }
    }

    /// Tells the end.
    pub(crate) fn after(&self, builder: Builder, site: &Site, token: Value, how: How) {
        let (name, arguments): (&CStr, &[Value]) = match (site, how) {
            (Site::Weft { at, is_plain: true }, How::Thrown) => (c"weft_weave_thrown", &[*at, token]),
            (Site::Weft { at, is_plain: true }, _) => (c"weft_weave_end", &[*at, token]),
            (Site::Weft { at, is_plain: false }, _) => (c"weft_weave_leave", &[*at, token]),
            (Site::Perfflow { after, .. }, _) => (c"perfflow_weave_after", after),
        };
        self.call(builder, name, self.nothing, arguments);
    }

    /// `__gxx_personality_v0` or what else the module's functions use: functions with different ones are not inlined into each other.
    pub(crate) fn personality(&self) -> Value {
        let used = llvm::functions(self.module)
            .find(|function| llvm::LLVMHasPersonalityFn(*function) != 0)
            .map(|function| llvm::LLVMGetPersonalityFn(function));
        used.unwrap_or_else(|| {
            let is_cpp = llvm::functions(self.module).any(|function| llvm::name(function).starts_with("_Z"));
            let name = if is_cpp { c"__gxx_personality_v0" } else { c"__gcc_personality_v0" };
            let of = llvm::function_type(self.int32, &[], true);
            let function =
                llvm::named_function(self.module, name).unwrap_or_else(|| llvm::add_function(self.module, name, of));
            llvm::LLVMConstBitCast(function, self.pointer)
        })
    }

    /// What a landing pad gives.
    pub(crate) fn exception(&self) -> Type {
        llvm::struct_type(self.context, &[self.pointer, self.int32])
    }
}
