//! What was imported into a run, for `weft import` and `weft info`.

use std::fmt::Write as _;

use weftline_import::clock::Clock;
use weftline_import::record::{ImportRecord, SourceRecord};

use crate::terminal::{self, Paint};

/// Files that are named one by one; of more, the rest is a number.
const MOST_UNKNOWN: usize = 5;

/// All imports, some lines each.
pub(crate) fn text(records: &[ImportRecord], paint: Paint) -> String {
    let mut text = String::new();
    for record in records {
        for source in &record.sources {
            put_source(&mut text, source, paint);
        }
        for note in &record.notes {
            let _ = writeln!(text, "{}  {}", paint.dim("     note"), terminal::printable(note));
        }
        if let [first, more @ ..] = record.unknown.as_slice() {
            let named = more
                .iter()
                .take(MOST_UNKNOWN - 1)
                .fold(terminal::printable(first), |text, name| format!("{text}, {}", terminal::printable(name)));
            let rest = record.unknown.len().saturating_sub(MOST_UNKNOWN);
            let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
            let _ = writeln!(text, "{}  {named}{rest}", paint.dim("  unknown"));
        }
    }
    text
}

fn put_source(text: &mut String, source: &SourceRecord, paint: Paint) {
    let events = terminal::counted(source.events, "event", "events");
    let name = terminal::printable(&source.name);
    let _ = writeln!(text, "{}  {name}: {}, {events}", paint.dim(" imported"), source.kind);
    if let Some(clock) = &source.clock {
        let _ = writeln!(text, "{}  {}", paint.dim("    clock"), clock_text(clock));
    }
    for (reason, skipped) in &source.skipped {
        let count = terminal::count(skipped.count);
        let reason = terminal::printable(reason);
        let _ = writeln!(text, "{}  {count} × {reason}, first at byte {}", paint.bad("  skipped"), skipped.first);
    }
}

/// Kind, offset, drift, error, and how it was found.
fn clock_text(clock: &Clock) -> String {
    let offset = clock.offset_ns();
    let sign = if offset < 0 { "-" } else { "+" };
    let offset = match u64::try_from(offset.unsigned_abs()) {
        Ok(0) => "is UTC".to_owned(),
        Ok(ns) => format!("UTC is {sign}{}", terminal::time(ns)),
        Err(_) => "far from UTC".to_owned(),
    };
    let drift = clock.drift_ppm().map(|ppm| format!(", drift {ppm:.3} ppm")).unwrap_or_default();
    let error = clock.error_ns.map(|ns| format!(", ± {}", terminal::time(ns))).unwrap_or_default();
    format!("{} {offset}{drift}{error} ({})", clock.kind.words(), terminal::printable(&clock.how))
}
