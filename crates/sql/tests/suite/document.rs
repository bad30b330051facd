//! `docs/schema.md` is up to date, and its examples run.

use std::path::Path;

use crate::ask::{GOLDEN, Traces, rows, stdout};

fn printed() -> String {
    String::from_utf8(stdout(&["--schema".as_ref()])).expect("UTF-8")
}

#[test]
fn the_document_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema.md");
    let written = std::fs::read_to_string(&path).expect("docs/schema.md");
    assert_eq!(written, printed(), "write it with `weft-sql --schema > docs/schema.md`");
}

#[test]
fn queries_of_the_document_run() {
    let document = printed();
    let queries: Vec<&str> =
        document.split("```sql\n").skip(1).map(|rest| rest.split("\n```").next().expect("closed")).collect();
    assert_eq!(queries.len(), 12, "one per table");
    for (name, _) in GOLDEN {
        let traces = Traces::golden(name);
        for sql in &queries {
            rows(&traces, sql);
        }
    }
}

#[test]
fn functions_give_what_the_document_says() {
    let document = printed();
    let traces = Traces::golden("posix_small");
    let table = document.split("## Functions").nth(1).expect("a section");
    let mut examples = 0;
    for line in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, _, example, result] = cells.as_slice() else { panic!("{line}") };
        let answer = stdout(&[
            "--format".as_ref(),
            "csv".as_ref(),
            traces.path().as_os_str(),
            example.trim_matches('`').as_ref(),
        ]);
        let answer = String::from_utf8(answer).expect("UTF-8");
        assert_eq!(answer.lines().nth(1), Some(*result), "{example}");
        examples += 1;
    }
    assert_eq!(examples, 10);
}

/// What the document says of columns is what the tables have.
#[test]
fn columns_are_those_of_the_document() {
    let document = printed();
    let traces = Traces::golden("hybrid");
    let columns = rows(
        &traces,
        "SELECT table_name AS t, column_name AS c, is_nullable AS n FROM information_schema.columns WHERE table_schema = 'run'",
    );
    let mut found: Vec<String> = columns
        .iter()
        .map(|row| {
            format!(
                "{}.{} {}",
                row["t"].as_str().expect("text"),
                row["c"].as_str().expect("text"),
                row["n"].as_str().expect("text")
            )
        })
        .collect();
    let mut documented = Vec::new();
    for section in document.split("\n## ").skip(1).filter(|section| !section.starts_with("Functions")) {
        let table = section.lines().next().expect("a title");
        for line in section.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = line.split(" | ").collect();
            let nullable = if cells[3].trim() == "yes" { "YES" } else { "NO" };
            documented.push(format!("{table}.{} {nullable}", cells[0].trim_matches(['|', ' ', '`'])));
        }
    }
    found.sort();
    documented.sort();
    assert_eq!(found, documented);
}
