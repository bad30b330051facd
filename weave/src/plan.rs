//! Which functions of a module are woven, and how: annotations first, then rules, then every large one.

use std::collections::{HashMap, HashSet};

use crate::annotation::{Annotation, looks_like_ours};
use crate::llvm::{self, Module, Value, constant};
use crate::name;
use crate::rules::{Candidate, Rules};

/// Marks a woven function. It is kept in bitcode: what was woven before link-time optimisation is not woven again by it.
pub(crate) const MARK: &str = "weft-woven";

/// A function to weave.
#[derive(Debug)]
pub(crate) struct Woven {
    pub(crate) function: Value,
    pub(crate) symbol: String,
    /// Its readable name.
    pub(crate) name: String,
    pub(crate) asked: Annotation,
    /// Where the annotation or else the function stands; 0 when nobody knows.
    pub(crate) line: u32,
}

/// What the options say.
#[derive(Debug, Default)]
pub(crate) struct WeaveOptions {
    pub(crate) rules: Rules,
    /// Weave every function with at least so many instructions; 0 for none.
    pub(crate) all: usize,
}

/// An entry of `llvm.global.annotations`.
struct Entry {
    global: Value,
    text: String,
    file: String,
    line: u32,
}

fn entries(module: Module) -> Vec<Entry> {
    let list = llvm::named_global(module, c"llvm.global.annotations").and_then(|list| llvm::LLVMGetInitializer(list));
    let Some(list) = list else { return Vec::new() };
    let count = u32::try_from(llvm::LLVMGetNumOperands(list)).unwrap_or(0);
    (0..count).filter_map(|index| entry(llvm::LLVMGetOperand(list, index))).collect()
}

fn entry(of: Value) -> Option<Entry> {
    if llvm::LLVMGetNumOperands(of) < 4 {
        return None;
    }
    let line =
        llvm::LLVMIsAConstantInt(llvm::LLVMGetOperand(of, 3)).map_or(0, |line| llvm::LLVMConstIntGetZExtValue(line));
    Some(Entry {
        global: llvm::stripped(llvm::LLVMGetOperand(of, 0)),
        text: text_at(llvm::LLVMGetOperand(of, 1))?,
        file: text_at(llvm::LLVMGetOperand(of, 2)).unwrap_or_default(),
        line: u32::try_from(line).unwrap_or(0),
    })
}

/// The C string that a constant points at.
fn text_at(pointer: Value) -> Option<String> {
    let global = llvm::LLVMIsAGlobalVariable(llvm::stripped(pointer))?;
    let constant = llvm::LLVMIsAConstantDataSequential(llvm::LLVMGetInitializer(global)?)?;
    let mut text = llvm::content(constant);
    text.truncate(text.find('\0').unwrap_or(text.len()));
    Some(text)
}

/// The functions of the module that are to be woven. Annotations that cannot be followed are told as warnings.
pub(crate) fn of(module: Module, options: &WeaveOptions) -> Vec<Woven> {
    let resolvers: HashSet<Value> =
        std::iter::successors(llvm::LLVMGetFirstGlobalIFunc(module), |ifunc| llvm::LLVMGetNextGlobalIFunc(*ifunc))
            .filter_map(|ifunc| llvm::LLVMGetGlobalIFuncResolver(ifunc))
            .map(llvm::stripped)
            .collect();
    let mut woven = annotated(module, &resolvers);
    if options.all == 0 && options.rules == Rules::default() {
        return woven;
    }
    let known: HashSet<Value> = woven.iter().map(|woven| woven.function).collect();
    let file = llvm::source_file(module);
    for function in llvm::functions(module) {
        let is_candidate = !known.contains(&function)
            && obstacle(function, &resolvers).is_none()
            // What `__attribute__((no_profile_instrument_function))` becomes: whoever writes it means us as well.
            && !llvm::has_attribute(function, "noprofile");
        if is_candidate {
            woven.extend(by_options(function, &file, options));
        }
    }
    woven
}

fn annotated(module: Module, resolvers: &HashSet<Value>) -> Vec<Woven> {
    let mut woven: Vec<Woven> = Vec::new();
    let mut places: HashMap<Value, usize> = HashMap::new();
    // A declaration repeated with its annotation makes the same entry again.
    let mut seen: HashSet<(Value, String)> = HashSet::new();
    for Entry { global, text, file, line } in entries(module) {
        if !looks_like_ours(&text) || !seen.insert((global, text.clone())) {
            continue;
        }
        let function = llvm::LLVMIsAFunction(global);
        let warn = |why: &str| {
            // clang finds the place of a function by itself.
            let place = if function.is_some() || file.is_empty() { String::new() } else { format!("{file}:{line}: ") };
            llvm::warn(module, function, &format!("{place}annotation {text:?} is ignored: {why}"));
        };
        let Some(function) = function else {
            warn("only functions can be woven");
            continue;
        };
        match obstacle(function, resolvers) {
            None => {}
            Some(Obstacle::Done) => continue,
            Some(Obstacle::Impossible(why)) => {
                warn(why);
                continue;
            }
        }
        let mut asked = places.get(&function).map_or_else(Annotation::default, |&at| woven[at].asked.clone());
        if let Err(why) = asked.read(&text) {
            warn(&why.to_string());
            continue;
        }
        match places.get(&function) {
            Some(&at) => woven[at].asked = asked,
            None => {
                places.insert(function, woven.len());
                let symbol = llvm::name(function);
                let name = name::readable(&symbol);
                woven.push(Woven { function, symbol, name, asked, line });
            }
        }
    }
    woven
}

/// Why a function is not woven.
enum Obstacle {
    /// There is nothing to do, or it is done.
    Done,
    Impossible(&'static str),
}

fn obstacle(function: Value, resolvers: &HashSet<Value>) -> Option<Obstacle> {
    if llvm::LLVMIsDeclaration(function) != 0 || llvm::is_marked(function, MARK) || delegates(function) {
        return Some(Obstacle::Done);
    }
    if llvm::has_attribute(function, "naked") {
        return Some(Obstacle::Impossible("a naked function has no room for calls"));
    }
    if resolvers.contains(&function) {
        return Some(Obstacle::Impossible("the resolver of an ifunc runs before the program's libraries are there"));
    }
    None
}

/// Is it a constructor or destructor that only calls the one which does the work? That one is woven.
fn delegates(function: Value) -> bool {
    let symbol = llvm::name(function);
    symbol.starts_with("_ZN")
        && llvm::instructions(function).any(|instruction| {
            let opcode = llvm::LLVMGetInstructionOpcode(instruction);
            matches!(opcode, constant::OPCODE_CALL | constant::OPCODE_INVOKE)
                && llvm::callee(instruction).is_some_and(|callee| name::does_the_work_of(&llvm::name(callee), &symbol))
        })
}

/// Functions that the compiler makes, not the source: initialisers, thunks, its own helpers.
fn is_generated(symbol: &str) -> bool {
    ["_GLOBAL__", "__cxx_global_", "__clang_", "_ZT", "__tls_init", "llvm.", "asan.", "tsan."]
        .iter()
        .any(|start| symbol.starts_with(start))
}

fn by_options(function: Value, file: &str, options: &WeaveOptions) -> Option<Woven> {
    let symbol = llvm::name(function);
    if is_generated(&symbol) {
        return None;
    }
    let name = name::readable(&symbol);
    let instructions = llvm::instructions(function)
        .filter(|instruction| llvm::weft_shim_call_traits(*instruction) & llvm::traits::DEBUG == 0)
        .count();
    let candidate = Candidate { name: &name, symbol: &symbol, file, instructions };
    if options.rules.excludes(&candidate) {
        return None;
    }
    let large_enough = || (options.all != 0 && instructions >= options.all).then(Annotation::default);
    let asked = options.rules.find(&candidate).or_else(large_enough)?;
    let line = llvm::LLVMGetSubprogram(function).map_or(0, |place| llvm::LLVMDISubprogramGetLine(place));
    Some(Woven { function, symbol, name, asked, line })
}
