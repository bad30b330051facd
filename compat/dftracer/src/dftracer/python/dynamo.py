"""Events for the operators of a compiled PyTorch model, category ``dynamo``.

``torch.compile`` hands a graph to its backend. The backends made here put a call before and a call after each operator
of that graph, which read the recorder's clock. PyTorch is imported when a model is compiled, not before.
"""

import importlib
import operator
from typing import Any, Callable, Dict, List, NamedTuple, Optional, TypeVar, Union, cast, overload

from dftracer import _recording
from dftracer._frames import Source
from dftracer._recording import SPAN, now
from dftracer.python.ai_common import DFTracerAI
from dftracer.python.tags import Int

__all__ = ["Dynamo", "create_backend", "dynamo"]

F = TypeVar("F", bound=Callable[..., Any])
CATEGORY = "dynamo"


class _Operator(NamedTuple):
    source: Source
    name: str
    own: Dict[str, Any]


# Graphs can hold numbers but no objects of ours: the calls in a graph name their operator by its place in this list.
_OPERATORS: List[_Operator] = []


def operator_begins() -> int:
    """Called by compiled graphs."""
    return now()


def operator_ends(number: int, start: int) -> None:
    """Called by compiled graphs."""
    end = now()
    entry = _OPERATORS[number]
    entry.source.tell(SPAN, entry.name, start, end, {**entry.own, "grad_enabled": int(_torch().is_grad_enabled())})


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise ImportError(
            "dftracer.python.dynamo compiles models with PyTorch, which is not installed: pip install torch"
        ) from error


def create_detailed_op_name(node: Any, gm: Any) -> str:
    """``module.Linear.fc``, ``function.relu``, ``method.view``: what kind of operator, and which."""
    if node.op == "call_module":
        try:
            kind = type(gm.get_submodule(str(node.target))).__name__
        except AttributeError:
            kind = "unknown"
        return f"module.{kind}.{node.target}"
    if node.op == "call_method":
        return f"method.{node.target}"
    target = node.target
    name = getattr(target, "__name__", None) or str(target)
    return f"function.{name}"


class Dynamo(DFTracerAI):
    """A backend for ``torch.compile``, and a decorator that compiles with it."""

    def __init__(
        self, name: Optional[str] = None,
        epoch: Int = None, step: Int = None, image_idx: Int = None, image_size: Any = None, enable: bool = True
    ) -> None:  # fmt: skip
        super().__init__(
            cat=CATEGORY, name=name, epoch=epoch, step=step, image_idx=image_idx, image_size=image_size, enable=enable
        )

    def add_enhanced_timing_to_graph(self, gm: Any) -> Any:
        """Puts the two calls around each operator of a graph."""
        graph = gm.graph
        for node in list(graph.nodes):
            # Taking a part of a tuple is no operator of the model.
            if node.op not in ("call_function", "call_module", "call_method") or node.target is operator.getitem:
                continue
            own = {"op_type": node.op, "target": str(node.target)}
            _OPERATORS.append(_Operator(self._source, create_detailed_op_name(node, gm), own))
            with graph.inserting_before(node):
                begin = graph.call_function(operator_begins)
            with graph.inserting_after(node):
                graph.call_function(operator_ends, (len(_OPERATORS) - 1, begin))
        graph.lint()
        gm.recompile()
        return gm

    def backend(self, autograd: bool = True) -> Callable[..., Any]:
        """A backend for ``torch.compile``; `autograd` shows the operators of the backward pass too."""
        _torch()
        if not autograd:
            return lambda gm, inputs: self.add_enhanced_timing_to_graph(gm).forward

        boxed = importlib.import_module("functorch.compile").make_boxed_func
        aot_autograd = importlib.import_module("torch._dynamo.backends.common").aot_autograd

        def compiler(gm: Any, inputs: Any) -> Any:
            return boxed(self.add_enhanced_timing_to_graph(gm).forward)

        return cast(Callable[..., Any], aot_autograd(fw_compiler=compiler, bw_compiler=compiler))

    @overload
    def compile(self, f_py: F, autograd: bool = True) -> F: ...

    @overload
    def compile(self, f_py: None = None, autograd: bool = True) -> Callable[[F], F]: ...

    def compile(self, f_py: Optional[F] = None, autograd: bool = True) -> Union[F, Callable[[F], F]]:
        """Decorator: compiles the function, with events for its operators; unchanged if nothing is recorded."""
        if f_py is None:
            return lambda function: self.compile(function, autograd)
        if not self._source.enabled() or not _recording.wanted():
            return f_py
        return cast(F, _torch().compile(f_py, backend=self.backend(autograd)))

    def count_parameters(self, module: Any) -> Optional[int]:
        """How many numbers a module learns; `None` for what is no module."""
        parameters = getattr(module, "parameters", None)
        return sum(part.numel() for part in parameters()) if callable(parameters) else None


dynamo = Dynamo()


def create_backend(
    name: Optional[str] = None,
    epoch: Int = None, step: Int = None, image_idx: Int = None, image_size: Any = None, enable: bool = True,
    autograd: bool = True,
) -> Any:  # fmt: skip
    """A backend: ``torch.compile(model, backend=create_backend(name="resnet50"))``."""
    return Dynamo(name, epoch, step, image_idx, image_size, enable).backend(autograd)
