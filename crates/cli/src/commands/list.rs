//! `weft list`: the runs of a directory, the newest first.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use weftline_report::head::Head;
use weftline_report::listing::RunRow;
use weftline_report::text;

use crate::args::ListArgs;
use crate::opening;
use crate::rundir;
use crate::terminal::{self, Terminal};

/// Runs the verb.
pub(crate) fn execute(args: &ListArgs, terminal: Terminal) -> anyhow::Result<ExitCode> {
    let newest =
        args.since.map(|since| rundir::now_ns().saturating_sub(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)));
    let (mut rows, mut unread) = (Vec::new(), Vec::new());
    for run in directories(&places(args))? {
        match RunRow::of(&run) {
            Ok(row) => rows.push(row),
            Err(error) => unread.push(error.to_string()),
        }
    }
    if let [first, more @ ..] = unread.as_slice() {
        let more = if more.is_empty() { String::new() } else { format!(", and {} more", more.len()) };
        let first = terminal::printable(first);
        let runs = terminal::counted(unread.len() as u64, "run", "runs");
        writeln!(std::io::stderr(), "weft: {runs} cannot be read: {first}{more}")?;
        if rows.is_empty() {
            return Ok(ExitCode::FAILURE);
        }
    }
    rows.retain(|row| newest.is_none_or(|newest| row.started_ns >= newest) && (!args.failed || row.failed));
    rows.sort_by(|a, b| b.started_ns.cmp(&a.started_ns).then_with(|| a.directory.cmp(&b.directory)));
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &rows)?;
        writeln!(out)?;
    } else if rows.is_empty() {
        writeln!(std::io::stderr(), "weft: no run matches")?;
    } else {
        write!(out, "{}", table(&rows, opening::width(std::io::stdout()), terminal))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Where runs are looked for.
fn places(args: &ListArgs) -> Vec<PathBuf> {
    if args.places.is_empty() { vec![PathBuf::from(rundir::RUNS)] } else { args.places.clone() }
}

/// The runs that were named: themselves, or those in a directory.
fn directories(places: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for place in places {
        if rundir::is_run(place) {
            found.push(place.clone());
            continue;
        }
        let runs = rundir::runs_in(place)?;
        if runs.is_empty() {
            bail!("no run in {}; give a directory that holds runs, or record one with `weft run`", place.display());
        }
        found.extend(runs);
    }
    Ok(found)
}

fn table(rows: &[RunRow], width: usize, terminal: Terminal) -> String {
    let paint = terminal.stdout();
    let heading =
        ["started", "run", "command", "job", "ended", "wall", "read", "written", "verdict"].map(str::to_owned);
    let mut cells = vec![heading.to_vec()];
    for row in rows {
        let command = row.command.join(" ");
        cells.push(vec![
            weftline_format::manifest::utc::minute(row.started_ns),
            terminal::printable(&row.directory.file_name().unwrap_or_default().to_string_lossy()),
            terminal::printable(&command),
            row.job_id.as_deref().map_or_else(|| "-".to_owned(), terminal::printable),
            ended(row),
            if row.wall_ns > 0 { terminal::time(row.wall_ns) } else { "-".to_owned() },
            terminal::bytes(row.read_bytes),
            terminal::bytes(row.written_bytes),
            row.verdict.as_ref().map_or_else(|| "-".to_owned(), |kept| terminal::printable(&kept.headline)),
        ]);
    }
    // Nothing to tell in any row: no column.
    for column in (0..cells[0].len()).rev() {
        if cells[1..].iter().all(|row| row[column] == "-") {
            cells.iter_mut().for_each(|row| drop(row.remove(column)));
        }
    }
    shorten(&mut cells, width);
    let left: Vec<bool> = cells[0].iter().map(|title| !["wall", "read", "written"].contains(&title.as_str())).collect();
    let mut out = String::new();
    for (place, line) in text::align(&cells, &left).into_iter().enumerate() {
        let failed = place.checked_sub(1).is_some_and(|row| rows[row].failed);
        let line = match place {
            0 => paint.dim(&line),
            _ if failed => paint.bad(&line),
            _ => line,
        };
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// Command and verdict share the room that the other columns leave; names of runs, by which they are asked for again, stay whole. Where that leaves
/// too little, columns go that `weft report` and the name of the run tell too.
fn shorten(cells: &mut [Vec<String>], width: usize) {
    const LEAST: usize = 15;
    let widest =
        |cells: &[Vec<String>], column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let place = |cells: &[Vec<String>], title: &str| cells[0].iter().position(|known| known == title);
    let room = |cells: &[Vec<String>]| {
        let flexible = [place(cells, "command"), place(cells, "verdict")];
        let others = (0..cells[0].len()).filter(|column| !flexible.contains(&Some(*column)));
        width.saturating_sub(others.map(|column| widest(cells, column) + 2).sum::<usize>() + 2)
    };
    for titles in [["read", "written"].as_slice(), &["started"], &["job"], &["wall"]] {
        if room(cells) >= 2 * LEAST {
            break;
        }
        for title in titles {
            if let Some(column) = place(cells, title) {
                cells.iter_mut().for_each(|row| drop(row.remove(column)));
            }
        }
    }
    let (room, command, verdict) = (room(cells), place(cells, "command"), place(cells, "verdict"));
    // The verdict leaves the command at least a third.
    let left = room.saturating_sub((room / 3).max(LEAST)).max(LEAST);
    let of_verdict = verdict.map_or(0, |column| widest(cells, column).min(left));
    let of_command = room.saturating_sub(of_verdict).max(LEAST);
    for row in cells {
        command.iter().for_each(|column| row[*column] = text::shorten(&row[*column], of_command));
        // The beginning of a sentence tells most.
        verdict.iter().for_each(|column| row[*column] = text::cut(&row[*column], of_verdict));
    }
}

/// `0`, `3`, `SIGKILL`; `running`.
fn ended(row: &RunRow) -> String {
    if row.open {
        return "running".to_owned();
    }
    let mut ways: Vec<String> = row.exits.iter().map(|exit| Head::ending(*exit)).collect();
    ways.sort();
    ways.dedup();
    if ways.is_empty() { "-".to_owned() } else { ways.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_fit_and_names_stay_whole() {
        let run = "20261118T042707Z-sqlite3-aaf8";
        let (command, verdict) =
            ("python3 train.py --epochs 90 --data /scratch/imagenet".repeat(3), "It waits. ".repeat(20));
        let row = |cells: [&str; 8]| cells.map(str::to_owned).to_vec();
        let heading = ["started", "run", "command", "ended", "wall", "read", "written", "verdict"];
        let line = ["2026-11-18 04:27Z", run, &command, "0", "12.50 s", "97.7 KiB", "1.2 GiB", &verdict];
        for (width, titles) in [
            (200, heading.as_slice()),
            (120, heading.as_slice()),
            (100, &["started", "run", "command", "ended", "wall", "verdict"]),
            (80, &["run", "command", "ended", "wall", "verdict"]),
            // Too narrow for anything.
            (40, &["run", "command", "ended", "verdict"]),
        ] {
            let mut cells = vec![row(heading), row(line)];
            shorten(&mut cells, width);
            assert_eq!(cells[0], titles, "{width}");
            assert!(cells[1].contains(&run.to_owned()) && cells[1].last().unwrap().starts_with("It waits."));
            let lines = text::align(&cells, &vec![true; titles.len()]);
            assert_eq!(lines[1].chars().count() <= width, width > 40, "{width}: {lines:?}");
        }
    }
}
