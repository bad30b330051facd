#!/bin/sh
# Installs what the tests need, once: Debian packages (crates/testkit/PACKAGES, one `name  # reason` per line; with --weekly also those of
# PACKAGES.weekly), cargo-nextest, and a virtual environment with pinned PyPI packages (tools/requirements.txt) in WEFT_VENV, default target/venv.
set -eu
cd "$(dirname "$0")/.."

lists=crates/testkit/PACKAGES
[ "${1:-}" != --weekly ] || lists="$lists crates/testkit/PACKAGES.weekly"
# binutils: `cargo xtask tidy` reads symbol tables. nodejs: runs Perfetto's engine.
# shellcheck disable=SC2046,SC2086  # lists of names
tools/debian-packages.sh binutils nodejs python3 python3-venv $(sed 's/#.*//' $lists)
cargo nextest --version >/dev/null 2>&1 || cargo install --locked cargo-nextest

tools/python-venv.sh "${WEFT_VENV:-target/venv}" tools/requirements.txt
