//! `import PATH… OUT`: imports files into a new run and prints its record as JSON.
#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use std::path::PathBuf;

use weftline_import::import::{Options, Target, import};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let out = paths.pop().filter(|_| !paths.is_empty()).ok_or("import PATH… OUT")?;
    let options = Options { host: "localhost".to_owned(), ..Options::default() };
    let imported = import(&paths, Target::New(&out), &options)?;
    println!("{}", serde_json::to_string_pretty(&imported.record)?);
    Ok(())
}
