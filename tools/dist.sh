#!/bin/sh
# Makes an archive that runs from any directory on any x86-64 Linux with glibc 2.17: tools/dist.sh OUT
#
# It holds what `make install` and `make sql` install, and the licences of all linked crates. The same commit gives the same list of files, in
# the same order and with the same times. cargo-zigbuild and zig must be on the PATH (`make dist` installs them).
set -eu
cd "$(dirname "$0")/.."
out=$1
triple=x86_64-unknown-linux-gnu

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
name=weftline-$version-x86_64-linux
export KERNEL=must
# Two builds: DataFusion enables features of parquet (tokio, more codecs) that would add 1.4 MB to a weft built with it.
built=$(tools/build.sh --target $triple.2.17)
tools/build.sh --sql-only --target $triple.2.17 >/dev/null

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
umask 022
tools/install.sh "$built/weft" "$stage/$name" >/dev/null
documents=$stage/$name/share/doc/weftline
mkdir -p "$documents"
cp LICENSE-APACHE LICENSE-MIT README.md CHANGELOG.md "$documents"
# shellcheck disable=SC2046  # options of cargo
tools/licences.py $triple $(tools/build.sh --sql --packages) >"$documents/THIRD-PARTY.txt"

mkdir -p "$out"
# An archive is there with its sum, or not at all.
rm -f "$out/$name.tar.gz" "$out/$name.tar.gz.sha256"
tar --directory "$stage" --sort=name --mtime="$(git log -1 --format=%cI)" --owner=0 --group=0 --numeric-owner --format=gnu --create "$name" |
    gzip --no-name --best >"$out/$name.tar.gz.new"
mv "$out/$name.tar.gz.new" "$out/$name.tar.gz"
(cd "$out" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
echo "dist: $out/$name.tar.gz, $(du --si --apparent-size "$out/$name.tar.gz" | cut -f 1)" >&2
"$stage/$name/bin/weft" doctor --parts >&2
