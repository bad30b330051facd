#!/bin/sh
# Installs missing Debian packages: tools/debian-packages.sh NAME…
#
# Quick if all are installed. Needs root only if one is missing. On other systems it does nothing,
# because the names differ there and the caller's next command will show whether something is missing.
set -eu

if ! command -v dpkg-query >/dev/null 2>&1; then
    exit 0
fi

is_installed() {
    dpkg-query --show --showformat '${db:Status-Abbrev}' "$1" 2>/dev/null | grep -q '^ii'
}

missing=
for name in "$@"; do
    # A tool put on the PATH by other means (pyenv, a cluster's modules) is as good as the package of its name.
    is_installed "$name" || command -v "$name" >/dev/null 2>&1 || missing="$missing $name"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
    echo "missing Debian packages:$missing" >&2
    echo "as root: apt-get install$missing" >&2
    exit 1
fi

install_missing() {
    # shellcheck disable=SC2086  # a list of names
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet=2 --no-install-recommends $missing >/dev/null
}
echo "installing Debian packages:$missing" >&2
# The package lists are fetched only when the ones at hand are absent or too old to serve.
if [ -z "$(find /var/lib/apt/lists -name '*_Packages*' -print -quit 2>/dev/null)" ] || ! install_missing 2>/dev/null; then
    apt-get update --quiet=2
    install_missing
fi
