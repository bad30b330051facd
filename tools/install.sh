#!/bin/sh
# Installs a built weft: tools/install.sh WEFT PREFIX
# WEFT is the binary in cargo's target directory; the libraries are beside it, headers come from this checkout. At the end it lists the installed
# parts and the commands that add the others.
set -eu
weft=$1
prefix=$2
built=$(dirname "$weft")
root=$(dirname "$0")/..
capi=$root/crates/capi

# Symbols are a quarter of a program's size and are useful only to developers of Weftline.
stripped() {
    install -D -m "$1" "$built/$2" "$prefix/$3"
    ! command -v strip >/dev/null || strip "$4" "$prefix/$3"
}
program() {
    stripped 755 "$1" "bin/$1" --strip-all
}
program weft
# Built by `make sql`, for those who query.
[ ! -x "$built/weft-sql" ] || program weft-sql
install -D -m 755 "$built/libweft_preload.so" "$prefix/lib/weftline/libweft_preload.so"

man="$prefix/share/man/man1"
mkdir -p "$man"
"$weft" man "$man"

completions() {
    mkdir -p "$(dirname "$prefix/share/$2")"
    "$weft" completions "$1" >"$prefix/share/$2"
}
completions bash bash-completion/completions/weft
completions zsh zsh/site-functions/_weft
completions fish fish/vendor_completions.d/weft.fish

# C and C++. Names stay: a static library is linked by them.
library() {
    stripped "$1" "$2" "$3" --strip-debug
}
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml" | head -n 1)
filled() {
    mkdir -p "$(dirname "$prefix/$2")"
    sed "s/@VERSION@/$version/g" "$1" >"$prefix/$2"
}
library 755 libweft.so "lib/libweft.so.$version"
ln -sf "libweft.so.$version" "$prefix/lib/libweft.so.0"
ln -sf libweft.so.0 "$prefix/lib/libweft.so"
library 644 libweft.a lib/libweft.a
for header in weft.h weft.hpp; do
    install -D -m 644 "$capi/include/$header" "$prefix/include/$header"
done
filled "$capi/weft.pc.in" lib/pkgconfig/weft.pc
install -D -m 644 "$capi/cmake/WeftConfig.cmake" "$prefix/lib/cmake/Weft/WeftConfig.cmake"
filled "$capi/cmake/WeftConfigVersion.cmake.in" lib/cmake/Weft/WeftConfigVersion.cmake
install -D -m 644 "$capi/cmake/WeftlineConfig.cmake" "$prefix/lib/cmake/Weftline/WeftlineConfig.cmake"
filled "$capi/cmake/WeftConfigVersion.cmake.in" lib/cmake/Weftline/WeftlineConfigVersion.cmake

# The weaver's plugins, one for each major version of LLVM that `make weave` found; `weft weave --setup` builds others.
for plugin in "$built"/../weave/*/libweft_weave.so; do
    [ -f "$plugin" ] || continue
    major=$(basename "$(dirname "$plugin")")
    install -D -m 755 "$plugin" "$prefix/lib/weftline/weave/$major/libweft_weave.so"
    ln -sf libweft_weave.so "$prefix/lib/weftline/weave/$major/libWeavePass.so"
done

# Drop-ins, in a place of their own: they must not shadow a real DFTracer or PerfFlowAspect.
compat=lib/weftline/compat
library 755 libdftracer_core.so $compat/lib/libdftracer_core.so.4.3.0
ln -sf libdftracer_core.so.4.3.0 "$prefix/$compat/lib/libdftracer_core.so"
ln -sf libdftracer_core.so.4.3.0 "$prefix/$compat/lib/libdftracer_preload.so"
install -D -m 644 "$capi/dftracer/include/dftracer/dftracer.h" "$prefix/$compat/include/dftracer/dftracer.h"
filled "$capi/dftracer/weft-dftracer.pc.in" lib/pkgconfig/weft-dftracer.pc
# Found by CMake where this prefix is named, and nowhere else.
for file in dftracer-config.cmake dftracer-config-version.cmake; do
    install -D -m 644 "$capi/dftracer/cmake/$file" "$prefix/lib/cmake/dftracer/$file"
done
library 755 libperfflow_runtime.so $compat/lib/libperfflow_runtime.so
filled "$capi/perfflow/weft-perfflow.pc.in" lib/pkgconfig/weft-perfflow.pc

echo "installed $prefix/bin/weft; \`weft doctor\` checks this machine"
"$prefix/bin/weft" doctor --parts
