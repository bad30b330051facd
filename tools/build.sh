#!/bin/sh
# Builds the product into cargo's target directory: tools/build.sh [--python] [--sql] [--sql-only] [--target TRIPLE[.GLIBC]] [--packages]
#
# Only this script knows the packages, their profiles and when to include `--kernel`. It prints the directory with the products. With --target, zig links
# against that glibc (cargo-zigbuild must be on the PATH). --python adds the module `weftline._analysis`, --sql the program weft-sql. --packages builds
# nothing and prints the packages and features as cargo options.
set -eu
cd "$(dirname "$0")/.."

cargo="${CARGO:-cargo} build"
target=
list=
product="--package weftline-cli --package weftline-capi --package weftline-capi-dftracer --package weftline-capi-perfflow"
while [ $# -gt 0 ]; do
    case $1 in
    --python) product="$product --package weftline-pyanalysis" ;;
    --sql) product="$product --package weftline-sql" ;;
    --sql-only) product="--package weftline-sql" ;;
    --packages) list=1 ;;
    --target)
        target=$2
        cargo="cargo-zigbuild zigbuild --target $2"
        shift
        ;;
    *)
        echo "usage: tools/build.sh [--python] [--sql] [--sql-only] [--target TRIPLE[.GLIBC]] [--packages]" >&2
        exit 2
        ;;
    esac
    shift
done
# `--kernel` is built where clang is (WEFT_CLANG names another one); KERNEL=no leaves it out, KERNEL=must fails without clang.
kernel=
if [ "${KERNEL:-yes}" != no ] && command -v "${WEFT_CLANG:-clang}" >/dev/null; then
    kernel="--features weftline-cli/kernel"
elif [ "${KERNEL:-yes}" = must ]; then
    echo "build: ${WEFT_CLANG:-clang}, which compiles the tracepoints of --kernel, is not installed" >&2
    exit 1
fi
case $product in
*weftline-cli*) product="$product $kernel" ;;
esac
if [ -n "$list" ]; then
    case $product in
    *weftline-cli*) product="$product --package weftline-preload" ;;
    esac
    echo "$product"
    exit 0
fi

# shellcheck disable=SC2086  # lists of words
$cargo --locked --release $product >&2
# A versioned triple is cargo-zigbuild's; cargo's directories have it without the version.
triple=${target%%.*}
built=${CARGO_TARGET_DIR:-$PWD/target}${triple:+/$triple}
case $product in
*weftline-cli*)
    # shellcheck disable=SC2086  # lists of words
    $cargo --locked --profile inject --package weftline-preload >&2
    # `weft` finds its library beside itself. By renaming: programs that have the old one loaded keep it.
    if ! cmp -s "$built/inject/libweft_preload.so" "$built/release/libweft_preload.so"; then
        cp "$built/inject/libweft_preload.so" "$built/release/libweft_preload.so.new"
        mv "$built/release/libweft_preload.so.new" "$built/release/libweft_preload.so"
    fi
    ln -sf libweft.so "$built/release/libweft.so.0" # its name for the loader: woven programs run from here as well
    ;;
esac
echo "$built/release"
