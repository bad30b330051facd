#!/bin/sh
# Traces examples/job.sh with `weft run`, reports on it and says what to do next. WEFT names the built weft (see `make demo`).
set -eu
cd "$(dirname "$0")/.."
weft=${WEFT:-target/release/weft}
work=${WEFT_DEMO_DIR:-target/demo}

rm -rf "$work"
mkdir -p "$work"
"${CC:-cc}" -O2 -Wall -Wextra -pthread -o "$work/pack" examples/checkpoint/pack.c

"$weft" run -o "$work/run" -- examples/job.sh "$work"
"$weft" report "$work/run"

cat <<END

Look further:
  $weft check $work/run        is the trace complete?
  $weft info $work/run         what is in it?
  ui.perfetto.dev          opens $work/run/*.pfw.gz (docs/perfetto.md)
END
