// What LLVM's C interface lacks: the pass and its options, diagnostics with a place, and a few edits of functions. Nothing is decided here;
// src/ says what is woven and where. Every function takes and gives LLVM-C handles.
#include <dlfcn.h>

#include <string>

#include "llvm-c/Core.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Passes/PassBuilder.h"
#if __has_include("llvm/Passes/PassPlugin.h")
#include "llvm/Passes/PassPlugin.h"
#else
#include "llvm/Plugins/PassPlugin.h"
#endif
#include "llvm/Support/CommandLine.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

extern "C" int weft_weave_module(LLVMModuleRef module);  // src/lib.rs

// src/lib.rs has the same structure; an LLVM with another one must be noticed here, not in clang.
static_assert(sizeof(PassPluginLibraryInfo) == 4 * sizeof(void *), "this LLVM asks a plugin for more than src/lib.rs tells");

namespace {

cl::opt<std::string> abi("weft-weave-abi", cl::desc("runtime that woven code calls: weft or perfflow"),
                         cl::value_desc("weft|perfflow"));
cl::opt<std::string> rules("weft-weave-rules", cl::desc("file of rules that say which functions are woven"),
                           cl::value_desc("weft.weave.toml"));
cl::opt<unsigned> all("weft-weave-all", cl::desc("weave every function with at least so many instructions"), cl::init(0));
cl::opt<bool> verify("weft-weave-verify", cl::desc("check the module after weaving"), cl::init(false), cl::Hidden);

struct WeavePass : PassInfoMixin<WeavePass> {
    PreservedAnalyses run(Module &module, ModuleAnalysisManager &) {
        return weft_weave_module(wrap(&module)) ? PreservedAnalyses::none() : PreservedAnalyses::all();
    }
    // Functions are woven without optimisation as well.
    static bool isRequired() { return true; }
};

// A message of the compiler that has no place in the source.
class Message : public DiagnosticInfo {
    std::string text;

   public:
    Message(StringRef text, DiagnosticSeverity severity)
        : DiagnosticInfo(getNextAvailablePluginDiagnosticKind(), severity), text(text) {}
    void print(DiagnosticPrinter &printer) const override { printer << text; }
};

// `traits` of src/llvm.rs.
enum Trait : unsigned {
    IsNoUnwind = 1,
    IsNoReturn = 2,
    IsMustTail = 4,
    IsIntrinsic = 8,
    IsAssembly = 16,
    IsDebug = 32,
};

}  // namespace

extern "C" {

unsigned weft_shim_api_version() { return LLVM_PLUGIN_API_VERSION; }

void weft_shim_register(PassBuilder *builder) {
    // The first place in the pipeline that is there at -O0 as well; the inliner comes later.
#if LLVM_VERSION_MAJOR >= 20
    builder->registerPipelineEarlySimplificationEPCallback(
        [](ModulePassManager &manager, OptimizationLevel, ThinOrFullLTOPhase) { manager.addPass(WeavePass()); });
#else
    builder->registerPipelineEarlySimplificationEPCallback(
        [](ModulePassManager &manager, OptimizationLevel) { manager.addPass(WeavePass()); });
#endif
    builder->registerPipelineParsingCallback(
        [](StringRef name, ModulePassManager &manager, ArrayRef<PassBuilder::PipelineElement>) {
            if (name != "weft-weave") return false;
            manager.addPass(WeavePass());
            return true;
        });
}

const char *weft_shim_option_abi() { return abi.c_str(); }
const char *weft_shim_option_rules() { return rules.c_str(); }
unsigned weft_shim_option_all() { return all; }
int weft_shim_option_verify() { return verify; }

// The path that this plugin was loaded by.
const char *weft_shim_own_path() {
    Dl_info found;
    return dladdr(reinterpret_cast<void *>(&weft_shim_own_path), &found) && found.dli_fname ? found.dli_fname : "";
}

// clang knows where a function stands, even without -g; `function` may be null.
void weft_shim_warn(LLVMModuleRef module, LLVMValueRef function, const char *text, size_t length) {
    StringRef message(text, length);
    auto *place = dyn_cast_or_null<Function>(unwrap(function));
    if (place && !place->isDeclaration()) {
        unwrap(module)->getContext().diagnose(
            DiagnosticInfoUnsupported(*place, message, DiagnosticLocation(place->getSubprogram()), DS_Warning));
    } else {
        unwrap(module)->getContext().diagnose(Message(message, DS_Warning));
    }
}

void weft_shim_error(LLVMModuleRef module, const char *text, size_t length) {
    unwrap(module)->getContext().diagnose(Message(StringRef(text, length), DS_Error));
}

// See Trait; 0 for what is not a call.
unsigned weft_shim_call_traits(LLVMValueRef value) {
    auto *call = dyn_cast<CallBase>(unwrap(value));
    if (!call) return 0;
    unsigned traits = 0;
    if (call->doesNotThrow()) traits |= IsNoUnwind;
    if (call->doesNotReturn()) traits |= IsNoReturn;
    if (call->isMustTailCall()) traits |= IsMustTail;
    if (isa<IntrinsicInst>(call)) traits |= IsIntrinsic;
    if (call->isInlineAsm()) traits |= IsAssembly;
    if (isa<DbgInfoIntrinsic>(call)) traits |= IsDebug;
    return traits;
}

int weft_shim_is_nounwind(LLVMValueRef function) { return unwrap<Function>(function)->doesNotThrow(); }

int weft_shim_is_coroutine(LLVMValueRef function) {
    auto *it = unwrap<Function>(function);
#if LLVM_VERSION_MAJOR >= 15
    return it->isPresplitCoroutine();
#else
    return it->hasFnAttribute("coroutine.presplit");
#endif
}

// Splits the block before `place`: what is inserted before the instruction returned runs when `condition` holds, which is not expected.
LLVMValueRef weft_shim_if_rarely(LLVMValueRef condition, LLVMValueRef place) {
    auto *before = unwrap<Instruction>(place);
    auto *weights = MDBuilder(before->getContext()).createBranchWeights(1, 2000);
    return wrap(SplitBlockAndInsertIfThen(unwrap(condition), before, /*Unreachable=*/false, weights));
}

// An exception out of this call goes to `pad`. The call is replaced: its handle is not to be used any more.
void weft_shim_to_invoke(LLVMValueRef call, LLVMBasicBlockRef pad) {
    changeToInvokeAndSplitBasicBlock(unwrap<CallInst>(call), unwrap(pad));
}

}  // extern "C"
