#!/bin/sh
# Installs a built weft: tools/install.sh WEFT PREFIX
# WEFT is the binary in cargo's target directory; the library it injects lies beside it.
set -eu
weft=$1
prefix=$2

install -D -m 755 "$weft" "$prefix/bin/weft"
install -D -m 755 "$(dirname "$weft")/libweft_preload.so" "$prefix/lib/weftline/libweft_preload.so"

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

echo "installed $prefix/bin/weft; \`weft doctor\` checks this machine"
