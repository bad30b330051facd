//! Splits text into events, with any separators.
//!
//! All dialects are lists of objects; they differ in brackets, commas, line ends and in what surrounds the list. So the
//! splitter skips brackets, commas and space between objects, and needs no mode: it handles `[`, `]`, several lists
//! in a row, a missing or a trailing comma, several events on a line and events over several lines alike. A header
//! `{…,"traceEvents":[` is recognised when that key comes; what follows the list are key-value pairs.
//!
//! After damage it continues at the next complete event of the same line, or else at the next line.

use crate::damage::What;
use crate::dialect::Reading;
use crate::json::{Fault, Raw, Scanner};
use crate::view::{EventView, Object, scan_object};

/// What the splitter found.
#[derive(Debug)]
pub(crate) enum Item<'a> {
    Event(EventView<'a>),
    /// A file's header ended here; these are the fields in it.
    Header(Vec<(&'a [u8], Raw<'a>)>),
    /// A key and a value outside of any object: what follows the list in a file with a header, damage in others.
    Pair {
        at: usize,
        len: usize,
        key: &'a [u8],
        value: Raw<'a>,
    },
    /// Text that cannot be used.
    Flaw {
        at: usize,
        len: usize,
        what: What,
        note: &'static str,
    },
    /// The text ends within an object or pair that starts here, and more text may follow.
    Incomplete(usize),
}

/// How many beginnings of an event are tried within a damaged line.
const MAX_TRIES: usize = 1000;

/// The items of a text.
#[derive(Debug)]
pub(crate) struct Items<'a> {
    text: &'a [u8],
    scanner: Scanner<'a>,
    reading: Reading,
    /// Whether the text is all there is: what is cut then is damage.
    last: bool,
}

impl<'a> Items<'a> {
    pub(crate) fn new(text: &'a [u8], reading: Reading, last: bool) -> Items<'a> {
        Items::starting(text, 0, reading, last)
    }

    /// The items from a place on that lies between two of them.
    pub(crate) fn starting(text: &'a [u8], at: usize, reading: Reading, last: bool) -> Items<'a> {
        Items { text, scanner: Scanner::new(text, at), reading, last }
    }

    /// How far the text is read. That place is all that the items before have to do with those that follow.
    pub(crate) fn at(&self) -> usize {
        self.scanner.at()
    }

    fn skip_between(&mut self) {
        loop {
            match self.scanner.peek() {
                Some(b' ' | b'\n' | b'\t' | b'\r' | b',' | b'[' | b']' | b'}') => self.scanner.advance(),
                // The mark with which some editors begin a file.
                Some(0xEF) if self.text[self.scanner.at()..].starts_with(b"\xEF\xBB\xBF") => {
                    self.scanner = Scanner::new(self.text, self.scanner.at() + 3);
                }
                _ => return,
            }
        }
    }

    fn pair(&mut self, at: usize) -> Result<Item<'a>, Fault> {
        let key = self.scanner.key()?;
        self.scanner.skip_space();
        if key == b"traceEvents" && self.scanner.peek() == Some(b'[') {
            return Ok(Item::Header(Vec::new()));
        }
        let value = self.scanner.value()?;
        // A number ends where its digits do: without what follows one cannot know that it is whole.
        if self.scanner.peek().is_none() && !self.last {
            return Err(Fault::End);
        }
        Ok(Item::Pair { at, len: self.scanner.at() - at, key, value })
    }

    /// Goes on behind damage that starts at `at`, and tells how far that is.
    fn skip_damage(&mut self, at: usize, what: What, note: &'static str) -> Item<'a> {
        let line_end = memchr::memchr(b'\n', &self.text[at..]).map_or(self.text.len(), |end| at + end);
        let next = self.next_event_within(at + 1, line_end).unwrap_or(line_end);
        self.scanner = Scanner::new(self.text, next);
        let len = self.text[at..next].trim_ascii_end().len();
        Item::Flaw { at, len, what, note }
    }

    /// Where a whole event starts within a damaged line: a writer that cut a line may have appended the next one to it.
    fn next_event_within(&self, mut from: usize, end: usize) -> Option<usize> {
        for _ in 0..MAX_TRIES {
            let at = from + memchr::memmem::find(&self.text[from..end], b"{\"")?;
            // The value of a key is no event of its own.
            if self.text[at - 1] != b':' {
                let mut scanner = Scanner::new(&self.text[..end], at);
                if let Ok(Object::Event(_)) = scan_object(&mut scanner, self.reading) {
                    return Some(at);
                }
            }
            from = at + 1;
        }
        None
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        loop {
            self.skip_between();
            let at = self.scanner.at();
            let found = match self.scanner.peek()? {
                b'{' => match scan_object(&mut self.scanner, self.reading) {
                    Ok(Object::Event(event)) => return Some(Item::Event(event)),
                    Ok(Object::Header(pairs)) => return Some(Item::Header(pairs)),
                    Ok(Object::Empty) => continue,
                    Ok(Object::NoEvent) => {
                        let len = self.scanner.at() - at;
                        return Some(Item::Flaw { at, len, what: What::BadLine, note: "an object without ph" });
                    }
                    Err(fault) => fault,
                },
                b'"' => match self.pair(at) {
                    Ok(item) => return Some(item),
                    Err(fault) => fault,
                },
                _ => Fault::Bad("an object was expected"),
            };
            return Some(match found {
                Fault::End if !self.last => {
                    self.scanner = Scanner::new(self.text, self.text.len());
                    Item::Incomplete(at)
                }
                Fault::End => self.skip_damage(at, What::CutEvent, "the text ends within it"),
                Fault::Bad(note) => self.skip_damage(at, What::BadLine, note),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of events, `k=` for pairs, `H` for headers, `!` for flaws, `~` for an incomplete end.
    fn check(text: &str, last: bool, expected: &str) {
        let reading = Reading::default();
        let found: Vec<String> = Items::new(text.as_bytes(), reading, last)
            .map(|item| match item {
                Item::Event(event) => event.name.into_owned(),
                Item::Header(pairs) => format!("H{}", pairs.len()),
                Item::Pair { key, .. } => format!("{}=", String::from_utf8_lossy(key)),
                Item::Flaw { at, len, .. } => format!("!{at}+{len}"),
                Item::Incomplete(at) => format!("~{at}"),
            })
            .collect();
        assert_eq!(found.join(" "), expected, "{text}");
    }

    fn event(name: &str) -> String {
        format!(r#"{{"name":"{name}","ph":"X","args":{{"n":[{{"x":1}},{{"y":2}}]}}}}"#)
    }

    #[test]
    fn every_framing() {
        let (a, b) = (event("a"), event("b"));
        for text in [
            format!("{a}\n{b}\n"),
            format!("[\n{a}\n{b}\n"),
            format!("[\n{a}\n{b}\n]\n"),
            format!("[\n{a},\n{b},\n {{}}]"),
            format!("[{a},{b}]"),
            format!("[{a} {b}"),
            format!("\u{feff}[\r\n{a},\r\n{b}\r\n"),
            format!("[\n{a},\n[\n{b},\n"),
        ] {
            check(&text, true, "a b");
        }
        let spread = a.replace(',', ",\n  ").replace('{', "{\n  ");
        check(&format!("[\n{spread},\n{b}\n]"), true, "a b");
        check(&format!("{{\"traceEvents\":[{a},{b}],\"x\":{{\"y\":[1]}},\"z\":1}}"), true, "H0 a b x= z=");
        check(&format!("{{\n\"u\": \"us\",\n\"o\": {{\n\n}},\n\"traceEvents\": [\n{a},\n{b},\n"), true, "H2 a b");
        check("", true, "");
        check("[\n", true, "");
    }

    #[test]
    fn damage_costs_little() {
        let (a, b) = (event("a"), event("b"));
        let cut = &a[..a.len() - 9];
        let len = cut.len();
        check(&format!("{cut}\n{b}\n"), true, &format!("!0+{len} b"));
        // A line that lost its end and its newline does not take the next one with it.
        check(&format!("{cut}{b}\n{a}\n"), true, &format!("!0+{len} b a"));
        let in_string = "{\"name\":\"aaa";
        check(&format!("{in_string}{b}\n{a}\n"), true, "!0+12 b a");
        check(&format!("{in_string}\n{b}\n"), true, "!0+12 b");
        check(
            &format!("junk {a}\n\u{0}\u{0}{b}\njunk\n"),
            true,
            &format!("!0+4 a !{}+2 b !{}+4", len + 15, len * 2 + 27),
        );
        check("{\"no\":\"phase\"}\n", true, "!0+14");
    }

    #[test]
    fn the_end_may_be_yet_to_come() {
        let (a, b) = (event("a"), event("b"));
        for cut in 1..b.len() {
            let text = format!("{a}\n{}", &b[..cut]);
            check(&text, false, &format!("a ~{}", a.len() + 1));
            check(&text, true, &format!("a !{}+{}", a.len() + 1, b[..cut].trim_end().len()));
        }
        check("\"key\":12", false, "~0");
        check("\"key\":12", true, "key=");
    }

    #[test]
    fn an_open_bracket_does_not_swallow_the_rest() {
        let b = event("b");
        check(&format!("{{\"name\":\"a\",\"args\":[\n{b},\n{b}\n"), true, "!0+20 b b");
    }
}
