//! Programs that people use every day, on inputs of their size: none of them gets a finding that asks for action.
//!
//! Findings weigh by time: that of the calls at stake, and its share of the job's. A disk that somebody else keeps busy makes calls of such
//! programs last (`fsync` of git and sqlite3, writes that wait for a full cache), and then the finding is true, here and now. So the programs work in
//! memory, where how long a call lasts is up to them and to the kernel; on a disk they are judged by the live tests.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use weftline_testkit::Scratch;

use super::{judge, serious};
use crate::bad_days::Small;

/// A tree of 2,000 C files in 100 directories, and a text of 38 MB in an order that sorting has to work on.
fn inputs(directory: &Path) {
    let mut state = 1u32;
    let mut next = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state
    };
    let save =
        |path: &Path, text: &str| fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for group in 0..100 {
        let place = directory.join(format!("tree/d{group:02}"));
        fs::create_dir_all(&place).expect("the scratch directory can be written");
        for number in 0..20 {
            let mut text = format!("int value_{group}_{number}(void) {{ return {}; }}\n", next() & 0xfff);
            for _ in 0..80 {
                writeln!(text, "/* {:08x} a line of some length to look at */", next()).expect("a string");
            }
            save(&place.join(format!("f{number:02}.c")), &text);
        }
    }
    let mut text = String::with_capacity(40 << 20);
    for _ in 0..1_000_000 {
        writeln!(text, "{:08x} a line of some length to sort", next()).expect("a string");
    }
    save(&directory.join("big.txt"), &text);
}

/// No finding of medium severity or more; what is said about coverage is a fact and no alarm.
fn check(script: &str, place: &Scratch) {
    inputs(&place.dir("in"));
    let found = judge(&["/bin/bash", "-euc", script], &place.dir("work"), place);
    let alarms: Vec<_> = serious(&found).into_iter().filter(|finding| finding.rule != "lost-coverage").collect();
    assert!(alarms.is_empty(), "{script}: {alarms:#?}");
}

pub(crate) fn in_memory(script: &str) {
    let scratch = Scratch::new("ordinary");
    let memory = Small::tmpfs(&scratch, "1g");
    check(script, &Scratch::within(&memory.path, "ordinary"));
}

pub(crate) fn on_disk(script: &str) {
    check(script, &Scratch::new("ordinary"));
}

/// One test per program, which a function checks.
macro_rules! ordinary_programs {
    ($check:path; $($name:ident: $script:expr;)*) => { $( #[test] fn $name() { $check($script); } )* };
    ($check:path) => { ordinary_programs! { $check;
    git: "export HOME=/nonexistent GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b
        git init -q r; cp -r ../in/tree r/; cd r; git add .; git commit -qm x; git status --short; git log --stat | tail -1; cd ..
        git clone -q r c; git -C c gc -q; git -C c fsck";
    tar: "tar -C .. -cf a.tar in/tree; mkdir o; tar -xf a.tar -C o; tar -C .. -czf b.tar.gz in/tree; tar -tf a.tar | wc -l";
    sort: "sort -S 8M -T . -o sorted ../in/big.txt; uniq -c sorted | wc -l";
    sqlite3: "sqlite3 b.db 'create table t(a integer primary key, b text); with recursive n(x) as (select 1 union all select x+1 from n where x<300000)
        insert into t select x, hex(x*7919) from n; create index i on t(b);'
        for i in $(seq 20); do sqlite3 b.db \"insert into t values($i+1000000,'x')\"; done; sqlite3 b.db 'select count(*) from t; vacuum;'";
    gcc: r#"for i in 1 2 3; do gcc -O2 -c ../in/tree/d0$i/f01.c -o $i.o; done
        printf '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { puts("x"); return 0; }\n' > m.c; gcc -O2 -g m.c -o m; ./m"#;
    make: r#"for i in $(seq 10 50); do cp ../in/tree/d$i/f03.c $i.c; done
        printf 'O=$(patsubst %%.c,%%.o,$(wildcard *.c))\nlib.a: $O\n\tar rc $@ $^\n' > Makefile; make -s -j2; make -s"#;
    cp_mv_rm: "cp -r ../in/tree t; cp ../in/big.txt b; mv t u; rm -r u";
    find: "find ../in/tree -name '*.c' -size +1k -newermt 2000-01-01 | wc -l; find ../in/tree -type f -exec wc -c {} + | tail -1";
    grep: "grep -rc deadbeef ../in/tree | tail -1; grep -c ffff ../in/big.txt";
    gzip: "gzip -kc ../in/big.txt > b.gz; gzip -t b.gz; zcat b.gz | wc -l";
    xz: "head -c 16000000 ../in/big.txt > b; xz -0 b; xz -dc b.xz | wc -c";
    bzip2: "head -c 8000000 ../in/big.txt | bzip2 > b; bzip2 -dc b | wc -c";
    zip: "zip -qr a.zip ../in/tree; mkdir o; cd o; unzip -q ../a.zip";
    python_imports: "/usr/bin/python3 -c 'import json, email, http.client, unittest, asyncio, xml.dom.minidom, decimal, ctypes; print(len(json.dumps(list(range(100000)))))'";
    python_lines: r#"/usr/bin/python3 -c 'o = open("o", "w"); [o.write(f"{i} some line\n") for i in range(500000)]; o.close(); print(sum(map(len, open("o"))))'"#;
    pip_list: "/usr/bin/python3 -m pip list --disable-pip-version-check | wc -l";
    sed: "sed -n 's/line/LINE/gp' ../in/big.txt > o; sed -i 's/LINE/x/' o";
    awk: "awk '{ n[substr($1,1,3)]++ } END { for (k in n) print k, n[k] }' ../in/big.txt | wc -l";
    perl: r#"perl -ne '$n{length($_)}++; END { print join(",", %n), "\n" }' ../in/big.txt"#;
    diff: "cp -r ../in/tree t; echo x >> t/d00/f00.c; diff -r ../in/tree t | wc -l";
    rsync: "rsync -a ../in/ copy; echo x >> copy/tree/d00/f00.c; rsync -a --checksum ../in/ copy";
    cpio: "cd ../in; find tree | cpio -o --quiet > ../work/a.cpio; cd ../work; cpio -id --quiet < a.cpio";
    openssl: "openssl dgst -sha256 ../in/big.txt; openssl enc -aes-128-cbc -k x -pbkdf2 -in ../in/big.txt -out e";
    du_ls: "du -s ../in/tree /usr/include | wc -l; ls -lR ../in/tree | wc -l";
    checksums: "md5sum ../in/big.txt; find ../in/tree -type f | xargs sha1sum > sums; sha1sum -c --quiet sums";
    split_and_cat: "split -b 1M ../in/big.txt p.; cat p.* > again; cmp ../in/big.txt again";
    dd: "dd if=../in/big.txt of=c bs=64k status=none; dd if=c of=/dev/null bs=1M status=none; truncate -s 1M c";
    cut_and_tr: "cut -d' ' -f1 ../in/big.txt | tr a-f A-F | sort -S 64M | uniq -d | wc -l; paste ../in/big.txt ../in/big.txt | tail -1";
    base64: "base64 ../in/big.txt > b; base64 -d b | cmp - ../in/big.txt";
    od: "head -c 8000000 ../in/big.txt | od -An -tx1 > o; wc -l o";
    tac_and_rev: "tac ../in/big.txt > t; rev t > r; tail -n 1000 r | head -1";
    fmt_and_fold: "head -300000 ../in/big.txt | fmt -w 60 > o; fold -w 30 o > p; nl p | tail -1";
    tee: "tee a b < ../in/big.txt > c; cmp a c; comm -12 <(head -1000 a) <(head -1000 b) 2>/dev/null | wc -l";
    factor: "seq 1000000000 1000100000 | factor > f; shuf -n 10 --random-source=../in/big.txt f";
    gxx: r#"printf '#include <algorithm>\n#include <map>\n#include <regex>\nint main() { std::map<int, std::string> m; return std::regex_match("a", std::regex("a")) ? (int)m.size() : 1; }\n' > m.cpp
        g++ -O1 -std=c++17 m.cpp -o m; ./m; objdump -d m > d; nm m | wc -l; strip m"#;
    cmake: r#"mkdir s; cp ../in/tree/d01/*.c s/; printf 'cmake_minimum_required(VERSION 3.10)\nproject(p C)\nfile(GLOB f *.c)\nadd_library(p STATIC ${f})\n' > s/CMakeLists.txt
        cmake -S s -B b > log; cmake --build b >> log; tail -1 log"#;
    jq: r#"awk 'NR <= 100000 { printf "{\"id\": %d, \"text\": \"%s\"}\n", NR, $1 }' ../in/big.txt > r.json; jq -c 'select(.id % 2 == 0) | .text' r.json | wc -l; jq -s 'length' r.json"#;
    ffmpeg: "ffmpeg -nostdin -loglevel error -f lavfi -i testsrc=duration=4:size=320x240:rate=25 -c:v mpeg4 o.avi; ffmpeg -nostdin -loglevel error -i o.avi -vf scale=160:120 p.avi; ls -l p.avi";
    patch: "cp -r ../in/tree a; cp -r ../in/tree b; sed -i 's/return 1/return 2/' b/*/*.c; diff -ru a b > p || true; patch -s -d a -p1 < p; diff -r a b";
    python_pool: r#"/usr/bin/python3 -c 'import multiprocessing as m
with m.Pool(2) as p: print(sum(p.map(hash, [str(i) * 50 for i in range(200000)], 1000)) != 1)'"#;
    python_csv: r#"/usr/bin/python3 -c 'import csv, zipfile, hashlib
rows = [line.split() for line in open("../in/big.txt")][:200000]
csv.writer(open("o.csv", "w")).writerows(rows); print(sum(len(row) for row in csv.reader(open("o.csv"))))
z = zipfile.ZipFile("o.zip", "w", zipfile.ZIP_DEFLATED); z.write("o.csv"); z.close(); print(hashlib.sha256(open("o.zip", "rb").read()).hexdigest())'"#;
    bash_loop: "n=0; while read -r l; do n=$((n+1)); done < <(head -2000 ../in/big.txt); echo $n > n; head -c 20000000 /dev/zero | tr '\\0' x > zeros; wc zeros";
    } };
}
pub(crate) use ordinary_programs;

ordinary_programs! { in_memory }
