//! Runtimes that take long to install and seldom break: a Java VM, Go with C. `make weekly` runs these tests, and those of other modules with
//! names that begin with `weekly`.

use weftline_testkit::Case;

const JAVA: &str = r#"
import java.nio.file.*;
import java.util.concurrent.*;

public class Work {
    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        for (int i = 0; i < 8; i++) {
            final int n = i;
            pool.submit(() -> Files.write(Path.of("out-" + n), new byte[1000 * (n + 1)]));
        }
        pool.shutdown();
        pool.awaitTermination(60, TimeUnit.SECONDS);
        long sum = 0;
        for (int i = 0; i < 8; i++) sum += Files.readAllBytes(Path.of("out-" + i)).length;
        System.out.println(sum);
    }
}
"#;

#[test]
fn java_virtual_machine() {
    let case = Case::script("java", "java -Xshare:auto -XX:-UsePerfData Work.java").file("Work.java", JAVA);
    let finished = case.limit(std::time::Duration::from_secs(120)).check();
    assert_eq!(finished.traced.stdout, b"36000\n");
    for n in 0..8 {
        assert_eq!(finished.count("write", &format!("out-{n}")).bytes, 1000 * (n + 1), "out-{n}");
    }
}

const GO: &str = r#"
package main

/*
#include <stdio.h>
static long size(const char *path) {
    char block[4096];
    long sum = 0, n;
    FILE *file = fopen(path, "r");
    while ((n = fread(block, 1, sizeof block, file)) > 0) sum += n;
    fclose(file);
    return sum;
}
*/
import "C"

import (
    "fmt"
    "os"
    "sync"
)

func main() {
    var wait sync.WaitGroup
    for i := 0; i < 8; i++ {
        wait.Add(1)
        go func() { defer wait.Done(); os.WriteFile("from-go", make([]byte, 10000), 0644) }()
    }
    wait.Wait()
    fmt.Println(C.size(C.CString("input")))
}
"#;

/// What Go does itself goes past the C library; what its C code does is seen.
#[test]
fn go_with_c() {
    let script = r#"
        export GOCACHE="$PWD/cache" GOPATH="$PWD/path" GOFLAGS=-mod=mod GO111MODULE=off CGO_ENABLED=1
        test -x work || go build -o work work.go
        ./work"#;
    let case = Case::script("go", script).file("work.go", GO).file("input", vec![b'x'; 100_000]);
    let finished = case.ignore(["cache", "path", "work"]).limit(std::time::Duration::from_secs(300)).check();
    assert_eq!(finished.traced.stdout, b"100000\n");
    assert_eq!(finished.count("fread", "input").bytes, 100_000);
}
