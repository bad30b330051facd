"""The drop-ins have every name of the originals, with the same parameters."""

import sys

import pytest
from support import HERE

sys.path.insert(0, str(HERE / "api"))
from describe import describe  # noqa: E402

# Names of the originals that no program uses: their own aliases and inner parts.
LEFT_OUT = {
    "dftracer": ("dft_fn_orig", "dftracer_orig", "profiler", "CallStackRecord"),
    "perfflowaspect": ("AdviceDispatcher", "ChromeTracingAdvice", "advice_kind"),
}


def described(lines):
    """The list as a dictionary: what is named, and its parameters."""
    entries = {}
    for line in lines:
        module, name, *parameters = line.split(" ")
        entries[module, name] = parameters
    return entries


def optional(parameter):
    return "=" in parameter or parameter.startswith("*")


@pytest.mark.parametrize(
    ("package", "of"), [("dftracer", "dftracer-2.2.0"), ("perfflowaspect", "perfflowaspect-0.1.0")]
)
def test_names_and_parameters_are_those_of_the_original(package, of):
    wanted = described((HERE / "api" / f"{of}.txt").read_text().splitlines())
    found = described(describe(package))
    wrong = []
    for (module, name), parameters in wanted.items():
        if name.split(".")[0].rstrip("()") in LEFT_OUT[package]:
            continue
        ours = found.get((module, name))
        # Further parameters are fine where a call need not name them.
        if ours is None or ours[: len(parameters)] != parameters or not all(map(optional, ours[len(parameters) :])):
            wrong.append((module, name, parameters, ours))
    assert not wrong
    assert len(wanted) > 3


def test_older_generation_has_its_names():
    from dftracer.dbg.logger import dft_fn as dbg_dft_fn
    from dftracer.logger import DFTRACER_ENABLE, ai, compute, dft_fn, dftracer, pipeline  # noqa: F401
    from dftracer.logger.ai import _AI, DFTracerAI, ProfileCategory
    from dftracer.logger.logger import dftracer as again

    assert (
        again is dftracer and dbg_dft_fn is dft_fn and isinstance(ai, _AI) and isinstance(compute.forward, DFTracerAI)
    )
    assert str(ProfileCategory.COMPUTE) == "compute"


def test_drop_ins_can_be_told_from_the_originals():
    import dftracer
    import perfflowaspect

    assert dftracer.__weftline__ is True and perfflowaspect.__weftline__ is True


@pytest.mark.parametrize(
    ("package", "file"),
    [("dftracer", "_version.py"), ("dftracer", "dftracer.cpython-311.so"), ("perfflowaspect", "advice_chrome.py")],
)
def test_a_mixture_with_the_original_is_noticed(package, file, tmp_path, recwarn):
    """Both in one directory would be neither."""
    import importlib.util
    import shutil

    source = importlib.util.find_spec(package).origin
    target = tmp_path / package / "__init__.py"
    target.parent.mkdir()
    shutil.copy(source, target)
    for beside, expected in ((None, 0), (file, 1)):
        if beside:
            (target.parent / beside).touch()
        spec = importlib.util.spec_from_file_location("mixture", target)
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
        warnings = [w for w in recwarn.list if "both installed" in str(w.message)]
        assert len(warnings) == expected
