#!/bin/sh
# Makes a virtual environment with the packages of a requirements file: tools/python-venv.sh DIR REQUIREMENTS
#
# Does nothing if DIR already holds exactly that file's packages. An incomplete environment is made again, since
# the copy of the requirements is written last.
set -eu
directory=$1
requirements=$2

if cmp -s "$requirements" "$directory/requirements.txt" && "$directory/bin/python3" -c '' 2>/dev/null; then
    exit 0
fi
echo "making $directory with the packages of $requirements" >&2
rm -rf "$directory"
mkdir -p "$(dirname "$directory")"
"${PYTHON:-python3}" -m venv "$directory"
"$directory/bin/python3" -m pip install --quiet --disable-pip-version-check --requirement "$requirements"
cp "$requirements" "$directory/requirements.txt"
