#!/bin/sh
# Fetches and unpacks a Debian source package: tools/debian-source.sh NAME DIRECTORY
#
# The sources go to DIRECTORY/NAME. The machine's own package lists stay unchanged: the lists of sources, which few machines
# have, are kept in DIRECTORY/.apt. Does nothing if the sources exist.
set -eu
name=$1
mkdir -p "$2"
directory=$(cd "$2" && pwd)
[ ! -d "$directory/$name" ] || exit 0

apt=$directory/.apt
mkdir -p "$apt/lists/partial" "$apt/work"
# shellcheck source=/dev/null  # says which Debian this is
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-bookworm}")
echo "deb-src http://deb.debian.org/debian $suite main" >"$apt/sources.list"
apt_get() {
    apt-get --quiet=2 -o "Dir::Etc::SourceList=$apt/sources.list" -o "Dir::Etc::SourceParts=/dev/null" \
        -o "Dir::State::Lists=$apt/lists" -o "APT::Sandbox::User=root" "$@"
}
# The lists are large; they are fetched once.
[ -n "$(find "$apt/lists" -name '*_Sources*' -print -quit)" ] || apt_get update
cd "$apt/work"
apt_get source --download-only "$name" >/dev/null
# What upstream released, without Debian's changes: the newest orig archive.
archive=$(find . -name "${name}_*.orig.tar.*" ! -name '*.asc' | sort | tail -n 1)
mkdir unpacked
tar -xf "$archive" -C unpacked
mv unpacked/* "$directory/$name"
rmdir unpacked
