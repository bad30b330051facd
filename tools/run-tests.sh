#!/bin/sh
# Runs tests: tools/run-tests.sh [STAGE…] [-- ARGUMENT…]   (all stages without a name)
#
# weave   the weaver, a workspace of its own, with the clang of each major that WEFT_WEAVE_MAJORS names (one: the others are tested by `make weekly`)
# rust    the workspace, without the live tests; arguments behind -- go to nextest
# live    tests that depend on the clocks and processes of this machine, one at a time
# python  the Python package, the drop-ins, the tools that are written in Python, and the product against the reference analysis of tools/oracle,
#         result folders with known truth (examples/discs) and other readings of strace's text
# golden  the product against that analysis, and imports against what other tools made of them, over ../shared/golden, which are not part of the tree; arguments after -- go to it, first another directory
# weekly  programs that take long to install; needs tools/setup-test-machine.sh --weekly, and runs only if named
#
# WEFT_BIN must name the built product, WEFT_VENV the environment of tools/setup-test-machine.sh, WEFT_PACKAGE that of tools/python-package.sh. The order
# above is required: examples of the documents use the weaver's plugin; tests of the Python package and tools/oracle use the weft-sql that the stage rust builds.
set -eu
cd "$(dirname "$0")/.."
: "${WEFT_BIN:?set it to the built weft, or use \`make test\`}"
target=$(dirname "$(dirname "$(realpath "$WEFT_BIN")")")
export WEFT_SQL="$target/release/weft-sql"
# Kernel tracepoints are built with clang, which setup-test-machine.sh installs. One build of the whole workspace, in the profile that shares its
# dependencies with the product (Cargo.toml).
workspace="--workspace --features weftline-cli/kernel"

stages=
while [ $# -gt 0 ]; do
    case $1 in
    --)
        shift
        break
        ;;
    *) stages="$stages $1" ;;
    esac
    shift
done

# One failure does not hide the others.
failed=0
try() {
    "$@" || failed=1
}

weave() {
    # setup-test-machine.sh installs these compilers, so a missing one is an error.
    # shellcheck disable=SC2046,SC2086  # a list of numbers
    try tools/weave.sh --test --target "$target" ${WEFT_WEAVE_MAJORS:-$(tools/weave.sh --everyday)}
}

rust() {
    # shellcheck disable=SC2086  # a list of words
    try cargo nextest run --cargo-profile bench $workspace --no-fail-fast "$@"
    # nextest does not run documentation tests.
    # shellcheck disable=SC2086  # a list of words
    try cargo test --profile bench $workspace --doc --quiet
}

live() {
    # shellcheck disable=SC2086  # a list of words
    try cargo nextest run --profile live --cargo-profile bench $workspace --no-fail-fast
}

weekly() {
    # shellcheck disable=SC2086  # a list of words
    try cargo nextest run --profile weekly --cargo-profile bench $workspace --no-fail-fast
}

# pytest's memory of what failed is outside the checkout.
python_tests() {
    tests=$1
    shift
    env --chdir="$tests" PYTHONDONTWRITEBYTECODE=1 "$package" -m pytest -o cache_dir="$(realpath "$target")/pytest/$tests" "$@"
}

python() {
    tools=${WEFT_VENV:-$target/venv}/bin/python3
    try "$tools" -m unittest discover --start-directory tools/perfetto
    try "$tools" -m unittest discover --start-directory bench
    try "$tools" -m unittest discover --start-directory tools/conformance
    try "$tools" -m unittest discover --start-directory tools/dlio
    try "$tools" -m unittest discover --start-directory tools/oracle
    package=$(realpath --no-symlinks "${WEFT_PACKAGE:-$target/venv-package}")/bin/python3
    for tests in crates/python/tests compat/tests; do
        if [ "${NEXTEST_PROFILE:-}" != ci ]; then
            try python_tests "$tests" -q
        elif ! python_tests "$tests" -q; then
            echo "$tests: failed tests are tried once more; what passes now is FLAKY"
            try python_tests "$tests" -v --last-failed --last-failed-no-failures none
        fi
    done
    try "$package" tools/oracle/compare.py
    try "$tools" tools/discs/check.py --weft "$WEFT_BIN"
    try "$tools" tools/strace/compare.py "$WEFT_BIN"
}

golden() {
    package=$(realpath --no-symlinks "${WEFT_PACKAGE:-$target/venv-package}")/bin/python3
    try "$package" tools/oracle/compare.py --golden "$@"
    case ${1:-} in
    --without-golden) places= ;;
    # Another directory of golden traces has the same folders as the usual one.
    ?*) places=$1 ;;
    *) places=../shared/golden ;;
    esac
    tools=${WEFT_VENV:-$target/venv}/bin/python3
    for part in trace_visuals:discs/compare.py tracekit:tracekit/compare.py; do
        set -- --without-golden
        [ -z "$places" ] || set -- --golden "$places/${part%%:*}"
        case $part in
        tracekit*) try "$tools" "tools/${part#*:}" "$WEFT_BIN" "$@" ;;
        *) try "$tools" "tools/${part#*:}" --weft "$WEFT_BIN" "$@" ;;
        esac
    done
}

for stage in ${stages:-weave rust live python}; do
    case $stage in
    rust | golden) "$stage" "$@" ;;
    weave | live | python | weekly) "$stage" ;;
    *)
        echo "tools/run-tests.sh: there is no stage $stage; there are weave, rust, live, python, golden, weekly" >&2
        exit 2
        ;;
    esac
done
exit "$failed"
