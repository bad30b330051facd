#!/bin/sh
# The job that the demo traces, as a user would write it: examples/job.sh DIRECTORY
set -eu
here=$(dirname "$0")
"${PYTHON:-python3}" "$here/train/train.py" "$1"
"$1/pack" "$1/checkpoints" "$1/model.pack"
