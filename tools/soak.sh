#!/bin/sh
# Soak test: kills processes at random moments and attacks the runs: tools/soak.sh [--update]   (`make soak`)
#
# WEFT_SOAK_KILLS sets the number of kills (2,000 by default; 50 take about a minute). --update writes the table into docs/reliability.md, with the date.
set -eu
cd "$(dirname "$0")/.."
: "${WEFT_BIN:?set it to the built weft, or use \`make soak\`}"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR="$target"
cargo build --quiet --profile bench --package weftline-suite --bin soak --bin scribbler
programs=$target/release
[ -x "$programs/soak" ] || programs=$target/bench
table=$("$programs/soak") && failed=0 || failed=$?
printf '%s\n' "$table"
if [ "${1:-}" = --update ]; then
    printf 'Run on %s at %s:\n\n%s\n' "$(date +%Y-%m-%d)" "$(git rev-parse --short=9 HEAD)" "$table" | tools/update-block.py docs/reliability.md soak
fi
exit "$failed"
