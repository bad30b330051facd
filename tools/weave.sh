#!/bin/sh
# Builds the weaver (weave/), one plugin for each major of LLVM: tools/weave.sh [--test] [--target DIR] [MAJOR…]
#
# Without majors it builds for every LLVM with an installed llvm-config. A plugin works only with the clang of its major that is linked to the same
# libLLVM; 14 is the oldest. Plugins go to DIR/weave/MAJOR/libweft_weave.so, with a copy libWeavePass.so, the name that
# existing builds load. --test then runs the tests with all of them; each requested major must then have its clang.
# --majors prints the tested majors, which are those of Debian 12; --everyday the one that is tested with each change, Debian's `clang`.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
floor=14
debian="14 15 16 19"

test=
target=${CARGO_TARGET_DIR:-$here/target}
majors=
while [ $# -gt 0 ]; do
    case $1 in
    --test) test=1 ;;
    --target)
        target=$2
        shift
        ;;
    --majors)
        echo "$debian"
        exit 0
        ;;
    --everyday)
        echo "$floor"
        exit 0
        ;;
    -*)
        echo "usage: tools/weave.sh [--test] [--target DIR] [MAJOR…]" >&2
        exit 2
        ;;
    *) majors="$majors $1" ;;
    esac
    shift
done

# The path of a major's llvm-config; LLVM_CONFIG names one in an unusual place.
config_of() {
    for program in "llvm-config-$1" "/usr/lib/llvm-$1/bin/llvm-config" "${LLVM_CONFIG:-llvm-config}"; do
        found=$(command -v "$program" 2>/dev/null) || continue
        case $("$found" --version) in
        "$1".*)
            echo "$found"
            return 0
            ;;
        esac
    done
    return 1
}

if [ -z "$majors" ]; then
    major=$floor
    # Some way beyond what exists today.
    while [ "$major" -lt 40 ]; do
        ! config_of "$major" >/dev/null || majors="$majors $major"
        major=$((major + 1))
    done
    if [ -z "$majors" ]; then
        echo "weave: no llvm-config of LLVM $floor or newer was found; install llvm-N-dev of your clang's major N" >&2
        exit 1
    fi
fi

mkdir -p "$target"
target=$(cd "$target" && pwd)
for major in $majors; do
    if ! config=$(config_of "$major"); then
        echo "weave: llvm-config of LLVM $major was not found; install llvm-$major-dev" >&2
        exit 1
    fi
    # One directory for all: only the plugin itself is built again for each major.
    WEFT_LLVM_CONFIG=$config cargo build --quiet --release --locked --manifest-path "$here/weave/Cargo.toml" --target-dir "$target/weave/build"
    mkdir -p "$target/weave/$major"
    # By renaming: a clang that has the old one loaded keeps it.
    cp "$target/weave/build/release/libweft_weave.so" "$target/weave/$major/libweft_weave.so.new"
    mv "$target/weave/$major/libweft_weave.so.new" "$target/weave/$major/libweft_weave.so"
    ln -sf libweft_weave.so "$target/weave/$major/libWeavePass.so"
    echo "weave: LLVM $("$config" --version): $target/weave/$major/libweft_weave.so" >&2
done

if [ -n "$test" ]; then
    # Unit tests link LLVM, that of the last plugin. As optimised as that: then the shim is not built again.
    WEFT_LLVM_CONFIG=$config WEFT_WEAVE_DIR=$target/weave WEFT_WEAVE_MAJORS=$majors \
        cargo test --release --quiet --locked --manifest-path "$here/weave/Cargo.toml" --target-dir "$target/weave/build"
fi
