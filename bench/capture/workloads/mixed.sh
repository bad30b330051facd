#!/bin/sh
# A mixture of ordinary tools over many files: mixed.sh DIRECTORY
# Its trace is irregular (many paths, processes and calls), which is what compression finds hard.
set -eu
work=$1
rm -rf "$work"
mkdir -p "$work/tree"

find /usr/include -maxdepth 2 -name '*.h' -size -64k | sort | head -n 400 >"$work/list"
xargs cp -t "$work/tree" <"$work/list" 2>/dev/null || true # names repeat; the last one wins
find /usr/share -maxdepth 3 -type f -size +1k >"$work/found"
xargs cat <"$work/list" >"$work/all.h"

cd "$work/tree"
git init --quiet .
git -c user.name=bench -c user.email=bench@localhost add .
git -c user.name=bench -c user.email=bench@localhost commit --quiet -m tree
git status --short
git log --oneline | wc -l

"${PYTHON:-python3}" - <<'END'
import ast, json, pathlib, sqlite3, zipfile

files = sorted(pathlib.Path(".").glob("*.h"))
lines = {file.name: len(file.read_bytes().splitlines()) for file in files}
pathlib.Path("lines.json").write_text(json.dumps(lines))
with zipfile.ZipFile("tree.zip", "w") as archive:
    for file in files:
        archive.write(file)
END

cat >hello.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) { return puts("hello") < 0; }
END
for level in 0 1 2; do
    gcc "-O$level" -o hello hello.c
    ./hello
done

tar -cf "$work/tree.tar" .
tar -tf "$work/tree.tar" | wc -l
gzip -kf "$work/tree.tar"
sort "$work/all.h" | uniq -c | sort -rn | head -n 3 >/dev/null
