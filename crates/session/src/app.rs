//! The name of a process in its file names.
//!
//! A program has its own name, a script the name of its file and not of its interpreter, a module its dotted path. Workers that
//! Python's `multiprocessing` spawns have a command line that says nothing; they have the name of the script that
//! started them.

use weftline_format::text::from_bytes;

/// Longest name.
const LONGEST: usize = 64;
/// How far up the tree of processes a worker's script is looked for: worker, fork server, script, and one to spare.
const ANCESTORS: usize = 4;

/// What a command line says about its program.
#[derive(Debug, PartialEq, Eq)]
enum Naming {
    Name(String),
    /// A worker of another process.
    Worker,
}

/// The name of the process with this command line; `ancestors` are the command lines of its parent, its parent's parent and so on.
pub fn app_name(command: &[String], exe: &str, ancestors: impl IntoIterator<Item = Vec<String>>) -> String {
    let name = match naming(command, exe) {
        Naming::Name(name) => name,
        Naming::Worker => {
            let named = ancestors.into_iter().take(ANCESTORS).find_map(|command| match naming(&command, "") {
                Naming::Name(name) => Some(name),
                Naming::Worker => None,
            });
            named.unwrap_or_else(|| "spawn".to_owned())
        }
    };
    safe(&name)
}

/// The name of this process.
pub(crate) fn own_name(command: &[String], exe: &str) -> String {
    let mut pid = parent_of("self");
    let ancestors = std::iter::from_fn(|| {
        let at = pid.take()?;
        pid = parent_of(&at.to_string());
        Some(command_of(&at.to_string()))
    });
    app_name(command, exe, ancestors)
}

/// The command line of a process; empty when it cannot be read.
pub(crate) fn command_of(process: &str) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    bytes.split(|byte| *byte == 0).map(|word| from_bytes(word).into_owned()).collect()
}

fn parent_of(process: &str) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may hold anything, parentheses included.
    let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
    (parent > 1).then_some(parent)
}

fn naming(command: &[String], exe: &str) -> Naming {
    let base = |path: &str| path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
    let program = command.first().map(|first| base(first)).filter(|name| !name.is_empty());
    let program = program.unwrap_or_else(|| base(exe));
    // A login shell is called `-bash`.
    let program = program.trim_start_matches('-');
    let interpreter = interpreter(program).or_else(|| interpreter(&base(exe)));
    match interpreter {
        Some("python") => python(command).unwrap_or_else(|| Naming::Name("python".to_owned())),
        Some(other) => {
            let script = command.get(1).filter(|word| !word.starts_with('-')).map(|script| base(script));
            Naming::Name(script.filter(|name| !name.is_empty()).unwrap_or_else(|| other.to_owned()))
        }
        None => Naming::Name(program.to_owned()),
    }
}

/// The interpreter's plain name: `python3.11` and `pypy3` are `python`.
fn interpreter(program: &str) -> Option<&'static str> {
    let plain = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    match plain {
        "python" | "pypy" | "pythonw" => Some("python"),
        _ => ["sh", "bash", "dash", "zsh", "ksh", "perl", "ruby", "node", "julia", "Rscript", "lua"]
            .into_iter()
            .find(|known| *known == plain),
    }
}

/// What a command line of Python runs; nothing for a prompt, a script from stdin, or code on the command line.
fn python(command: &[String]) -> Option<Naming> {
    let mut words = command.iter().skip(1);
    while let Some(word) = words.next() {
        if word == "-" || word == "--help" {
            return None;
        }
        let Some(flags) = word.strip_prefix('-') else { return Some(Naming::Name(script(word))) };
        if flags.starts_with('-') {
            // The only long option with a value of its own.
            if flags == "-check-hash-based-pycs" {
                words.next();
            }
            continue;
        }
        // Flags may be joined; those with a value take the rest of the word, or the next one.
        let Some(at) = flags.find(['m', 'c', 'W', 'X']) else { continue };
        let joined = &flags[at + 1..];
        let value = if joined.is_empty() { words.next()?.as_str() } else { joined };
        match flags.as_bytes()[at] {
            b'm' => return Some(Naming::Name(value.to_owned())),
            b'c' => return value.starts_with("from multiprocessing.").then_some(Naming::Worker),
            _ => {}
        }
    }
    None
}

/// `dir/train.py` is `train`; a package's `__main__.py` is the package.
fn script(path: &str) -> String {
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix("/__main__.py").unwrap_or(path);
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = [".py", ".pyw", ".pyc", ".pyz"].iter().find_map(|end| name.strip_suffix(end));
    stem.filter(|stem| !stem.is_empty()).unwrap_or(name).to_owned()
}

/// A name that is good in a path on any system.
fn safe(name: &str) -> String {
    let kept: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' })
        .take(LONGEST)
        .collect();
    if kept.trim_matches('.').is_empty() { "app".to_owned() } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    fn check(line: &str, ancestors: &[&str], expected: &str) {
        let name = app_name(&words(line), "/opt/bin/thing-1.2", ancestors.iter().map(|line| words(line)));
        assert_eq!(name, expected, "{line}");
    }

    #[test]
    fn programs_and_scripts() {
        check("./simulate -x", &[], "simulate");
        check("", &[], "thing-1.2");
        check("/usr/bin/python3.11 dir/train.py --epochs 3", &[], "train");
        check("python -u -W ignore -Xdev train.py", &[], "train");
        check("python3 -m torch.distributed.run x.py", &[], "torch.distributed.run");
        check("python3 -Im pkg.mod", &[], "pkg.mod");
        check("python -c print(1) x.py", &[], "python");
        check("python", &[], "python");
        check("python - x.py", &[], "python");
        check("python --check-hash-based-pycs never app.py", &[], "app");
        check("/venv/bin/python3 /venv/bin/dlio_benchmark workload=unet3d", &[], "dlio_benchmark");
        check("python pkg/__main__.py", &[], "pkg");
        check("python .py", &[], ".py");
        check("pypy3 a.b.py", &[], "a.b");
        check("bash job.sh 3", &[], "job.sh");
        check("-bash", &[], "bash");
        check("sh -c ls", &[], "sh");
        check("./we/ird\u{e9} x", &[], "ird_");
        check("./...", &[], "app");
    }

    #[test]
    fn workers_are_known_by_their_script() {
        let worker =
            vec!["python".to_owned(), "-c".to_owned(), "from multiprocessing.spawn import spawn_main".to_owned()];
        let name = |ancestors: &[Vec<String>]| app_name(&worker, "", ancestors.iter().cloned());
        assert_eq!(name(&[words("python app.py")]), "app");
        assert_eq!(name(&[worker.clone(), words("python -m pkg.app")]), "pkg.app");
        assert_eq!(name(&[]), "spawn");
        assert_eq!(name(&vec![worker.clone(); 9]), "spawn");
    }

    #[test]
    fn this_process_has_a_name() {
        let command = command_of("self");
        let own = own_name(&command, "");
        assert!(command[0].contains(&own), "{own} {command:?}");
    }
}
