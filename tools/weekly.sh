#!/bin/bash
# Runs tests that take long and seldom fail: tools/weekly.sh [--update]   (`make weekly`)
#
# Lints of weft-sql, all majors of LLVM, programs that take long to install (Java, Go, Firefox), the wheels in every Python on the machine, the relocatable tarball in a Debian 11 chroot,
# DFTracer's own tests, the fuzz targets for a minute each, Perfetto's own engine over a fresh trace, imports beside the readers of their formats, data loaders of torch itself, accelerator utilisation beside DLIO's own summary,
# 2,000 kills at random moments. --update writes its tables into docs/reliability.md, with the date.
set -uo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tools/stages.sh
. tools/stages.sh

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR=$target

setup() {
    WEFT_VENV=$target/venv tools/setup-test-machine.sh --weekly
    cargo fuzz --version >/dev/null 2>&1 || cargo install --locked cargo-fuzz
}

# libFuzzer needs unstable flags of the compiler; the pinned stable one has them behind this variable.
fuzz() {
    local name
    for name in fuzz/fuzz_targets/*.rs; do
        name=$(basename "$name" .rs)
        RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir fuzz --target-dir "$target/fuzz" "$name" "$target/fuzz-corpus/$name" -- \
            -max_total_time="${FUZZ_SECONDS:-60}" -rss_limit_mb=4096 -print_final_stats=1 || return
    done
}

perfetto() {
    WEFT=$target/release/weft examples/demo.sh && tools/perfetto/check.sh "$target"/demo/run/*.pfw.gz
}

# Imports beside the readers of their formats: PyDarshan, Perfetto's engine, OpenTelemetry's SDK.
imports() {
    local venv=$target/venv-import
    tools/python-venv.sh "$venv" tools/darshan/requirements.txt &&
        "$venv/bin/python3" tools/darshan/compare.py --quiet --weft "$target/release/weft" &&
        tools/python-venv.sh "$venv-otlp" tools/otlp/requirements.txt &&
        "$venv-otlp/bin/python3" tools/otlp/compare.py "$target/release/weft" &&
        "$target/venv/bin/python3" tools/perfetto/compare_import.py "$target/release/weft"
}

# torch itself where the everyday tests have a stand-in for its data loader.
torch() {
    tools/python-package.sh "$target/venv-torch" tools/requirements-torch.txt &&
        env --chdir=crates/python/tests WEFT_BIN="$target/release/weft" WEFT_TORCH_PYTHON="$target/venv-torch/bin/python3" PYTHONDONTWRITEBYTECODE=1 \
            "$target/venv-torch/bin/python3" -m pytest -p no:cacheprovider -q test_auto.py
}

# DLIO without what it asks for (tools/dlio/requirements.txt says why).
dlio() {
    local python=$target/venv-dlio/bin/python3
    tools/python-package.sh "$target/venv-dlio" tools/dlio/requirements.txt &&
        "$python" -m pip install --quiet --disable-pip-version-check --no-deps --requirement tools/dlio/benchmark.txt &&
        "$python" tools/dlio/check.py --weft "$target/release/weft" --work "$target/dlio"
}

# Corpora are kept: what a week has found, the next one begins with.
corpora() {
    local name
    for name in fuzz/fuzz_targets/*.rs; do mkdir -p "$target/fuzz-corpus/$(basename "$name" .rs)"; done
}

stages_begin "$target/weekly" /dev/null
corpora
stage setup setup
stage build make --no-print-directory build
stage sql make --no-print-directory check-sql
stage llvm env WEFT_WEAVE_MAJORS="$(tools/weave.sh --majors)" make --no-print-directory test-weave
stage programs make --no-print-directory test-weekly
stage wheels make --no-print-directory wheels
stage dist make --no-print-directory check-dist
stage conform make --no-print-directory conformance
stage fuzz fuzz
stage perfetto perfetto
stage imports imports
stage torch torch
stage dlio dlio
stage soak make --no-print-directory soak SOAK_ARGS="${1:-}"
summary=$(stages_end)
failed=$?
printf '%s\n' "$summary"

if [ "${1:-}" = --update ]; then
    # shellcheck disable=SC2016  # a fence of Markdown
    printf 'Run on %s at %s:\n\n```text\n%s\n```\n' "$(date +%Y-%m-%d)" "$(git rev-parse --short=9 HEAD)" "$summary" |
        tools/update-block.py docs/reliability.md weekly
fi
exit "$failed"
