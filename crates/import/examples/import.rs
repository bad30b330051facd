//! `import PATH… OUT`: imports, and prints the record.

use std::path::PathBuf;

use weftline_import::import::{Options, Target, import};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut named: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let out = named.pop().ok_or("PATH… OUT")?;
    let options = Options { host: "host".to_owned(), ..Options::default() };
    let done = import(&named, Target::New(&out), &options)?;
    Ok(serde_json::to_writer_pretty(std::io::stdout().lock(), &done.record)?)
}
