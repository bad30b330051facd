#!/bin/sh
# Loads traces in Perfetto's own engine and reports what it sees: tools/perfetto/check.sh [OPTION]… TRACE…
# Makes the virtual environment it needs (target/venv) by itself. `--help` lists the options; see docs/perfetto.md.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$(dirname "$here")")
venv=${WEFT_VENV:-${CARGO_TARGET_DIR:-$root/target}/venv}

if ! command -v node >/dev/null 2>&1; then
    echo "check.sh needs Node to run Perfetto's engine: apt-get install nodejs" >&2
    exit 2
fi
"$root/tools/python-venv.sh" "$venv" "$root/tools/requirements.txt"
exec "$venv/bin/python3" "$here/check_trace.py" "$@"
