//! Weaves one function: a call at its entry, and one at every exit.

use crate::annotation::When;
use crate::exits::{self, Exit, Exits, How};
use crate::llvm::{self, Builder, Metadata, Value, constant};
use crate::plan::{MARK, Woven};
use crate::runtime::{Abi, Runtime, Site};

/// Attributes that no longer hold once the function calls the recorder.
const BROKEN_ATTRIBUTES: [&str; 10] = [
    "readnone",
    "readonly",
    "writeonly",
    "argmemonly",
    "inaccessiblememonly",
    "inaccessiblemem_or_argmemonly",
    "memory",
    "speculatable",
    "nosync",
    "nofree",
];

/// How the end knows what the beginning gave.
#[derive(Clone, Copy)]
enum Token {
    /// There is none: the end is recorded whenever the recorder is on.
    None,
    /// In a variable of the function, which the optimiser turns into a register.
    Variable(Value),
    /// The very value. In coroutines, whose variables may move to memory that is freed before they return.
    Value(Value),
}

struct Weaver<'a> {
    runtime: &'a Runtime,
    builder: Builder,
    function: Value,
    site: Site,
    when: When,
    subprogram: Option<Metadata>,
}

pub(crate) fn weave(runtime: &mut Runtime, builder: Builder, woven: &Woven) {
    let function = woven.function;
    let site = runtime.site(woven);
    let is_coroutine = llvm::weft_shim_is_coroutine(function) != 0;
    // All that is looked for is found before anything is changed.
    let found = match (woven.asked.pointcut.has_after(), is_coroutine) {
        (false, _) => Exits::default(),
        (true, true) => exits::of_coroutine(function),
        (true, false) => exits::of(function),
    };
    let subprogram = llvm::LLVMGetSubprogram(function);
    let when = woven.asked.pointcut.when;
    let weaver = Weaver { runtime, builder, function, site, when, subprogram };
    let token = weaver.enter(is_coroutine);
    weaver.leave(&found, token);
    for attribute in BROKEN_ATTRIBUTES.iter().filter_map(|name| llvm::attribute_kind(name)) {
        llvm::LLVMRemoveEnumAttributeAtIndex(function, constant::OF_FUNCTION, attribute);
    }
    llvm::mark(runtime.context, function, MARK);
}

impl Weaver<'_> {
    /// Inserts before this instruction from now on, as code of the function's line `line`.
    fn go_to(&self, place: Value, line: u32) {
        llvm::LLVMPositionBuilderBefore(self.builder, place);
        self.set_line(line);
    }

    fn set_line(&self, line: u32) {
        let location = self
            .subprogram
            .map(|scope| llvm::LLVMDIBuilderCreateDebugLocation(self.runtime.context, line, 0, scope, None));
        llvm::LLVMSetCurrentDebugLocation2(self.builder, location);
    }

    /// Inserts before this instruction from now on, as code of its line.
    fn go_to_exit(&self, place: Value) {
        self.go_to(place, 0);
        if let (Some(_), Some(location)) = (self.subprogram, llvm::LLVMInstructionGetDebugLoc(place)) {
            llvm::LLVMSetCurrentDebugLocation2(self.builder, Some(location));
        }
    }

    /// The beginning of the function, behind its variables: those are in its first block, and what is inserted may end that.
    fn entry(&self) -> Option<Value> {
        let first = llvm::LLVMGetFirstInstruction(llvm::LLVMGetEntryBasicBlock(self.function));
        std::iter::successors(first, |instruction| llvm::LLVMGetNextInstruction(*instruction))
            .find(|instruction| llvm::LLVMGetInstructionOpcode(*instruction) != constant::OPCODE_ALLOCA)
    }

    fn enter(&self, is_coroutine: bool) -> Token {
        if self.when == When::After {
            return Token::None;
        }
        let Some(entry) = self.entry() else { return Token::None };
        let line = self.subprogram.map_or(0, |scope| llvm::LLVMDISubprogramGetLine(scope));
        let keeps_token = self.when == When::Around && self.runtime.abi == Abi::Weft;
        self.go_to(entry, line);
        if self.runtime.abi == Abi::Perfflow || is_coroutine {
            // The runtime looks by itself whether it is on. A coroutine's first block stays whole.
            let given = self.runtime.before(self.builder, &self.site);
            return if keeps_token { Token::Value(given) } else { Token::None };
        }
        let variable = keeps_token.then(|| {
            let variable = llvm::build_alloca(self.builder, self.runtime.int64, c"weft.token");
            llvm::LLVMBuildStore(self.builder, self.runtime.no_token(), variable);
            variable
        });
        let is_on = self.runtime.is_on(self.builder);
        self.go_to(llvm::weft_shim_if_rarely(is_on, entry), line);
        let given = self.runtime.before(self.builder, &self.site);
        match variable {
            Some(variable) => {
                llvm::LLVMBuildStore(self.builder, given, variable);
                Token::Variable(variable)
            }
            None => Token::None,
        }
    }

    fn leave(&self, found: &Exits, token: Token) {
        if !found.throwing.is_empty() {
            let resume = self.landing_pad();
            for call in &found.throwing {
                llvm::weft_shim_to_invoke(*call, resume.pad);
            }
            self.exit(&Exit { before: resume.resume, how: How::Thrown }, token);
        }
        for pad in &found.selective {
            llvm::LLVMSetCleanup(*pad, 1);
        }
        for exit in &found.exits {
            self.exit(exit, token);
        }
    }

    /// Where exceptions land that nothing else in the function catches: they go on from there.
    fn landing_pad(&self) -> Pad {
        if llvm::LLVMHasPersonalityFn(self.function) == 0 {
            llvm::LLVMSetPersonalityFn(self.function, self.runtime.personality());
        }
        let pad = llvm::append_block(self.runtime.context, self.function, c"weft.thrown");
        llvm::LLVMPositionBuilderAtEnd(self.builder, pad);
        self.set_line(0);
        let exception = llvm::build_landing_pad(self.builder, self.runtime.exception(), None, 0, c"");
        llvm::LLVMSetCleanup(exception, 1);
        Pad { pad, resume: llvm::LLVMBuildResume(self.builder, exception) }
    }

    fn exit(&self, exit: &Exit, token: Token) {
        let is_caught = exit.how == How::Never { caught: true };
        let (runtime, builder) = (self.runtime, self.builder);
        // Without a token nobody would know at the end of the clean-up that the end was told.
        if is_caught && !matches!(token, Token::Variable(_)) {
            return;
        }
        self.go_to_exit(exit.before);
        let (condition, value) = match (runtime.abi, token) {
            (Abi::Perfflow, _) => {
                runtime.after(builder, &self.site, runtime.no_token(), exit.how);
                return;
            }
            (Abi::Weft, Token::None) => (runtime.is_on(builder), runtime.no_token()),
            (Abi::Weft, Token::Value(value)) => (runtime.is_token(builder, value), value),
            (Abi::Weft, Token::Variable(variable)) => {
                let value = llvm::build_load(builder, runtime.int64, variable, c"");
                (runtime.is_token(builder, value), value)
            }
        };
        let then = llvm::weft_shim_if_rarely(condition, exit.before);
        self.go_to_exit(then);
        runtime.after(builder, &self.site, value, exit.how);
        if let (true, Token::Variable(variable)) = (is_caught, token) {
            llvm::LLVMBuildStore(builder, runtime.no_token(), variable);
        }
    }
}

struct Pad {
    pad: llvm::Block,
    resume: Value,
}
