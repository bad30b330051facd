#!/bin/sh
# Runs every test: those of the Python tools, of the Python package and the drop-ins, then the workspace's (nextest where it is
# installed, else `cargo test`). WEFT_BIN must name the built product, WEFT_VENV the environment of tools/setup-test-machine.sh,
# WEFT_PACKAGE that of tools/python-package.sh; extra arguments go to the Rust runner.
set -eu
cd "$(dirname "$0")/.."
: "${WEFT_BIN:?set it to the built weft, or use \`make test\`}"

python=${WEFT_VENV:-target/venv}/bin/python3
"$python" -m unittest discover --start-directory tools/perfetto
"$python" -m unittest discover --start-directory bench

package=${WEFT_PACKAGE:-target/venv-package}/bin/python3
for tests in crates/python/tests compat/tests; do
    (cd "$tests" && PYTHONDONTWRITEBYTECODE=1 "$package" -m pytest -p no:cacheprovider -q)
done

if cargo nextest --version >/dev/null 2>&1; then
    # nextest does not run documentation tests.
    cargo nextest run --workspace --no-fail-fast "$@"
    exec cargo test --workspace --doc --quiet
fi
exec cargo test --workspace --no-fail-fast "$@"
