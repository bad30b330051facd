//! `docs/masking.md`: what is masked in command lines, from the masking code's own lists, with examples masked by that code.

use std::fmt::Write as _;

use weftline_format::secrets::{MASK, MYSQL, NAMES, OPTIONS, masked};

/// Command lines with a secret, and some that show the limits. Words are separated by single spaces, except the script of `sh -c`, which is one word.
const EXAMPLES: [&[&str]; 12] = [
    &["train.py", "--db-password", "hunter2", "--epochs", "3"],
    &["train.py", "--auth-token=hunter2", "--lr=0.1"],
    &["train.py", "-token", "hunter2"],
    &["env", "AWS_SECRET_ACCESS_KEY=hunter2", "HF_TOKEN=hunter2", "PATH=/bin", "job"],
    &["docker", "run", "--env=PGPASSWORD=hunter2", "image"],
    &["git", "clone", "https://me:hunter2@host/x.git"],
    &["mysql", "-u", "me", "-phunter2"],
    &["curl", "-u", "me:hunter2", "https://host"],
    &["curl", "-H", "Authorization: Bearer hunter2"],
    &["sh", "-c", "HF_TOKEN=hunter2 run --token hunter2"],
    // Kept as they are.
    &["mkdir", "-p", "deep/er"],
    &["job", "--seed", "hunter2", "hunter2"],
];

/// The document.
pub(super) fn document(generated: &str) -> String {
    let list = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let mut out = format!(
        "# What is masked in command lines\n\n{generated}`run.json`, `run.d/*.json`, trace files and samples hold command lines. Before any of these is \
         written, `{MASK}` replaces what looks like a secret, whatever its length; it cannot be recovered. The environment is never kept. See [security.md](security.md).\n\n"
    );
    let _ = writeln!(out, "| masked | where |\n|---|---|");
    let rows = [
        (
            "the next word, or the value after `=`",
            format!("options with a name that ends in {}; `_` counts as `-`, and case is ignored", list(&OPTIONS)),
        ),
        (
            "the value of `NAME=value`",
            format!("names that end in {}, also after an option (`--env=NAME=value`)", list(&NAMES)),
        ),
        ("user and password of a URL", "`scheme://user:password@host` anywhere in a word".to_owned()),
        ("the rest of a word after `-p`", format!("programs with a name that begins with {}", list(&MYSQL))),
        ("the value of `-u`, `--user`, `-U`, `--proxy-user`", "`curl`".to_owned()),
        (
            "the rest after `Authorization:`, or after a header with a name that ends as above",
            "anywhere in a word with spaces".to_owned(),
        ),
    ];
    for (what, place) in rows {
        let _ = writeln!(out, "| {what} | {place} |");
    }
    let _ = writeln!(
        out,
        "\nA word with spaces in it, such as the script of `sh -c`, is split at the spaces and checked part by part.\n\n## Examples\n\n| given | kept |\n|---|---|"
    );
    for words in EXAMPLES {
        let kept = masked(words.iter().map(|word| (*word).to_owned()));
        let _ = writeln!(out, "| `{}` | `{}` |", words.join(" "), kept.join(" "));
    }
    let _ = writeln!(
        out,
        "\nSecrets in other places are kept: a password as an argument of its own, in the name of a file, or in an annotation of the program. Look at a run \
         before you give it away."
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All examples but the last show a secret that is gone.
    #[test]
    fn examples_show_what_is_done() {
        for words in &EXAMPLES[..EXAMPLES.len() - 1] {
            let kept = masked(words.iter().map(|word| (*word).to_owned())).join(" ");
            assert!(!kept.contains("hunter2"), "{kept}");
        }
        let text = document("");
        assert!(text.lines().all(|line| !line.starts_with('|') || line.ends_with('|')), "rows are whole:\n{text}");
    }
}
