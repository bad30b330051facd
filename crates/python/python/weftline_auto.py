"""Lets ``weft run`` record data loaders of programs that say nothing of Weftline.

``weftline-auto.pth`` beside this file has Python run :func:`install` at every start where something records (``WEFT_LIVE``) and nobody said
no (``WEFT_AUTO=0``, which ``weft run --no-auto`` sets). That costs a few microseconds and imports nothing: most programs have no data loader.
``weftline._auto`` is imported when the program has imported one of torch's modules that are recorded.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Optional

# The keys of weftline._auto.PATCHES.
MODULES = ("torch.utils.data.dataloader", "torch.utils.data._utils.fetch")


class Finder:
    """Finds the modules as the other finders do, and has each patched once it is executed."""

    def __init__(self) -> None:
        self.waiting = set(MODULES)

    def find_spec(self, name: str, path: Any = None, target: Optional[ModuleType] = None) -> Optional[ModuleSpec]:
        if name not in self.waiting:
            return None
        # Before the others are asked: one of them may ask everybody again.
        self.waiting.discard(name)
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: Optional[ModuleSpec] = None if find is None else find(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = Loader(spec.loader)  # type: ignore[assignment]
                return spec
        self.waiting.add(name)
        return None


class Loader:
    """Executes a module with its own loader, which it gives back to the module, and has it patched."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        try:
            from weftline import _auto

            _auto.PATCHES[module.__name__](module)
        except Exception:
            # Another torch than those that are known, or half a package: nothing is recorded of its loaders.
            pass


def install() -> None:
    """Waits for torch's modules. Python runs the lines of a .pth file twice where it looks at a directory twice."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())  # type: ignore[arg-type]
