"""Prints the interface of installed packages, one line each: module, name, parameters.

The lists beside this file were made with it from the originals' wheels::

    pip install dftracer==2.2.0 pydftracer==2.0.6 perfflowaspect==0.1.0
    python describe.py dftracer > dftracer-2.2.0.txt
    python describe.py perfflowaspect > perfflowaspect-0.1.0.txt

`test_api.py` prints the same of the drop-ins and compares.
"""

import ast
import enum
import importlib
import inspect
import sys

MODULES = {
    "dftracer": [
        "dftracer.dftracer",
        "dftracer.dftracer_dbg",
        "dftracer.python",
        "dftracer.python.common",
        "dftracer.python.ai",
        "dftracer.python.dynamo",
        "dftracer.python.env",
        "dftracer.python.logger",
        "dftracer.python.torch",
        "dftracer.python.torch.profiler",
        "dftracer.python.dbg",
        "dftracer.python.dbg.ai",
        "dftracer.python.dbg.logger",
        "dftracer.python.dbg.torch",
        "dftracer.python.dbg.torch.profiler",
    ],
    "perfflowaspect": ["perfflowaspect", "perfflowaspect.aspect"],
}
# Modules in which names of others are there by accident: only what they define themselves counts.
OWN_ONLY = ("dftracer.python.dynamo", "dftracer.python.torch", "dftracer.python.dbg.torch")
# Methods of the language that are part of how an object is used.
SPECIAL = ("__init__", "__call__", "__enter__", "__exit__")


def literal(value):
    if isinstance(value, enum.Enum):
        return value.name
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    # An empty dictionary stands for nothing.
    return "None" if value == {} else "?"


def parameters(function):
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return native_parameters(function)
    words = []
    for part in signature.parameters.values():
        mark = {part.VAR_POSITIONAL: "*", part.VAR_KEYWORD: "**", part.KEYWORD_ONLY: "@"}.get(part.kind, "")
        words.append(mark + part.name + ("" if part.default is part.empty else "=" + literal(part.default)))
    return words


def native_parameters(function):
    """Functions made by pybind11 tell their signature in the first line of their documentation."""
    line = (function.__doc__ or "").splitlines()[0]
    arguments = ast.parse(f"def {line}: ...").body[0].args
    defaults = [None] * (len(arguments.args) - len(arguments.defaults)) + arguments.defaults
    return [
        part.arg + ("" if default is None else "=" + literal(ast.literal_eval(default)))
        for part, default in zip(arguments.args, defaults)
    ]


def describe(package):
    seen = set()
    for module_name in MODULES[package]:
        module = importlib.import_module(module_name)
        for name, value in sorted(vars(module).items()):
            if name.startswith("_") or inspect.ismodule(value) or len(name) == 1:
                continue
            home = getattr(value, "__module__", None) or type(value).__module__
            if module_name.startswith(OWN_ONLY) and not home.startswith(module_name.replace(".dbg", "")):
                continue
            if inspect.isclass(value):
                if not value.__module__.startswith(package):
                    continue
                yield f"{module_name} {name} class"
                # A class is described where it is met first.
                if value in seen:
                    continue
                seen.add(value)
                if issubclass(value, enum.Enum):
                    for member in value:
                        yield f"{module_name} {name}.{member.name} {literal(member.value)}"
                    continue
                for attribute in dir(value):
                    if attribute.startswith("_") and attribute not in SPECIAL:
                        continue
                    found = inspect.getattr_static(value, attribute)
                    if isinstance(found, property):
                        yield f"{module_name} {name}.{attribute} property"
                    elif found is not object.__init__:
                        if callable(getattr(value, attribute)):
                            words = parameters(getattr(value, attribute))
                            yield " ".join([module_name, f"{name}.{attribute}()", *words])
            elif inspect.isroutine(value):
                if (value.__module__ or "").startswith(package):
                    yield " ".join([module_name, f"{name}()", *parameters(value)])
            elif isinstance(value, (bool, int, float, str)):
                yield f"{module_name} {name} {type(value).__name__}"
            elif type(value).__module__.startswith(package):
                yield f"{module_name} {name} {type(value).__name__}"


if __name__ == "__main__":
    for line in describe(sys.argv[1]):
        print(line)
