//! Decides whether a file is a trace at all, before anything is allocated for its content.

use std::io;

use super::assemble::MAX_CARRY;
use crate::dialect::Reading;
use crate::event::Phase;
use crate::member::{InflateError, inflate_member, inflate_torn};
use crate::objects::{Item, Items};
use crate::source::{Block, Input, Source};

pub(super) fn holds_events<I: Input + ?Sized>(input: &I) -> io::Result<bool> {
    let mut source = Source::new(input)?;
    let reading = source.reading()?;
    let mut carry = Vec::new();
    while let Some(block) = source.next_block(std::mem::take(&mut carry))? {
        match block {
            Block::Members(members) => {
                for member in &members {
                    let text = match inflate_member(&member.bytes) {
                        Err(InflateError::Cut) => inflate_torn(&member.bytes),
                        inflated => inflated.unwrap_or_default(),
                    };
                    if looked_at(&text, Reading::own(), true).is_none() {
                        return Ok(true);
                    }
                }
            }
            Block::Text { mut bytes, last, .. } => {
                let Some(used) = looked_at(&bytes, reading, last || bytes.len() > MAX_CARRY) else { return Ok(true) };
                bytes.drain(..used);
                carry = bytes;
            }
        }
    }
    Ok(false)
}

/// How much of a text is used up; nothing where an event is in it.
fn looked_at(text: &[u8], reading: Reading, last: bool) -> Option<usize> {
    for item in Items::new(text, reading, last) {
        match item {
            Item::Event(event) if event.phase != Phase::Metadata => return None,
            Item::Incomplete(at) => return Some(at),
            _ => {}
        }
    }
    Some(text.len())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn check(text: &[u8], expected: bool) {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).expect("memory");
        let packed = encoder.finish().expect("memory");
        for bytes in [text, &packed] {
            let found = holds_events(&bytes).expect("memory");
            assert_eq!(found, expected, "{}", String::from_utf8_lossy(&text[..text.len().min(80)]));
        }
    }

    #[test]
    fn traces_are_told_from_other_files() {
        let event = r#"{"name":"a","ph":"X","ts":1,"dur":1,"pid":1,"tid":1}"#;
        let metadata = r#"{"name":"process_name","ph":"M","pid":1,"args":{"name":"x"}}"#;
        check(event.as_bytes(), true);
        check(format!("{{\"traceEvents\":[{metadata},{event}]}}").as_bytes(), true);
        // Behind more than a block of something else.
        check(format!("{}\n{event}\n", "junk\n".repeat(1 << 20)).as_bytes(), true);
        check(format!("[{}{event}]", format!("{metadata},\n").repeat(100_000)).as_bytes(), true);
        for junk in ["", "[]", "{}", "{\"traceEvents\":[]}", "root:x:0:0:root:/root:/bin/bash\n", "[1,2,3]", "\0\0\0"] {
            check(junk.as_bytes(), false);
        }
        check(r#"{"name":"package","version":"1","scripts":{"x":"y"}}"#.as_bytes(), false);
        check(metadata.as_bytes(), false);
        let utf16: Vec<u8> = event.encode_utf16().flat_map(u16::to_le_bytes).collect();
        check(&utf16, false);
    }
}
