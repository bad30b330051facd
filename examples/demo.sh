#!/bin/sh
# Traces examples/job.sh with `weft run`, reports on it and says what to do next. WEFT names the built weft (see `make demo`).
set -eu
cd "$(dirname "$0")/.."
weft=${WEFT:-target/release/weft}
work=${WEFT_DEMO_DIR:-target/demo}

rm -rf "$work"
mkdir -p "$work/python"
"${CC:-cc}" -O2 -Wall -Wextra -pthread -o "$work/pack" examples/checkpoint/pack.c
# The package that the job is annotated with, without an installation: its sources, and the module that cargo builds.
"${CARGO:-cargo}" build --quiet --locked --release --package weftline-python
cp -r crates/python/python/weftline "$work/python"
cp "$(dirname "$weft")/lib_native.so" "$work/python/weftline/_native.abi3.so"
PYTHONPATH=$(realpath "$work/python")
export PYTHONPATH

"$weft" run -q -o "$work/run" -- examples/job.sh "$work"
"$weft" report --top 5 "$work/run"

cat <<END

Try next:
  $weft report --explain loader-starvation $work/run
  $weft report --html $work/report.html $work/run
  $weft run -- python3 -c 'print(sum(len(line) for line in open("/etc/services")))'
END
