//! `import PATH OUT [ZONE_SECONDS]`: imports a file, folder or archive into a new run and prints what was found, for checks that are written in other languages.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program whose output others read")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weftline_import::import::Target;
use weftline_import::{Options, import};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let ([path, out] | [path, out, _]) = words.as_slice() else {
        eprintln!("usage: import PATH OUT [ZONE_SECONDS]");
        return ExitCode::from(2);
    };
    let zone_seconds = words.get(2).and_then(|zone| zone.parse().ok());
    let options = Options { zone_seconds, host: "unknown".to_owned(), ..Options::default() };
    match import(&[PathBuf::from(path)], Target::New(Path::new(out)), &options) {
        Ok(imported) => {
            let text = serde_json::to_string_pretty(&imported.record).unwrap_or_default();
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
