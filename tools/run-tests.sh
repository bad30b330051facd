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

# DataFusion is built without optimisation (see `profile.sql` in Cargo.toml), so its crate is tested apart; it comes first, because
# tests of the Python package and the examples of docs/analysis.md use its program.
try cargo test --profile sql --package weftline-sql --quiet
WEFT_SQL=$(dirname "$(dirname "$(realpath "$WEFT_BIN")")")/sql/weft-sql
export WEFT_SQL

# The weaver is a workspace of its own. setup-test-machine.sh installs all of these compilers, so a missing one is an error.
# shellcheck disable=SC2046  # a list of numbers
try tools/weave.sh --test --target "$(dirname "$(dirname "$(realpath "$WEFT_BIN")")")" $(tools/weave.sh --majors)

package=$(realpath --no-symlinks "${WEFT_PACKAGE:-target/venv-package}")/bin/python3
export PYTHONDONTWRITEBYTECODE=1
for tests in crates/python/tests compat/tests; do
    try env --chdir="$tests" "$package" -m pytest -p no:cacheprovider -q
done

# Kernel tracepoints are built with clang, which setup-test-machine.sh installs.
kernel=weftline-cli/kernel
if cargo nextest --version >/dev/null 2>&1; then
    # nextest does not run documentation tests.
    try cargo test --workspace --exclude weftline-sql --features "$kernel" --doc --quiet
    try cargo nextest run --workspace --exclude weftline-sql --features "$kernel" --no-fail-fast "$@"
else
    try cargo test --workspace --exclude weftline-sql --features "$kernel" --no-fail-fast "$@"
fi
exit "$failed"
