"""PyTorch's part of the interface: present without PyTorch, right about graphs and profiles that look like its own.

`with_torch/` has the tests with PyTorch itself, which takes gigabytes to install.
"""

import textwrap

from support import annotations_of

# The parts of PyTorch that are used: a graph whose nodes are calls, and a module that runs it.
STAND_IN = """
import contextlib, sys, types

class Node:
    def __init__(self, op, target, args=()):
        self.op, self.target, self.args = op, target, args

class Graph:
    def __init__(self, nodes): self.nodes, self.at = nodes, None
    @contextlib.contextmanager
    def inserting(self, index):
        self.at = index
        yield
        self.at = None
    def inserting_before(self, node): return self.inserting(self.nodes.index(node))
    def inserting_after(self, node): return self.inserting(self.nodes.index(node) + 1)
    def call_function(self, target, args=()):
        node = Node("call_function", target, args)
        self.nodes.insert(self.at, node)
        return node
    def lint(self): pass

class Linear:
    def __call__(self, x): return x * 2

class GraphModule:
    def __init__(self):
        self.fc = Linear()
        x = Node("placeholder", "x")
        linear = Node("call_module", "fc", (x,))
        relu = Node("call_function", max, (linear, 0))
        method = Node("call_method", "bit_length", (relu,))
        self.graph = Graph([x, linear, relu, method, Node("output", "output", (method,))])
        self.compiled = None
    def get_submodule(self, name): return getattr(self, name)
    def recompile(self): self.compiled = list(self.graph.nodes)
    def forward(self, x):
        values = {}
        for node in self.compiled:
            args = [values[arg] if isinstance(arg, Node) else arg for arg in node.args]
            if node.op == "placeholder": values[node] = x
            elif node.op == "output": return args[0]
            elif node.op == "call_module": values[node] = getattr(self, node.target)(*args)
            elif node.op == "call_method": values[node] = getattr(args[0], node.target)(*args[1:])
            else: values[node] = node.target(*args)

torch = types.ModuleType("torch")
torch.is_grad_enabled = lambda: True
torch.compile = lambda function, backend: backend(GraphModule(), [])
sys.modules["torch"] = torch
"""


def test_interface_is_there_without_torch(runner):
    done = runner.dftracer(
        """
        import sys
        sys.modules["torch"] = None
        from dftracer.python import Dynamo, create_backend, dft_fn, dftracer, dynamo
        from dftracer.python.torch import trace_handler
        import dftracer.dynamo, dftracer.python.dbg.torch.profiler
        dftracer.initialize_log() if hasattr(dftracer, "initialize_log") else None
        for use in (create_backend, lambda: Dynamo().compile(len), lambda: Dynamo().backend()):
            try: use()
            except ImportError as error: print(error)
        @dynamo
        def decorated(): return 1
        assert decorated() == 1
        """
    )
    assert done.stdout.splitlines() == [done.stdout.splitlines()[0]] * 3 and "pip install torch" in done.stdout


def test_operators_of_a_graph_are_told(runner):
    runner.dftracer(
        STAND_IN
        + textwrap.dedent(
            """
            from dftracer.python import Dynamo, create_backend, dftracer, dynamo
            dftracer.initialize_log()
            @Dynamo(name="model", epoch=1, step=2).compile(autograd=False)
            def model(x): pass
            assert model(5) == 4
            other = torch.compile(None, backend=create_backend(autograd=False))
            assert other(-5) == 0
            @Dynamo(enable=False).compile
            def alone(x): return x
            assert alone(7) == 7
            """
        )
    )
    expected = [
        ("module.Linear.fc", "call_module", "fc"),
        ("function.max", "call_function", str(max)),
        ("method.bit_length", "call_method", "bit_length"),
    ]
    found = annotations_of(runner.events(), "dynamo")
    values = [{"epoch": 1, "step": 2}] * 3 + [{}] * 3
    assert found == [
        ("dynamo", name, {**given, "op_type": kind, "target": target, "grad_enabled": 1})
        for (name, kind, target), given in zip(expected * 2, values)
    ]


def test_events_of_a_profile_are_told(runner):
    runner.dftracer(
        """
        import time
        from types import SimpleNamespace as Thing
        from dftracer.python import dftracer, dft_fn
        from dftracer.python.torch import trace_handler
        dftracer.initialize_log()
        class Device:
            def __init__(self, name, value): self.name, self.value = name, value
            def __str__(self): return "DeviceType." + self.name
        cpu, cuda = Device("CPU", 0), Device("CUDA", 1)
        def event(name, start, end, thread=1, device=cpu, parent=None, shapes=()):
            return Thing(name=name, time_range=Thing(start=start, end=end), thread=thread, device_type=device,
                         cpu_parent=parent, cpu_time_total=end - start, is_remote=False, cpu_memory_usage=2048,
                         device_memory_usage=16, input_shapes=list(shapes))
        begin = time.time_ns()
        time.sleep(0.02)
        step = event("ProfilerStep*", 1000, 11000)
        profile = Thing(profiler=Thing(kineto_results=Thing(trace_start_ns=lambda: begin)), events=lambda: [
            step, event("aten::linear", 2000, 4500, parent=step, shapes=[[8, 64], [64, 64], [64]]),
            event("backward", 3000, 6000, thread=2, parent=step),
            event("kernel", 3500, 12000, device=cuda, parent=step)])
        with dft_fn("C", "handler"): trace_handler(profile)
        print(begin)
        """
    )
    events = runner.events(cat="PP")
    assert [(event["ph"], event["name"]) for event in events if event["ph"] in "Xb"] == [
        ("X", "ProfilerStep*"),
        ("X", "aten::linear"),
        ("b", "backward"),
        ("b", "kernel"),
    ]
    linear = next(event for event in events if event["name"] == "aten::linear")
    assert abs(linear["dur"] - 2500) <= 3
    common = {"cpu_memory": 2048, "device_memory_usage": 16, "is_remote": 0}
    expected = {"device": 0, "input_size": 5, "total_cpu_percent": 25.0, "input_shapes": "[[8, 64], [64, 64], [64]]"}
    assert linear["args"] == {**common, **expected}
