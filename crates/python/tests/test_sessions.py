"""Recording without `weft run`: what starts and stops it, and what goes wrong."""

import json
from pathlib import Path

import support


def own(program: str, directory: Path, **variables: str) -> str:
    return support.untraced(program, directory, **variables)


def test_stop_writes_and_start_begins_anew(tmp_path: Path) -> None:
    program = """
        import weftline
        from weftline import trace, span

        @trace
        def work(): pass

        work()
        print(weftline.is_on(), weftline.start("first"), weftline.is_on())
        work()
        held = span("crosses")
        held.__enter__()
        weftline.stop()
        held.__exit__(None, None, None)
        print(weftline.is_on())
        work()
        print(weftline.start("second"))
        work(); work()
        weftline.stop()
        weftline.stop()
    """
    assert own(program, tmp_path) == "False True True\nFalse\nTrue\n"
    count = {place: sum(event.name == "work" for event in support.read(tmp_path / place)) for place in ("first", "second")}
    assert count == {"first": 1, "second": 2}


def test_a_new_run_is_named_as_others_are(tmp_path: Path) -> None:
    own("import weftline; weftline.start(); weftline.instant('here')", tmp_path)
    (run,) = (tmp_path / "weft-runs").iterdir()
    assert run.name.split("-")[1] == "program.py"
    assert [event.name for event in support.read(run) if event.name == "here"] == ["here"]
    manifest = json.loads((run / "run.json").read_text())
    assert manifest["command"][-1] == "program.py"


def test_calls_of_the_library_are_recorded_too(tmp_path: Path) -> None:
    program = """
        import weftline
        weftline.start("run", io={io})
        with weftline.span("writes"):
            with open("data", "wb") as file:
                file.write(b"x" * 1000)
    """
    own(program.format(io=True), tmp_path / "with")
    own(program.format(io=False), tmp_path / "without")
    with_io = support.read(tmp_path / "with/run")
    (span,) = [event for event in with_io if event.name == "writes"]
    inside = {event.name for event in with_io if event.category == "POSIX" and span.holds(event)}
    assert any(name.startswith("open") for name in inside) and "write" in inside and "close" in inside
    without = support.read(tmp_path / "without/run")
    assert [event.name for event in without if event.name == "writes"] and not [e for e in without if e.category == "POSIX"]


def test_under_weft_run_there_is_one_trace(tmp_path: Path) -> None:
    run = support.run("import weftline; print(weftline.start('other')); weftline.instant('here'); weftline.stop()", tmp_path)
    assert run.output == "True\n" and not (run.directory.parent / "other").exists()
    assert run.one("here", "i")


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    said = own("import weftline; print(weftline.start('/proc/none/run')); print('goes on')", tmp_path)
    assert "False\ngoes on\n" in said
    (sentence,) = [line for line in said.splitlines() if line.startswith("weftline: nothing is recorded: ")]
    assert "/proc/none" in sentence


def test_a_library_that_is_missing(tmp_path: Path) -> None:
    said = own("import weftline; print(weftline.start('run'))", tmp_path, WEFT_PRELOAD_LIB="/nowhere/libweft_preload.so")
    assert "False" in said and "/nowhere/libweft_preload.so" in said and said.count("\n") == 2


def test_what_spans_use(tmp_path: Path) -> None:
    program = """
        import weftline
        from weftline import trace, span

        def burn():
            return sum(n * n for n in range(300_000))

        one = trace(burn, )
        all_of_it = trace("always", cpu_mem=True)(burn)
        one(); all_of_it()
        weftline.configure(cpu_mem=True)
        with span("block"): burn()
        trace("wanted")(burn)()
        weftline.configure(cpu_mem=False)
        trace("unwanted")(burn)()
    """
    run = support.run(program, tmp_path)
    for name in ("burn", "unwanted"):
        assert run.one(name).args == {}
    for name in ("always", "block", "wanted"):
        event = run.one(name)
        used = event.args
        assert used["rss_start"] > 1 << 20 and used["rss_end"] > 1 << 20
        # Two readings, one a little after the other; the kernel tells user time in microseconds.
        assert abs(used["cpu_user_ns"] + used["cpu_system_ns"] - used["cpu_ns"]) < 200_000
        assert 1_000_000 < used["cpu_ns"] <= used["process_cpu_ns"] + 1_000_000
        assert used["cpu_ns"] <= event.duration * 1000 + 5_000_000
