#!/bin/sh
# Installs the Python package of this checkout and the drop-ins, as users do, into a virtual environment: tools/python-package.sh DIR [REQUIREMENTS]
# It also installs what their tests need, or the packages of another list. It uses cargo's target directory, so that nothing is built twice.
set -eu
directory=$1
requirements=$(realpath "${2:-$(dirname "$0")/requirements-package.txt}")
cd "$(dirname "$0")/.."

tools/python-venv.sh "$directory" "$requirements"
pip() {
    "$directory/bin/python3" -m pip install --quiet --disable-pip-version-check "$@"
}
pip --force-reinstall --no-deps .
# The sources are copied: building must leave nothing in the tree.
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cp -r compat/dftracer compat/perfflowaspect "$build"
pip --force-reinstall --no-deps "$build/dftracer" "$build/perfflowaspect"
