#!/bin/sh
# Tests the archive of tools/dist.sh in a Debian 11 chroot, as root: tools/check-dist.sh DIR
#
# DIR holds the archive; the chroot DIR/bullseye is made once. The test runs everything in the archive: programs, their libraries,
# and a C program that is compiled against them.
set -eu
directory=$(realpath "$1")
root=$directory/bullseye
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

archive=
for archive in "$directory"/weftline-*.tar.gz; do :; done
(cd "$directory" && sha256sum --check --quiet "$(basename "$archive").sha256")

# The mark is written last, so that an incomplete chroot is made again.
if [ ! -f "$root/.complete" ]; then
    rm -rf "$root"
    debootstrap --variant=minbase --include=gcc,libc6-dev,pkg-config bullseye "$root" "$mirror" >"$directory/debootstrap.log" 2>&1 || {
        tail -n 5 "$directory/debootstrap.log" >&2
        exit 1
    }
    touch "$root/.complete"
fi
rm -rf "$root/opt/any" "$root/tmp/try"
mkdir -p "$root/opt/any/place" "$root/tmp/try"
tar --extract --file "$archive" --directory "$root/opt/any/place" --strip-components 1

cat >"$root/tmp/try/program.c" <<'C'
#include <weft.h>

int main(void) {
    WEFT_SPAN(span, "compiled in bullseye");
    weft_int(&span, "answer", 42);
    return 0;
}
C
cat >"$root/tmp/try/inside.sh" <<'INSIDE'
set -eu
cd /tmp/try
ldd --version | head -n 1
weft --version
weft doctor >doctor.txt || { cat doctor.txt; exit 1; }
cat doctor.txt
# These two are in the archive; plugins for clang are not.
if grep -q '^note.*\(weft query\|--kernel\)' doctor.txt; then exit 1; fi

weft run -o run -- sh -c 'cat /etc/os-release > /tmp/x'
weft report run >report.txt
weft check run >check.txt
seen=$(weft query --format csv run "SELECT count(*) > 0 FROM io WHERE path = '/etc/os-release'" | tail -n 1)
[ "$seen" = true ]

export PKG_CONFIG_PATH=/opt/any/place/lib/pkgconfig
# shellcheck disable=SC2046  # options
cc -o program program.c $(pkg-config --cflags --libs weft) -Wl,-rpath,"$(pkg-config --variable=libdir weft)"
weft run -q -o compiled -- ./program
[ "$(weft query --format csv compiled "SELECT count(*) FROM spans WHERE name = 'compiled in bullseye'" | tail -n 1)" = 1 ]
INSIDE

# A mount name space of its own: what is mounted goes with it, also when this is killed.
# shellcheck disable=SC2016  # for the inner shell
unshare --mount sh -euc '
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    exec env -i HOME=/root PATH=/opt/any/place/bin:/usr/sbin:/usr/bin:/sbin:/bin chroot "$1" sh /tmp/try/inside.sh' sh "$root"
echo "check-dist: $(basename "$archive") works in Debian 11"
