//! The table `damage`.

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::Result;

use super::gathered::{Cell, Sheet};
use super::vocabulary::Vocabulary;

pub(super) fn gather(words: &Vocabulary, mut sheet: Sheet) -> Result<RecordBatch> {
    for source in words.run.sources() {
        let file = source.path.display().to_string();
        let mut row = |place: &str, what: &str, count: u64, lost: u64, note: &str| {
            sheet.add(&[
                Cell::Text(&file),
                Cell::Text(&source.dialect),
                Cell::some(place),
                Cell::Text(what),
                Cell::from(count),
                Cell::from(lost),
                Cell::some(note),
            ])
        };
        if let Some(why) = &source.unreadable {
            row("", "unreadable", 1, 0, why)?;
        }
        for flaw in &source.damage {
            row(&flaw.place, &flaw.what, 1, flaw.lost_bytes, &flaw.note)?;
        }
        // The index keeps the first flaws in words and counts the others.
        let listed = source.damage.len() as u64;
        if source.flaws > listed {
            let lost: u64 = source.damage.iter().map(|flaw| flaw.lost_bytes).sum();
            let note = "further flaws, not listed one by one";
            row("", "further flaws", source.flaws - listed, source.lost_bytes.saturating_sub(lost), note)?;
        }
    }
    sheet.finish()
}
