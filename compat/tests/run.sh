#!/bin/sh
# Tests the drop-in distributions as users install them.
#
#   compat/tests/run.sh VENV [pytest's arguments]
#
# VENV is a virtual environment with `weftline` in it. Both distributions are built and installed into it; nothing is skipped.
set -eu
venv=${1:?usage: compat/tests/run.sh VENV [pytest arguments]}
shift
here=$(cd "$(dirname "$0")" && pwd)
python=$venv/bin/python
"$python" -c 'import weftline._native' || {
    echo "compat/tests/run.sh: $venv has no weftline: $python -m pip install crates/python" >&2
    exit 2
}
"$python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
# The sources are copied: building must leave nothing in the tree.
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cp -r "$here/../dftracer" "$here/../perfflowaspect" "$build"
"$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$build/dftracer" "$build/perfflowaspect"
cd "$here"
PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest -p no:cacheprovider "$@"
