#!/bin/sh
# Runs every test: those of the Python tools, of the Python package and the drop-ins, then the workspace's (nextest where it is
# installed, else `cargo test`). WEFT_BIN must name the built product, WEFT_VENV the environment of tools/setup-test-machine.sh,
# WEFT_PACKAGE that of tools/python-package.sh; extra arguments go to the Rust runner.
set -eu
cd "$(dirname "$0")/.."
: "${WEFT_BIN:?set it to the built weft, or use \`make test\`}"

# One failure does not hide the others.
failed=0
try() {
    "$@" || failed=1
}

python=${WEFT_VENV:-target/venv}/bin/python3
try "$python" -m unittest discover --start-directory tools/perfetto
try "$python" -m unittest discover --start-directory bench

target=$(dirname "$(dirname "$(realpath "$WEFT_BIN")")")
# All of the workspace in one build, in the profile that shares its dependencies with the product (Cargo.toml); kernel tracepoints are built with
# clang, which setup-test-machine.sh installs. It comes first: examples of the documents and tests of the Python package run the weft-sql made here.
workspace="--workspace --features weftline-cli/kernel"
export WEFT_SQL="$target/release/weft-sql"
if cargo nextest --version >/dev/null 2>&1; then
    # shellcheck disable=SC2086  # a list of words
    try cargo nextest run --cargo-profile bench $workspace --no-fail-fast "$@"
    # nextest does not run documentation tests.
    # shellcheck disable=SC2086  # a list of words
    try cargo test --profile bench $workspace --doc --quiet
else
    # shellcheck disable=SC2086  # a list of words
    try cargo test --profile bench $workspace --no-fail-fast "$@"
fi

# The weaver is a workspace of its own. setup-test-machine.sh installs all of these compilers, so a missing one is an error.
# shellcheck disable=SC2046  # a list of numbers
try tools/weave.sh --test --target "$target" $(tools/weave.sh --majors)

package=$(realpath --no-symlinks "${WEFT_PACKAGE:-target/venv-package}")/bin/python3
export PYTHONDONTWRITEBYTECODE=1
for tests in crates/python/tests compat/tests; do
    try env --chdir="$tests" "$package" -m pytest -p no:cacheprovider -q
done
exit "$failed"
