"""Compares the accelerator utilisation that `weft report` tells with DLIO's own summary: tools/dlio/check.py --weft WEFT --work DIRECTORY

Runs the DLIO benchmark (benchmark.txt), with its DFTracer annotations recorded by the stand-in, under `weft run`, and fails where the two differ by more than
2 % of DLIO's value. Both speak of the same run. DLIO computes by sleeping and divides the time that it was told to sleep; on a busy machine sleeps last longer,
which Weftline sees. Where DLIO's own clock (RANK_output.json) says that they took more than 1 % longer, that time takes the place of the told one, in DLIO's
formula; both values are printed. Needs mpirun, and the environment that tools/weekly.sh makes.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMIT = 0.02
LATE = 0.01

# Name, ranks, what differs from workload/small.yaml.
CASES = [
    ("keeps-up", 1, []),
    # A batch of 8 takes two readers 0.8 s: about a third of the time computes.
    ("starves", 1, ["++workload.reader.preprocess_time=0.1", "++workload.dataset.num_files_train=96"]),
    # Blocks that checkpoints end, and evaluations between the epochs, which are none of training.
    (
        "two-ranks",
        2,
        [
            "++workload.reader.preprocess_time=0.04",
            "++workload.dataset.num_files_train=480",
            "++workload.workflow.checkpoint=True",
            "++workload.checkpoint.checkpoint_folder=checkpoints",
            "++workload.checkpoint.steps_between_checkpoints=15",
            "++workload.checkpoint.model_size=1000000",
            "++workload.workflow.evaluation=True",
            "++workload.dataset.num_files_eval=32",
            "++workload.evaluation.eval_time=0.02",
            "++workload.reader.batch_size_eval=4",
        ],
    ),
]  # fmt: skip


def by_its_clock(outputs):
    """DLIO's value with the time that computing took by DLIO's clock in place of the time that it was told, and how much longer that is."""
    values, told, took = [], 0.0, 0.0
    for output in outputs:
        epochs = [epoch for name, epoch in output.items() if name.isdigit()]
        for epoch in epochs:
            weighed = steps = 0
            for block in (name for name in epoch["au"] if name.startswith("block")):
                # A step is the wait for its batch and computing. The first step of a block counts nowhere, and may have no entry among the waits.
                whole, compute = epoch["proc"][block][1:], epoch["compute"][block][1:]
                waits = epoch["load"][block][len(epoch["load"][block]) - len(whole) :]
                real = sum(whole) - sum(waits)
                steps += 1 + len(whole)
                weighed += (1 + len(whole)) * (epoch["au"][block] * real / sum(compute) if compute else 0)
                told, took = told + sum(compute), took + real
            values.append(weighed / steps)
    return sum(values) / len(values), took / told - 1


def judge(theirs, training, ranks, real=None, late=0.0):
    """Whether the two agree, and what each says. `theirs` is DLIO's percentage, `training` what the report says of training, `real` and `late` what
    `by_its_clock` says."""
    if training is None:
        return False, f"DLIO {theirs:.2f} %, weft report tells nothing"
    ours = 100 * training["accelerator_utilisation"]
    said = f"DLIO {theirs:.2f} %"
    if late > LATE:
        said += f", with its sleeps as long as they were ({100 * late:.1f} % longer than told) {real:.2f} %"
        theirs = real
    apart = abs(ours - theirs) / theirs if theirs > 0 else float("inf")
    steps = f"{training['steps']} steps in {training['blocks']} blocks of {training['processes']} processes"
    return apart <= LIMIT and training["processes"] == ranks, f"{said}, weft {ours:.2f} %: {100 * apart:.2f} % apart; {steps}"


def dlio(ranks, overrides, output):
    """The command that runs DLIO; `output` is where it puts its summary."""
    # It reads its own arguments; the first one says where the module is that stands for TensorFlow.
    start = "import sys; sys.path.append(sys.argv.pop(1)); from dlio_benchmark.main import main; main()"
    program = [sys.executable, "-c", start, str(HERE / "absent")]
    launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader", "-n", str(ranks)] if ranks > 1 else []
    where = [f"hydra.searchpath=[file://{HERE}]", f"hydra.run.dir={output}", f"++workload.output.folder={output}"]
    return [*launcher, *program, "workload=small", *where, *overrides]


def run(command, directory):
    """Runs it; what it prints is shown only where it fails."""
    done = subprocess.run(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout[-4000:]}")


def check(name, ranks, overrides, weft, work):
    """Runs one case; whether the two agree."""
    directory = work / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    run(dlio(1, [*overrides, "++workload.workflow.generate_data=True", "++workload.workflow.train=False"], "generated"), directory)
    run([weft, "run", "--quiet", "-o", "run", "--", *dlio(ranks, overrides, "output")], directory)
    summary = json.loads((directory / "output/summary.json").read_text())
    theirs = summary["metric"]["train_au_mean_percentage"]
    report = subprocess.run([weft, "report", "--json", "run"], cwd=directory, check=True, stdout=subprocess.PIPE).stdout
    outputs = [json.loads((directory / f"output/{rank}_output.json").read_text()) for rank in range(ranks)]
    agrees, words = judge(theirs, json.loads(report)["job"].get("training"), ranks, *by_its_clock(outputs))
    print(f"{name}: {words}", flush=True)
    return agrees


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("cases", nargs="*", choices=[[], *(case[0] for case in CASES)])
    options = parser.parse_args()
    wanted = [case for case in CASES if not options.cases or case[0] in options.cases]
    wrong = [case[0] for case in wanted if not check(*case, options.weft.resolve(), options.work.resolve())]
    if wrong:
        print(f"not within {100 * LIMIT:.0f} % of DLIO's own summary: {', '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
