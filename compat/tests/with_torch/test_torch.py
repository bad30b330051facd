"""The same with PyTorch itself: `compat/tests/run.sh VENV with_torch`, in an environment that has it."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))
from support import Runner, annotations_of  # noqa: E402

HEAD = """
import torch
from dftracer.python import dftracer, dft_fn, dynamo, Dynamo, create_backend
log = dftracer.initialize_log()
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 3)
    def forward(self, x): return torch.nn.functional.relu(self.fc(x)).sum()
model, x = Model(), torch.randn(2, 4)
"""

CASES = {
    "autograd": (
        """
        compiled = torch.compile(model, backend=create_backend(name="m", epoch=1, step=2))
        out = compiled(x)
        assert torch.allclose(out, model(x))
        out.backward()
        """,
        {"function.addmm.default", "function.relu.default", "function.sum.default", "function.mm.default"},
    ),
    "forward alone": (
        """
        compiled = torch.compile(model, backend=create_backend(autograd=False))
        assert torch.allclose(compiled(x), model(x))
        """,
        {"function.linear", "function.relu", "method.sum"},
    ),
    "decorator, twice": (
        """
        class Decorated(Model):
            @dynamo.compile
            def forward(self, x): return self.fc(x).tanh()
        @Dynamo(step=1).compile(autograd=False)
        def product(a, b): return a @ b + 1
        assert Decorated()(x).shape == (2, 3)
        assert product(torch.ones(2, 2), torch.ones(2, 2)).sum() == 12
        """,
        {"function.addmm.default", "function.tanh.default", "function.matmul", "function.add"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_operators_of_a_model(case, tmp_path):
    import textwrap

    body, expected = CASES[case]
    runner = Runner(tmp_path)
    runner.dftracer(HEAD + textwrap.dedent(body), timeout=600)
    found = annotations_of(runner.events(), "dynamo")
    assert expected <= {name for _, name, _ in found}
    assert all(args["grad_enabled"] in (0, 1) for _, _, args in found)


def test_profile_of_a_model(tmp_path):
    runner = Runner(tmp_path)
    runner.dftracer(
        HEAD
        + """
from torch.profiler import ProfilerActivity, profile, schedule
from dftracer.python.torch import trace_handler
steps = schedule(wait=1, warmup=1, active=2, repeat=1)
options = dict(schedule=steps, on_trace_ready=trace_handler, record_shapes=True, profile_memory=True)
with dft_fn("C", "training"), profile(activities=[ProfilerActivity.CPU], **options) as p:
    for _ in range(5):
        model(x).backward()
        p.step()
""",
        timeout=600,
    )
    (training,) = runner.events(cat="C")
    events = [event for event in runner.events(cat="PP") if event["ph"] == "X"]
    assert sum(event["name"] == "ProfilerStep*" for event in events) == 2
    assert {"aten::linear", "aten::relu"} <= {event["name"] for event in events}
    for event in events:
        assert training["ts"] <= event["ts"] and event["ts"] + event["dur"] <= training["ts"] + training["dur"]
