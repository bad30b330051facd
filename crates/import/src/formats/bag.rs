//! The name, category and arguments of an event that is not over yet: kept in one piece of memory, which is used again.

use weftline_format::text::from_bytes;

use crate::event::Arg;

/// Arguments of one event.
const MOST_ARGS: usize = 1024;
/// Bytes of the texts of one event.
const MOST_TEXT: usize = 32 << 20;

/// What is kept of one event.
#[derive(Debug, Default, Clone)]
pub(crate) struct Bag {
    text: Vec<u8>,
    name: Part,
    cat: Part,
    entries: Vec<(Part, Kept)>,
    /// Arguments that were too many or too long.
    pub(crate) refused: u32,
}

/// A piece of the text. [`MOST_TEXT`] fits.
#[derive(Debug, Default, Clone, Copy)]
struct Part {
    from: u32,
    to: u32,
}

#[derive(Debug, Clone, Copy)]
enum Kept {
    Int(i64),
    Unsigned(u64),
    Float(f64),
    Bool(bool),
    Text(Part),
    Json(Part),
}

impl Bag {
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.entries.clear();
        (self.name, self.cat, self.refused) = (Part::default(), Part::default(), 0);
        // What one large event needed is not kept for all the small ones.
        self.text.shrink_to(64 << 10);
    }

    /// Bytes that it takes.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Bag>() + self.text.capacity() + self.entries.capacity() * size_of::<(Part, Kept)>()
    }

    pub(crate) fn name(&self) -> &str {
        std::str::from_utf8(self.bytes(self.name)).unwrap_or_default()
    }

    pub(crate) fn set_name(&mut self, name: &[u8]) {
        self.name = self.keep(from_bytes(name).as_bytes()).unwrap_or_default();
    }

    pub(crate) fn cat(&self) -> &str {
        std::str::from_utf8(self.bytes(self.cat)).unwrap_or_default()
    }

    /// Categories are joined with commas.
    pub(crate) fn add_cat(&mut self, cat: &[u8]) {
        let cat = from_bytes(cat);
        self.cat = match self.cat().is_empty() {
            true => self.keep(cat.as_bytes()),
            false => {
                let joined = format!("{},{cat}", self.cat());
                self.keep(joined.as_bytes())
            }
        }
        .unwrap_or(self.cat);
    }

    /// Adds an argument; one of the same name that is there becomes it. A path becomes text.
    pub(crate) fn put(&mut self, key: &[u8], arg: Arg<'_>) {
        // Looking for each of millions among a thousand would take minutes.
        if self.refused as usize >= MOST_ARGS {
            self.refused = self.refused.saturating_add(1);
            return;
        }
        let kept = match arg {
            Arg::Int(number) => Some(Kept::Int(number)),
            Arg::Unsigned(number) => Some(Kept::Unsigned(number)),
            Arg::Float(number) => Some(Kept::Float(number)),
            Arg::Bool(flag) => Some(Kept::Bool(flag)),
            Arg::Text(text) | Arg::Path(text) => self.keep(text).map(Kept::Text),
            Arg::Json(json) => self.keep(json.as_bytes()).map(Kept::Json),
        };
        let key = from_bytes(key);
        let Some(kept) = kept else {
            self.refused += 1;
            return;
        };
        let known = self.entries.iter().position(|(known, _)| self.bytes(*known) == key.as_bytes());
        if let Some(place) = known {
            self.entries[place].1 = kept;
        } else if self.entries.len() < MOST_ARGS
            && let Some(key) = self.keep(key.as_bytes())
        {
            self.entries.push((key, kept));
        } else {
            self.refused += 1;
        }
    }

    /// Adds all of another, as [`Bag::put`] does.
    pub(crate) fn join(&mut self, other: &Bag) {
        for (key, arg) in other.args() {
            self.put(key.as_bytes(), arg);
        }
        self.refused = self.refused.saturating_add(other.refused);
    }

    /// The arguments, in their order.
    pub(crate) fn args(&self) -> Vec<(&str, Arg<'_>)> {
        let arg = |kept| match kept {
            Kept::Int(number) => Arg::Int(number),
            Kept::Unsigned(number) => Arg::Unsigned(number),
            Kept::Float(number) => Arg::Float(number),
            Kept::Bool(flag) => Arg::Bool(flag),
            Kept::Text(part) => Arg::Text(self.bytes(part)),
            Kept::Json(part) => Arg::Json(std::str::from_utf8(self.bytes(part)).unwrap_or("null")),
        };
        let key = |part| std::str::from_utf8(self.bytes(part)).unwrap_or_default();
        self.entries.iter().map(|(part, kept)| (key(*part), arg(*kept))).collect()
    }

    fn keep(&mut self, bytes: &[u8]) -> Option<Part> {
        let from = self.text.len();
        let to = from.checked_add(bytes.len()).filter(|to| *to <= MOST_TEXT)?;
        self.text.extend_from_slice(bytes);
        Some(Part { from: from as u32, to: to as u32 })
    }

    fn bytes(&self, part: Part) -> &[u8] {
        self.text.get(part.from as usize..part.to as usize).unwrap_or_default()
    }
}

/// Bytes as small letters of hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Appends a text as JSON.
pub(crate) fn push_json_text(json: &mut String, text: &[u8]) {
    json.push_str(&serde_json::to_string(&*from_bytes(text)).unwrap_or_default());
}

/// Appends a fraction as JSON. What is not finite is a text, as trace lines have it.
pub(crate) fn push_json_float(json: &mut String, number: f64) {
    if number.is_finite() {
        json.push_str(&serde_json::to_string(&number).unwrap_or_default());
    } else {
        json.push_str(if number.is_nan() {
            "\"NaN\""
        } else if number > 0.0 {
            "\"Infinity\""
        } else {
            "\"-Infinity\""
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_come_back() {
        let mut bag = Bag::default();
        for round in 0..2 {
            bag.set_name(b"read\xff");
            bag.add_cat(b"a");
            bag.add_cat(b"b");
            bag.put(b"n", Arg::Int(-1));
            bag.put(b"t", Arg::Text(b"x\xfe"));
            bag.put(b"n", Arg::Unsigned(7));
            bag.put(b"j", Arg::Json("[1]"));
            let args = [("n", Arg::Unsigned(7)), ("t", Arg::Text(b"x\xfe")), ("j", Arg::Json("[1]"))];
            assert_eq!((bag.name(), bag.cat(), bag.args()), ("read\u{10DCFF}", "a,b", args.to_vec()), "{round}");
            bag.clear();
        }
        let mut first = Bag::default();
        first.put(b"a", Arg::Bool(true));
        bag.put(b"a", Arg::Float(0.5));
        bag.join(&first);
        assert_eq!(bag.args(), [("a", Arg::Bool(true))]);
    }

    #[test]
    fn what_is_too_much_is_counted() {
        let mut bag = Bag::default();
        for number in 0..MOST_ARGS + 3 {
            bag.put(number.to_string().as_bytes(), Arg::Int(0));
        }
        bag.put(b"0", Arg::Text(&vec![b'x'; MOST_TEXT]));
        assert_eq!((bag.args().len(), bag.refused), (MOST_ARGS, 4));
    }

    #[test]
    fn json_of_odd_values() {
        let mut json = String::new();
        push_json_text(&mut json, b"a\"\xff");
        push_json_float(&mut json, f64::NEG_INFINITY);
        push_json_float(&mut json, 0.5);
        assert_eq!(json, "\"a\\\"\u{10DCFF}\"\"-Infinity\"0.5");
        assert_eq!(hex(&[0, 171]), "00ab");
    }
}
