#!/bin/sh
# Installs what the tests need, once: Debian packages (crates/testkit/PACKAGES, one `name  # reason` per line) and a
# virtual environment with pinned PyPI packages (tools/requirements.txt) in WEFT_VENV, default target/venv.
set -eu
cd "$(dirname "$0")/.."

list=crates/testkit/PACKAGES
# binutils: `cargo xtask tidy` reads symbol tables. nodejs: runs Perfetto's engine.
# shellcheck disable=SC2046  # a list of names
tools/debian-packages.sh binutils nodejs python3 python3-venv $([ ! -f "$list" ] || sed 's/#.*//' "$list")

tools/python-venv.sh "${WEFT_VENV:-target/venv}" tools/requirements.txt
