//! Finds the exits of a function.

use crate::llvm::{self, Value, constant, traits};

/// How control leaves the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Returns,
    /// An exception passes through.
    Thrown,
    /// By a call that does not come back; `caught` when an exception out of it still runs clean-ups of the function.
    Never {
        caught: bool,
    },
}

/// A way out: what is to be done is done before this instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exit {
    pub(crate) before: Value,
    pub(crate) how: How,
}

/// The ways out, and what must be changed so that there are no others.
#[derive(Debug, Default)]
pub(crate) struct Exits {
    pub(crate) exits: Vec<Exit>,
    /// Calls that may throw past the function: they need a landing pad.
    pub(crate) throwing: Vec<Value>,
    /// Landing pads that let other exceptions pass; those must land too, and then go on.
    pub(crate) selective: Vec<Value>,
}

/// Throws for sure, so that nothing is lost if the end is told by the landing pad; any other function that does not return may as well
/// end the process.
fn is_thrower(call: Value) -> bool {
    llvm::callee(call).is_some_and(|callee| {
        let symbol = llvm::name(callee);
        matches!(symbol.as_str(), "__cxa_throw" | "__cxa_rethrow" | "_Unwind_RaiseException" | "_Unwind_Resume")
            || ["__cxa_bad_", "__cxa_throw_"].iter().any(|start| symbol.starts_with(start))
            || symbol.starts_with("_ZSt") && symbol.contains("__throw_")
    })
}

/// Only the ways by which a coroutine gives its object to the caller. What is behind a suspension belongs to other functions, which are
/// made from this one later.
pub(crate) fn of_coroutine(function: Value) -> Exits {
    let exits = llvm::instructions(function)
        .filter(|instruction| llvm::LLVMGetInstructionOpcode(*instruction) == constant::OPCODE_RET)
        .map(|ret| Exit { before: before_return(ret), how: How::Returns })
        .collect();
    Exits { exits, ..Exits::default() }
}

pub(crate) fn of(function: Value) -> Exits {
    let mut found = Exits::default();
    let may_throw = llvm::weft_shim_is_nounwind(function) == 0 && !has_funclets(function);
    for instruction in llvm::instructions(function) {
        match llvm::LLVMGetInstructionOpcode(instruction) {
            constant::OPCODE_RET => {
                found.exits.push(Exit { before: before_return(instruction), how: How::Returns });
            }
            constant::OPCODE_RESUME => found.exits.push(Exit { before: instruction, how: How::Thrown }),
            constant::OPCODE_CALL => found.call(instruction, may_throw),
            constant::OPCODE_INVOKE => found.invoke(instruction),
            constant::OPCODE_LANDINGPAD if may_throw && is_selective(instruction) => {
                found.selective.push(instruction);
            }
            _ => {}
        }
    }
    found
}

impl Exits {
    fn call(&mut self, call: Value, may_throw: bool) {
        let is = llvm::weft_shim_call_traits(call);
        if is & traits::MUST_TAIL != 0 {
            return;
        }
        let throws = may_throw && is & (traits::NO_UNWIND | traits::INTRINSIC | traits::ASSEMBLY) == 0;
        let returns = is & traits::NO_RETURN == 0 && !is_followed_by_nothing(call, is);
        match (returns, throws && (returns || is_thrower(call))) {
            (_, true) => self.throwing.push(call),
            (false, false) => self.exits.push(Exit { before: call, how: How::Never { caught: false } }),
            (true, false) => {}
        }
    }

    fn invoke(&mut self, invoke: Value) {
        if llvm::weft_shim_call_traits(invoke) & traits::NO_RETURN == 0 || is_thrower(invoke) {
            return;
        }
        // With clauses an exception may be caught here, and the function goes on.
        let pad = llvm::LLVMGetFirstInstruction(llvm::LLVMGetUnwindDest(invoke));
        let only_cleans = pad.is_some_and(|pad| {
            llvm::LLVMGetInstructionOpcode(pad) == constant::OPCODE_LANDINGPAD && llvm::LLVMGetNumClauses(pad) == 0
        });
        if only_cleans {
            self.exits.push(Exit { before: invoke, how: How::Never { caught: true } });
        }
    }
}

/// The place of a `ret`, or of the tail call that must stay directly before it.
fn before_return(ret: Value) -> Value {
    let mut before = llvm::LLVMGetPreviousInstruction(ret);
    if let Some(cast) = before
        && llvm::LLVMGetInstructionOpcode(cast) == constant::OPCODE_BITCAST
    {
        before = llvm::LLVMGetPreviousInstruction(cast);
    }
    before.filter(|call| llvm::weft_shim_call_traits(*call) & traits::MUST_TAIL != 0).unwrap_or(ret)
}

/// Does the source say that what follows the call is not reached? Then the call does not return, whatever its declaration says.
fn is_followed_by_nothing(call: Value, is: u32) -> bool {
    is & traits::INTRINSIC == 0
        && std::iter::successors(llvm::LLVMGetNextInstruction(call), |next| llvm::LLVMGetNextInstruction(*next))
            .find(|next| llvm::weft_shim_call_traits(*next) & traits::DEBUG == 0)
            .is_some_and(|next| llvm::LLVMGetInstructionOpcode(next) == constant::OPCODE_UNREACHABLE)
}

/// Does it let some exceptions pass without landing?
fn is_selective(pad: Value) -> bool {
    let catches_all = |index| llvm::LLVMIsAConstantPointerNull(llvm::LLVMGetClause(pad, index)).is_some();
    llvm::LLVMIsCleanup(pad) == 0 && !(0..llvm::LLVMGetNumClauses(pad)).any(catches_all)
}

/// Windows and WebAssembly have no landing pads.
fn has_funclets(function: Value) -> bool {
    llvm::LLVMHasPersonalityFn(function) != 0 && {
        let personality = llvm::name(llvm::stripped(llvm::LLVMGetPersonalityFn(function)));
        ["__CxxFrameHandler", "__C_specific_handler", "_except_handler", "__gxx_wasm", "ProcessCLRException"]
            .iter()
            .any(|start| personality.starts_with(start))
    }
}
