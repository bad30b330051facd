//! The end of a part's file of rows: the content of its row groups, and where their pages are.
//!
//! ```text
//! length of the next part    8 bytes
//! Meta                       JSON
//! for each group and column: offset of the chunk (8 bytes), number of its pages (4), and for each page its length (4) and its sum (8)
//! ```

use super::page::PAGE_ROWS;
use super::{Meta, bounds};
use crate::column::Column;

/// The pages of one column of a row group, one behind the other. None: no row has a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunk {
    pub offset: u64,
    pub pages: Vec<PageEntry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageEntry {
    pub len: u32,
    pub sum: u64,
}

pub(super) fn encode(meta: &Meta, chunks: &[Vec<Chunk>]) -> Vec<u8> {
    let text = serde_json::to_vec(meta).unwrap_or_default();
    let mut out = (text.len() as u64).to_le_bytes().to_vec();
    out.extend_from_slice(&text);
    for chunk in chunks.iter().flatten() {
        out.extend_from_slice(&chunk.offset.to_le_bytes());
        out.extend_from_slice(&(chunk.pages.len() as u32).to_le_bytes());
        for page in &chunk.pages {
            out.extend_from_slice(&page.len.to_le_bytes());
            out.extend_from_slice(&page.sum.to_le_bytes());
        }
    }
    out
}

/// Reads it back; `size`: where it begins in the file, which is where the pages end. The error says what makes no sense. Pages lie one behind the other
/// and fill the file: what is said to be there is there, once.
pub(super) fn decode(mut bytes: &[u8], size: u64) -> Result<(Meta, Vec<Vec<Chunk>>), String> {
    let short = || "its directory is truncated".to_owned();
    let len = usize::try_from(u64::from_le_bytes(take(&mut bytes).ok_or_else(short)?)).map_err(|_| short())?;
    let text = bytes.split_off(..len).ok_or_else(short)?;
    let meta: Meta = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    bounds::check(&meta)?;
    let mut at = 0_u64;
    let mut groups = Vec::with_capacity(meta.groups.len());
    for group in &meta.groups {
        let expected = group.rows.div_ceil(PAGE_ROWS as u64);
        let mut chunks = Vec::with_capacity(Column::COUNT);
        for column in Column::all() {
            let chunk = chunk(&mut bytes).ok_or_else(short)?;
            let pages = chunk.pages.len() as u64;
            let absent = pages == 0 && column.nullable();
            let end = chunk.pages.iter().fold(chunk.offset, |end, page| end.saturating_add(page.len.into()));
            if pages != expected && !absent || chunk.offset != at || end > size || group.pages.len() as u64 != expected
            {
                return Err(format!("the pages of {} are not where they should be", column.name()));
            }
            at = end;
            chunks.push(chunk);
        }
        groups.push(chunks);
    }
    if at != size || !bytes.is_empty() {
        return Err("it has more data than its directory lists".to_owned());
    }
    Ok((meta, groups))
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

fn chunk(bytes: &mut &[u8]) -> Option<Chunk> {
    let offset = u64::from_le_bytes(take(bytes)?);
    let count = u32::from_le_bytes(take(bytes)?) as usize;
    let pages = bytes.split_off(..count.checked_mul(12)?)?;
    let page = |mut entry: &[u8]| {
        Some(PageEntry { len: u32::from_le_bytes(take(&mut entry)?), sum: u64::from_le_bytes(take(&mut entry)?) })
    };
    Some(Chunk { offset, pages: pages.chunks_exact(12).map_while(page).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::phase_bit;
    use crate::part::GroupMeta;

    /// Two row groups of a page each, every column of ten bytes.
    fn good() -> (Meta, Vec<Vec<Chunk>>, u64) {
        let group = GroupMeta {
            rows: 5,
            pages: vec![None],
            per_phase: vec![(0, 5)],
            phases: phase_bit(0),
            ..GroupMeta::default()
        };
        let mut offset = 0;
        let mut chunks = || {
            let chunk = |_| {
                offset += 10;
                Chunk { offset: offset - 10, pages: vec![PageEntry { len: 10, sum: 1 }] }
            };
            Column::all().map(chunk).collect::<Vec<_>>()
        };
        let all = vec![chunks(), chunks()];
        (Meta { groups: vec![group.clone(), group], processes: Vec::new() }, all, offset)
    }

    #[test]
    fn pages_fill_the_file_once() {
        type Forge = fn(&mut Meta, &mut Vec<Vec<Chunk>>, &mut u64);
        let cases: [(&str, Forge); 9] = [
            ("", |_, _, _| {}),
            ("not where", |_, chunks, _| chunks[1][0].offset = 0),
            ("not where", |_, chunks, _| chunks[0][1].offset += 1),
            ("not where", |_, chunks, _| chunks[1][0].offset = u64::MAX),
            ("not where", |_, chunks, _| chunks[1][0].pages[0].len = u32::MAX),
            ("not where", |_, chunks, _| chunks[0][0].pages.push(PageEntry { len: 0, sum: 0 })),
            ("not where", |meta, _, _| meta.groups[0].pages.push(None)),
            ("more data than", |_, _, size| *size += 1),
            ("impossible number", |meta, _, _| meta.groups[1].rows = 1 << 40),
        ];
        for (expected, forge) in cases {
            let (mut meta, mut chunks, mut size) = good();
            forge(&mut meta, &mut chunks, &mut size);
            let found = decode(&encode(&meta, &chunks), size).map(|(_, chunks)| chunks);
            match expected {
                "" => assert_eq!(found, Ok(chunks)),
                expected => assert!(found.as_ref().is_err_and(|what| what.contains(expected)), "{expected}: {found:?}"),
            }
        }
    }
}
