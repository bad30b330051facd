//! Short names of programs: `python3 train.py`, `bash run.sh`, `java -jar app.jar`, `ffmpeg`.

/// How an interpreter gets its program.
struct Interpreter {
    /// What the names of its executables begin with.
    names: &'static [&'static str],
    /// Options that name what is run, behind which it stands.
    runs: &'static [&'static str],
    /// Options that have a value of their own behind them.
    with_value: &'static [&'static str],
    /// Options behind which the program itself stands, which is no name.
    inline: &'static [&'static str],
}

const INTERPRETERS: [Interpreter; 4] = [
    Interpreter {
        names: &["python", "pypy"],
        runs: &["-m"],
        with_value: &["-W", "-X", "--check-hash-based-pycs"],
        inline: &["-c"],
    },
    Interpreter {
        names: &["java"],
        runs: &["-jar", "-m", "--module"],
        with_value: &["-cp", "-classpath", "--class-path", "-p", "--module-path"],
        inline: &[],
    },
    Interpreter {
        names: &["bash", "sh", "dash", "zsh", "ksh"],
        runs: &[],
        with_value: &["-o", "-O", "--rcfile", "--init-file"],
        inline: &["-c"],
    },
    Interpreter {
        names: &["perl", "ruby", "node", "Rscript", "julia", "lua", "php", "deno"],
        runs: &[],
        with_value: &["-I", "-r", "--require"],
        inline: &["-e", "-E", "--eval", "-p", "--print"],
    },
];

/// The label of a program by its command line; where there is none, by its executable, and else by what it calls itself.
pub fn label(command: &[String], executable: &str, name: &str) -> String {
    let Some((first, rest)) = command.split_first().filter(|(first, _)| !first.is_empty()) else {
        return if executable.is_empty() { name.to_owned() } else { base(executable).to_owned() };
    };
    // A login shell is called `-bash`.
    let program = base(first.strip_prefix('-').unwrap_or(first));
    let plain = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let Some(known) = INTERPRETERS.iter().find(|known| known.names.contains(&plain)) else { return program.to_owned() };
    let mut words = rest.iter().map(String::as_str);
    while let Some(word) = words.next() {
        // `-cx`, `-ec`: short options together.
        let bundled = known.inline.iter().any(|option| {
            let short = option.strip_prefix('-').filter(|short| short.len() == 1);
            short.is_some_and(|short| word.starts_with('-') && !word.starts_with("--") && word.ends_with(short))
        });
        if known.runs.contains(&word) {
            return words.next().map_or_else(|| program.to_owned(), |what| format!("{program} {word} {}", base(what)));
        } else if bundled || known.inline.contains(&word) {
            return format!("{program} {word}");
        } else if known.with_value.contains(&word) {
            words.next();
        } else if !word.starts_with('-') && !word.starts_with('+') {
            return format!("{program} {}", base(word));
        }
    }
    program.to_owned()
}

/// The last part of a path.
fn base(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, expected: &str) {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        assert_eq!(label(&words, "/usr/bin/exe", "name"), expected, "{command}");
    }

    #[test]
    fn programs_are_named_as_people_do() {
        check("/usr/bin/ffmpeg -i a.mp4 b.mp4", "ffmpeg");
        check("/opt/bin/python3 /home/me/train.py --lr 1", "python3 train.py");
        check("python3.11 -u -W ignore -m torch.distributed.run x.py", "python3.11 -m torch.distributed.run");
        check("python3 -c print(1)", "python3 -c");
        check("python3 -Bc print(1)", "python3 -Bc");
        check("python3", "python3");
        check("bash ./run.sh a b", "bash run.sh");
        check("sh -c make", "sh -c");
        check("bash -ec make", "bash -ec");
        check("-bash", "bash");
        check("java -Xmx1g -cp a.jar:b.jar org.x.Main --port 1", "java org.x.Main");
        check("java -jar /opt/app.jar", "java -jar app.jar");
        check("perl -I lib tool.pl", "perl tool.pl");
        check("node --max-old-space-size=4096 server.js", "node server.js");
        check("pythonic x.py", "pythonic");
        check("", "exe");
        assert_eq!(label(&[], "", "pt_data_worker"), "pt_data_worker");
    }
}
