"""Epoch, step, image index and image size of a call, which events of training code carry by themselves.

They are parameters of the function, or else attributes of the object whose method it is.
"""

import inspect
from typing import Any, Dict, List, Optional, Tuple

from dftracer.python.tags import plain

TRAINING = ("epoch", "step", "image_idx", "image_size")


class Seen:
    """What can be seen of one function: made by the decorator, asked by every call."""

    def __init__(self, function: Any) -> None:
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        # Name, position unless it must be named, default.
        self.parameters: List[Tuple[str, Optional[int], Any]] = []
        for position, part in enumerate(parameters):
            if part.name in TRAINING and part.kind not in (part.VAR_POSITIONAL, part.VAR_KEYWORD):
                default = None if part.default is part.empty else part.default
                self.parameters.append((part.name, None if part.kind is part.KEYWORD_ONLY else position, default))
        self._owner = getattr(function, "__self__", None)
        is_method = bool(parameters) and parameters[0].name == "self"
        # Attributes that count where there is no such parameter.
        self.attributes: Tuple[str, ...] = ()
        if is_method or self._owner is not None:
            self.attributes = tuple(name for name in TRAINING if name not in self.names())
        # The class of the latest object, if nothing but the object's own dictionary can have these attributes.
        self._simple: Optional[type] = None

    def names(self) -> Tuple[str, ...]:
        """Parameters that count."""
        return tuple(name for name, _, _ in self.parameters)

    def has_attributes(self, args: Tuple[Any, ...]) -> bool:
        """Whether the object whose method is called may have any of them."""
        whose = self._owner if self._owner is not None else args[0] if args else None
        return type(whose) is not self._simple or not whose.__dict__.keys().isdisjoint(self.attributes)

    def of_call(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        found = self._of_object(args) if self.attributes else {}
        for name, position, default in self.parameters:
            if position is not None and position < len(args):
                found[name] = plain(args[position])
            else:
                found[name] = plain(kwargs.get(name, default))
        return found

    def _of_object(self, args: Tuple[Any, ...]) -> Dict[str, Any]:
        whose = self._owner if self._owner is not None else args[0] if args else None
        kind = type(whose)
        found: Dict[str, Any] = {}
        if kind is self._simple:
            own = whose.__dict__
            for name in self.attributes:
                if name in own:
                    found[name] = own[name]
        else:
            dynamic = any(hasattr(kind, name) for name in ("__getattr__", *self.attributes))
            self._simple = kind if hasattr(whose, "__dict__") and not dynamic else None
            for name in self.attributes:
                try:
                    found[name] = getattr(whose, name, None)
                except Exception:
                    continue
        # A method `step` is no value, and neither is an epoch that has not begun.
        return {name: plain(value) for name, value in found.items() if value is not None and not callable(value)}
