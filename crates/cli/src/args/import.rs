//! The arguments of `weft import`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use weftline_import::config::Zone;

pub(super) const EXAMPLES: &str = "Examples:
  weft import access.log -o runs/web
  weft import results.tar.xz -o runs/unet3d --tz -04:00
  weft import app.log --into runs/nightly --align app.log=+1.25s
  weft import --list";

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("target").args(["output", "into", "list"]).required(true))]
pub(crate) struct ImportArgs {
    /// Files, folders or archives (.tar .zip .gz .xz .zst .bz2)
    #[arg(value_name = "PATH", required_unless_present = "list")]
    pub(crate) paths: Vec<PathBuf>,
    /// Make a new run here
    #[arg(short, long, value_name = "RUN")]
    pub(crate) output: Option<PathBuf>,
    /// Add to a run that exists; importing the same files again adds nothing
    #[arg(long, value_name = "RUN")]
    pub(crate) into: Option<PathBuf>,
    /// List the formats
    #[arg(long)]
    pub(crate) list: bool,
    /// Format of all files, instead of what their content says
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// Time zone of times without one, as an offset from UTC (+01:00, -5)
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub(crate) tz: Option<Zone>,
    /// Formats of your own, and facts about result folders, in TOML (docs/import.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Move the times of files whose name contains SOURCE (may be repeated)
    #[arg(long, value_name = "SOURCE=+TIME", value_parser = parse_align)]
    pub(crate) align: Vec<(String, i64)>,
    /// Host of files that name none [default: this one]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Keep what could be read of a damaged file
    #[arg(long)]
    pub(crate) keep_partial: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `SOURCE=+1.25s` as nanoseconds.
fn parse_align(text: &str) -> Result<(String, i64), String> {
    let wrong = || format!("{text:?} is not SOURCE=+TIME, such as app.log=+1.25s");
    let (source, time) = text.rsplit_once('=').filter(|(source, _)| !source.is_empty()).ok_or_else(wrong)?;
    let (sign, rest) = match time.as_bytes().first() {
        Some(b'-') => (-1, &time[1..]),
        Some(b'+') => (1, &time[1..]),
        _ => (1, time),
    };
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let (number, unit) = rest.split_at(digits);
    let unit_ns: i128 = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err(wrong()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + fraction.len() == 0 || whole.len() > 18 || fraction.len() > 15 || fraction.contains('.') {
        return Err(wrong());
    }
    let scale = 10_i128.pow(fraction.len() as u32);
    let value: i128 = format!("{whole}{fraction}").parse().map_err(|_| wrong())?;
    let ns = sign * value * unit_ns / scale;
    i64::try_from(ns).map(|ns| (source.to_owned(), ns)).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignments() {
        for (text, expected) in [
            ("app.log=+1.25s", Some(("app.log", 1_250_000_000))),
            ("a=b=-3ms", Some(("a=b", -3_000_000))),
            ("x=2h", Some(("x", 7_200_000_000_000))),
            ("x=1.5", None),
            ("=1s", None),
            ("x=s", None),
            ("x=1.2.3s", None),
            ("x=999999999999999999h", None),
        ] {
            let expected = expected.map(|(source, ns): (&str, i64)| (source.to_owned(), ns));
            assert_eq!(parse_align(text).ok(), expected, "{text}");
        }
    }
}
