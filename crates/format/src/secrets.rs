//! Masks secrets in command lines before they are stored: manifests, trace files and samples hold only the masked form.
//!
//! [`MASK`] replaces: the next word or the value after `=` of an option with a name that ends in one of [`OPTIONS`] (`--db-password X`, `-token=X`); the value of
//! `NAME=value` whose name ends in one of [`NAMES`]; user and password of an address (`https://user:pass@host`); `-pX` of MySQL's programs; `-u X`
//! of curl; what stands behind `Authorization:`, or behind a header whose name ends as above. A word with spaces, such as the script of `sh -c`,
//! is checked part by part. The environment is never stored. [`Arguments::Omitted`] stores no arguments at all.

use serde::{Deserialize, Serialize};

/// What stands in place of a secret: its length is not told either.
pub const MASK: &str = "***";
/// How the names of options with secrets end; in small letters.
pub const OPTIONS: [&str; 9] =
    ["password", "passwd", "passphrase", "token", "secret", "api-key", "apikey", "secret-key", "auth"];
/// How the names of variables with secrets end; in small letters.
pub const NAMES: [&str; 5] = ["password", "passwd", "token", "secret", "key"];
/// Programs that take a password joined to `-p`, by how their names begin.
pub const MYSQL: [&str; 2] = ["mysql", "mariadb"];

/// How much of command lines is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arguments {
    /// All of them, secrets masked.
    #[default]
    Masked,
    /// None: the first word alone is kept.
    Omitted,
}

impl Arguments {
    /// As `--no-args` says.
    pub fn unless(no_args: bool) -> Arguments {
        if no_args { Arguments::Omitted } else { Arguments::Masked }
    }

    /// A command line as it may be kept.
    pub fn kept(self, words: impl IntoIterator<Item = String>) -> Vec<String> {
        match self {
            Arguments::Masked => masked(words),
            Arguments::Omitted => masked(words.into_iter().take(1)),
        }
    }
}

/// A command line without its secrets.
pub fn masked(words: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut state = State::default();
    words.into_iter().map(|word| state.word(&word)).collect()
}

/// What the parts so far imply for the next one.
#[derive(Default)]
struct State {
    hide_next: bool,
    mysql: bool,
    curl: bool,
}

impl State {
    fn word(&mut self, word: &str) -> String {
        if !word.contains(char::is_whitespace) {
            return self.part(word);
        }
        if std::mem::take(&mut self.hide_next) {
            return MASK.to_owned();
        }
        // A script, or a header: it knows nothing of the words around it.
        let mut inside = State::default();
        let mut hide_rest = false;
        let mut kept = String::with_capacity(word.len());
        for piece in word.split_inclusive(char::is_whitespace) {
            let part = piece.trim_end();
            let space = &piece[part.len()..];
            match () {
                () if part.is_empty() => {}
                () if hide_rest => kept.push_str(MASK),
                () => kept.push_str(&inside.part(part)),
            }
            hide_rest |= part.trim_start_matches(['"', '\'']).eq_ignore_ascii_case("authorization:");
            kept.push_str(space);
        }
        kept
    }

    fn part(&mut self, part: &str) -> String {
        if std::mem::take(&mut self.hide_next) && !part.starts_with("--") {
            return MASK.to_owned();
        }
        let program = part.rsplit('/').next().unwrap_or(part);
        self.mysql |= MYSQL.iter().any(|name| program.starts_with(name));
        self.curl |= program == "curl";
        if let Some(option) = part.strip_prefix('-') {
            return self.option(part, option.trim_start_matches('-'));
        }
        if let Some(header) = part.strip_suffix(':') {
            self.hide_next = ends_in(header, &NAMES);
        }
        match part.split_once('=') {
            Some((name, _)) if ends_in(name.trim_start_matches(['"', '\'']), &NAMES) => format!("{name}={MASK}"),
            _ => without_user(part),
        }
    }

    fn option(&mut self, part: &str, option: &str) -> String {
        match option.split_once('=') {
            Some((name, value)) => {
                // `--env=DB_PASSWORD=x` has a name in its value.
                let inner = value.split_once('=').map_or("", |(inner, _)| inner);
                let kept = match () {
                    () if ends_in(name, &OPTIONS) => name.len(),
                    () if ends_in(inner, &NAMES) => name.len() + 1 + inner.len(),
                    () => return without_user(part),
                };
                return format!("{}={MASK}", &part[..part.len() - option.len() + kept]);
            }
            None => {
                let user = self.curl && matches!(part, "-u" | "--user" | "-U" | "--proxy-user");
                // Behind one dash letters may be joined to their values: `-psecret`.
                let secret = if part.starts_with("--") { ends_in(option, &OPTIONS) } else { OPTIONS.contains(&option) };
                self.hide_next = user || secret;
            }
        }
        let joined = |letter: &str| part.strip_prefix(letter).is_some_and(|rest| !rest.is_empty());
        match () {
            () if self.mysql && !part.starts_with("--") && joined("-p") => format!("-p{MASK}"),
            () if self.curl && !part.starts_with("--") && joined("-u") => format!("-u{MASK}"),
            () => without_user(part),
        }
    }
}

fn ends_in(name: &str, ends: &[&str]) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
    is_name && ends.iter().any(|end| name.ends_with(end))
}

/// Addresses without user and password.
fn without_user(part: &str) -> String {
    let mut kept = String::with_capacity(part.len());
    let mut rest = part;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        kept.push_str(before);
        let end = after.find(['/', '?', '#', '"', '\'', ',']).unwrap_or(after.len());
        let host = match after[..end].rfind('@') {
            Some(user) => {
                kept.push_str(MASK);
                user
            }
            None => 0,
        };
        kept.push_str(&after[host..end]);
        rest = &after[end..];
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::{Arguments, masked};

    /// Words are separated by `|`.
    fn check(given: &str, expected: &str) {
        let found = masked(given.split('|').map(str::to_owned)).join("|");
        assert_eq!(found, expected, "{given}");
    }

    #[test]
    fn secrets_are_masked() {
        for (given, expected) in [
            ("train|--password|hunter2|--epochs|3", "train|--password|***|--epochs|3"),
            ("train|--Password=hunter2", "train|--Password=***"),
            ("train|--db-passwd|x|--auth-token=y|-token|z", "train|--db-passwd|***|--auth-token=***|-token|***"),
            (
                "train|--api-key|x|--api_key=y|--apikey=z|--client-secret|q",
                "train|--api-key|***|--api_key=***|--apikey=***|--client-secret|***",
            ),
            ("train|--auth|--verbose", "train|--auth|--verbose"),
            (
                "env|AWS_SECRET_ACCESS_KEY=abc|HF_TOKEN=hf|db_password=x|PATH=/bin|job",
                "env|AWS_SECRET_ACCESS_KEY=***|HF_TOKEN=***|db_password=***|PATH=/bin|job",
            ),
            ("docker|run|--env=PGPASSWORD=x|-e|PGPASSWORD=y", "docker|run|--env=PGPASSWORD=***|-e|PGPASSWORD=***"),
            ("mysql|-u|me|-psecret|-P|3306", "mysql|-u|me|-p***|-P|3306"),
            ("/usr/bin/mariadb-dump|-psecret", "/usr/bin/mariadb-dump|-p***"),
            ("mkdir|-p|deep/er", "mkdir|-p|deep/er"),
            ("cc|-pthread|-O2", "cc|-pthread|-O2"),
            ("git|clone|https://me:pass@host:8080/x.git", "git|clone|https://***@host:8080/x.git"),
            ("job|--store=redis://:pass@h/0|s3://bucket/a@b", "job|--store=redis://***@h/0|s3://bucket/a@b"),
            (
                "curl|-u|me:pass|-H|Authorization: Bearer abc def|https://x",
                "curl|-u|***|-H|Authorization: *** *** ***|https://x",
            ),
            ("curl|-H|X-Api-Key: abc|-ume:pass", "curl|-H|X-Api-Key: ***|-u***"),
            (
                "sh|-c|mysql -psecret db && HF_TOKEN=x run --token y",
                "sh|-c|mysql -p*** db && HF_TOKEN=*** run --token ***",
            ),
            (
                "python3|train.py|--lr=0.1|--tokenizer|gpt2|key=value|--key|x",
                "python3|train.py|--lr=0.1|--tokenizer|gpt2|key=***|--key|x",
            ),
            ("", ""),
        ] {
            check(given, expected);
        }
    }

    #[test]
    fn arguments_can_be_left_out() {
        let words = || ["/bin/train", "--data", "/home/me"].map(str::to_owned);
        assert_eq!(Arguments::unless(true).kept(words()), ["/bin/train"]);
        assert_eq!(Arguments::unless(false).kept(words()), words());
        assert_eq!(Arguments::Omitted.kept([]), [""; 0]);
    }

    #[test]
    fn what_is_masked_stays_so() {
        let once = masked(["x", "--password", "p q", "-token=1", "a://b@c"].map(str::to_owned));
        assert_eq!(masked(once.clone()), once);
    }
}
