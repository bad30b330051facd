//! The line shapes seen so far, as a tree: the text between one value and the next, and the kind of value that follows.
//!
//! Lines of one writer differ in their values; the text between them (`,"cat":"`) repeats. Each node is one such text, a
//! *link*, taken from a fully checked event. If all links of a line are known, and the values between them have the
//! expected kinds, the line is therefore an event with the same fields, and needs no further check.
//!
//! Few events differ in their phase, and few names occur in several categories. Phase and category are therefore part of the
//! links (`,"ph":"X","args":{"ret":`), which spares two steps of about twelve; the end of an event knows what they were.
//!
//! No path has the same field of the record twice, so repeated keys cannot occur here.
//!
//! # An example
//! The checked path reads the first of these lines and learns its shape:
//!
//! ```text
//! {"name":"read","cat":"POSIX","ph":"X","pid":7,"tid":9,"ts":1500,"dur":12,"args":{"fd":3,"ret":4096}}
//! {"name":"write","cat":"POSIX","ph":"X","pid":7,"tid":9,"ts":1600,"dur":140,"args":{"fd":11,"ret":-9}}
//! {"name":"read","cat":"POSIX","ph":"X","pid":7,"tid":9,"ts":1800,"dur":3,"args":{"fd":3,"size":64,"ret":64}}
//! ```
//!
//! It becomes a path of eight links, each with the kind of value after it (left to right: link, kind, value in this line):
//!
//! ```text
//! {"name":"                      Text     read
//! ,"cat":"POSIX","ph":"X","pid": Integer  7
//! ,"tid":                        Integer  9
//! ,"ts":                         Integer  1500
//! ,"dur":                        Integer  12
//! ,"args":{"fd":                 Integer  3
//! ,"ret":                        Integer  4096
//! }}                             End
//! ```
//!
//! The second line has the same links. The fast way compares each with the text (one comparison of sixteen bytes, or two), reads the value behind it into its
//! slot, and has a record after eight such steps: no key is looked up, no quote searched for but that of the name, and phase and category come from the last
//! link. The third line leaves the path behind `"fd":3`: it goes the checked way, and adds the three links that are new, `,"size":`, `,"ret":` and `}}`.
//! From then on both shapes are known. The test `the_example_of_the_documentation` runs this.

use super::Form;
use super::checked::{FHASH, HHASH, column_of_raw};
use crate::dialect::Dialect;
use crate::event::Phase;
use crate::json::{Raw, Scanner};
use crate::view::{FieldSet, phase_of};

/// Which value follows a link.
///
/// Few kinds, each for many fields: a processor guesses where the next step goes by where earlier ones went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follows {
    /// An integer, for a slot.
    Integer,
    /// Text behind its opening quote, for a slot.
    Text,
    /// Text or an integer of any length, for a slot.
    Hash,
    /// An argument that the record has no field for.
    Rest,
    /// Such a field of the event itself.
    Extra,
    /// Nothing: the event is complete. The slot holds its form.
    End,
}

/// Where values are put while an event is read.
pub(super) mod slot {
    use crate::quick::INTEGERS;

    /// Integers; the arguments with a column come first.
    pub(in crate::quick) const PID: u8 = INTEGERS.len() as u8;
    pub(in crate::quick) const TID: u8 = PID + 1;
    pub(in crate::quick) const TS: u8 = PID + 2;
    pub(in crate::quick) const DUR: u8 = PID + 3;
    pub(in crate::quick) const NS: u8 = PID + 4;
    pub(in crate::quick) const ID: u8 = PID + 5;
    /// A power of two, so that no index can be out of bounds.
    pub(in crate::quick) const INTEGER_SLOTS: usize = 32;

    /// Texts.
    pub(in crate::quick) const NAME: u8 = 0;
    pub(in crate::quick) const CAT: u8 = 1;
    pub(in crate::quick) const FHASH: u8 = 2;
    pub(in crate::quick) const HHASH: u8 = 3;
    pub(in crate::quick) const TEXT_SLOTS: usize = 4;

    /// Beside the bits of a form: there were arguments.
    pub(in crate::quick) const HAS_ARGS: u8 = 128;
}

/// A link. Its size is a power of two, and it is all that is needed where the guess is right.
#[derive(Debug)]
pub(super) struct Node {
    /// The first 16 bytes of the link, and which of them count.
    head: u128,
    mask: u128,
    /// The others, likewise: their first in `Shapes::tails`.
    tail: u32,
    parent: u32,
    /// The slot of an integer as a bit.
    pub(super) bit: u32,
    pub(super) len: u16,
    /// Where the key's opening quote is in the link.
    pub(super) key: u16,
    pub(super) follows: Follows,
    /// Where the value is put, one of [`slot`].
    pub(super) slot: u8,
    /// Whether key, colon and value stand without space between them, so that they can be taken in one piece.
    pub(super) closely: bool,
    /// At the end of an event: what its links said.
    pub(super) phase: Phase,
    /// And its category among `Shapes::cats`, where that was no value.
    pub(super) cat: u16,
}

/// All shapes.
#[derive(Debug)]
pub(super) struct Shapes {
    nodes: Vec<Node>,
    /// What can come after the value behind each of them.
    children: Vec<Vec<u32>>,
    tails: Vec<(u128, u128)>,
    /// The categories that are part of links. The first is none.
    cats: Vec<String>,
    /// The links of earlier events, by what came first in them.
    routes: Box<[u32; ROUTES * ROUTE_LEN]>,
}

/// The name of an event nearly always decides which arguments follow. So the links that an event had, one after the other,
/// are the guess for the next one of the same name; what came last at the same place is a bad guess where names alternate.
const ROUTES: usize = 64;
const ROUTE_LEN: usize = 32;

/// How far an event is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The node of the last link.
    node: u32,
    /// Where the guess for the next one is. Events of more links than a route holds go on in the next one: a guess
    /// that is none costs a search, nothing more.
    cursor: usize,
}

impl Place {
    /// Before the first link.
    pub(super) const START: Place = Place { node: ROOT, cursor: 0 };

    /// From here on the links are those that followed the same text before.
    #[inline(always)]
    pub(super) fn follow(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let ends = match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
            (Some(first), Some(last)) => u32::from_le_bytes(*first) ^ u32::from_le_bytes(*last).rotate_left(11),
            _ => u32::from(bytes.first().copied().unwrap_or(0)) << 8 | u32::from(bytes.last().copied().unwrap_or(0)),
        };
        let mixed = (ends ^ bytes.len() as u32).wrapping_mul(0x9e37_79b1);
        let route = (mixed >> (32 - ROUTES.ilog2())) as usize;
        self.cursor = route * ROUTE_LEN + self.cursor % ROUTE_LEN;
    }
}

/// Keys without end (`"item_17":…`) would fill the memory and are not worth a search.
const MAX_NODES: usize = 4096;
const MAX_CHILDREN: usize = 64;
const MAX_LINK: usize = 256;
/// With more categories than this at one place, or with that many nodes, further ones are values.
const MAX_LITERAL_CHILDREN: usize = 16;
const MAX_LITERAL_NODES: usize = MAX_NODES / 2;

/// The node before any link.
const ROOT: u32 = 0;
/// The category of events that have none, or have it as a value.
const NO_CAT: u16 = 0;
/// What the root has for a parent, so that it is never a right guess.
const NOBODY: u32 = u32::MAX;

impl Default for Shapes {
    fn default() -> Self {
        let root = Node {
            head: 0,
            mask: 0,
            tail: 0,
            parent: NOBODY,
            bit: 0,
            len: 0,
            key: 0,
            follows: Follows::End,
            slot: 0,
            closely: false,
            phase: Phase::Instant,
            cat: NO_CAT,
        };
        Shapes {
            nodes: vec![root],
            children: vec![Vec::new()],
            tails: Vec::new(),
            cats: vec![String::new()],
            routes: Box::new([ROOT; ROUTES * ROUTE_LEN]),
        }
    }
}

impl Shapes {
    /// The link that stands at `at`, among those that can come next; its node is then the place's.
    #[inline(always)]
    pub(super) fn next(&mut self, place: &mut Place, text: &[u8], at: usize) -> Option<&Node> {
        let here = load16(text, at);
        let cursor = place.cursor % (ROUTES * ROUTE_LEN);
        place.cursor = cursor + 1;
        let guess = self.routes[cursor];
        let guessed = &self.nodes[guess as usize];
        if guessed.parent == place.node && matches(guessed, &self.tails, here, text, at) {
            place.node = guess;
            return Some(guessed);
        }
        let found = self.search(place.node, here, text, at)?;
        self.routes[cursor] = found;
        place.node = found;
        Some(&self.nodes[found as usize])
    }

    #[inline(never)]
    fn search(&self, after: u32, here: u128, text: &[u8], at: usize) -> Option<u32> {
        let fits = |child: &u32| matches(&self.nodes[*child as usize], &self.tails, here, text, at);
        self.children[after as usize].iter().copied().find(fits)
    }

    /// How many links are known.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// A category that is part of links.
    #[inline(always)]
    pub(super) fn cat(&self, cat: u16) -> &str {
        &self.cats[usize::from(cat)]
    }

    /// Remembers the shape of an event.
    #[cold]
    pub(super) fn learn(&mut self, event: &[u8], dialect: Dialect) {
        let literal = Path::of(event, dialect, true);
        if !literal.is_some_and(|path| self.insert(&path, MAX_LITERAL_NODES, MAX_LITERAL_CHILDREN))
            && let Some(path) = Path::of(event, dialect, false)
        {
            self.insert(&path, MAX_NODES, MAX_CHILDREN);
        }
    }

    /// Adds what is not there yet of a path; false where there would be too much.
    fn insert(&mut self, path: &Path<'_>, most_nodes: usize, most_children: usize) -> bool {
        if self.nodes.len() + path.steps.len() > most_nodes {
            return false;
        }
        let mut after = ROOT;
        for step in &path.steps {
            after = match self.child(after, step) {
                Some(child) => child,
                None if self.children[after as usize].len() < most_children => self.add(after, step),
                None => return false,
            };
        }
        let cat = path.cat.map_or(NO_CAT, |cat| self.number_of(cat));
        let end = &mut self.nodes[after as usize];
        (end.phase, end.cat) = (path.phase, cat);
        true
    }

    fn number_of(&mut self, cat: &str) -> u16 {
        let number = self.cats.iter().position(|known| known == cat).unwrap_or_else(|| {
            self.cats.push(cat.to_owned());
            self.cats.len() - 1
        });
        // There are fewer categories than nodes.
        number as u16
    }

    fn child(&self, after: u32, step: &Step<'_>) -> Option<u32> {
        self.children[after as usize].iter().copied().find(|&child| {
            let node = &self.nodes[child as usize];
            usize::from(node.len) == step.link.len()
                && (node.follows, node.slot) == (step.follows, step.slot)
                && matches(node, &self.tails, load16(step.link, 0), step.link, 0)
        })
    }

    fn add(&mut self, after: u32, step: &Step<'_>) -> u32 {
        let masked = |at: usize| {
            let len = step.link.len().saturating_sub(at).min(16);
            let mask = if len == 16 { u128::MAX } else { (1 << (8 * len)) - 1 };
            (load16(step.link, at) & mask, mask)
        };
        let (head, mask) = masked(0);
        let tail = self.tails.len() as u32;
        self.tails.extend((16..step.link.len()).step_by(16).map(masked));
        let new = self.nodes.len() as u32;
        self.nodes.push(Node {
            head,
            mask,
            tail,
            parent: after,
            bit: 1 << (step.slot % 32),
            len: step.link.len() as u16,
            key: step.key as u16,
            follows: step.follows,
            slot: step.slot,
            closely: step.closely,
            phase: Phase::Instant,
            cat: NO_CAT,
        });
        self.children.push(Vec::new());
        self.children[after as usize].push(new);
        new
    }
}

/// Whether a link stands at `at`, where `here` are the next sixteen bytes.
#[inline(always)]
fn matches(node: &Node, tails: &[(u128, u128)], here: u128, text: &[u8], at: usize) -> bool {
    (here ^ node.head) & node.mask == 0 && (node.len <= 16 || tail_matches(node, tails, text, at + 16))
}

#[inline]
fn tail_matches(node: &Node, tails: &[(u128, u128)], text: &[u8], at: usize) -> bool {
    let count = usize::from(node.len).div_ceil(16) - 1;
    let tails = &tails[node.tail as usize..][..count];
    tails.iter().enumerate().all(|(i, (tail, mask))| (load16(text, at + 16 * i) ^ tail) & mask == 0)
}

/// Sixteen bytes from a place on; zeros, which no link holds, stand for those behind the end.
#[inline(always)]
pub(super) fn load16(text: &[u8], at: usize) -> u128 {
    match text.get(at..).and_then(<[u8]>::first_chunk::<16>) {
        Some(bytes) => u128::from_le_bytes(*bytes),
        None => load_end(text, at),
    }
}

#[cold]
fn load_end(text: &[u8], at: usize) -> u128 {
    let mut bytes = [0; 16];
    let rest = text.get(at..).unwrap_or_default();
    let len = rest.len().min(16);
    bytes[..len].copy_from_slice(&rest[..len]);
    u128::from_le_bytes(bytes)
}

struct Step<'a> {
    link: &'a [u8],
    follows: Follows,
    slot: u8,
    key: usize,
    closely: bool,
}

/// An event taken apart into links and values.
struct Path<'a> {
    event: &'a [u8],
    /// Where the last value ended.
    from: usize,
    /// The fields of the record that were there: the top-level ones, and the columns from bit 16 on.
    seen: u64,
    form: Form,
    has_args: bool,
    phase: Phase,
    /// The category, if it is to be part of a link and can be.
    cat: Option<&'a str>,
    literal: bool,
    dialect: Dialect,
    steps: Vec<Step<'a>>,
}

impl<'a> Path<'a> {
    /// Nothing when the event cannot be told by its shape. `literal`: the category is no value but part of a link.
    fn of(event: &'a [u8], dialect: Dialect, literal: bool) -> Option<Path<'a>> {
        let mut path = Path {
            event,
            from: 0,
            seen: 0,
            form: Form::default(),
            has_args: false,
            phase: Phase::Instant,
            cat: None,
            literal,
            dialect,
            steps: Vec::new(),
        };
        path.walk()?;
        Some(path)
    }

    fn walk(&mut self) -> Option<()> {
        let mut scanner = Scanner::new(self.event, 0);
        scanner.expect(b'{', "").ok()?;
        loop {
            let (key, at) = key(&mut scanner)?;
            if key == b"args" {
                self.once(FieldSet::ARGS.bits())?;
                self.args(&mut scanner)?;
            } else {
                let value = scanner.value().ok()?;
                if let Some(follows) = self.top_level(key, value)? {
                    self.step(follows, at, value, &scanner)?;
                }
            }
            if !scanner.more(b'}').ok()? {
                break;
            }
        }
        let form = self.form.bits() | if self.has_args { slot::HAS_ARGS } else { 0 };
        self.push(scanner.at(), (Follows::End, form), 0, false)
    }

    fn args(&mut self, scanner: &mut Scanner<'a>) -> Option<()> {
        scanner.expect(b'{', "").ok()?;
        self.has_args = true;
        scanner.skip_space();
        if scanner.peek() == Some(b'}') {
            scanner.advance();
            return Some(());
        }
        loop {
            let (key, at) = key(scanner)?;
            let value = scanner.value().ok()?;
            let follows = match column_of_raw(key) {
                Some(column) => {
                    self.once(1 << (16 + column))?;
                    match column {
                        FHASH => (Follows::Hash, slot::FHASH),
                        HHASH => (Follows::Hash, slot::HHASH),
                        integer => (Follows::Integer, integer as u8),
                    }
                }
                None => (Follows::Rest, 0),
            };
            self.step(follows, at, value, scanner)?;
            if !scanner.more(b'}').ok()? {
                return Some(());
            }
        }
    }

    fn once(&mut self, bit: u64) -> Option<()> {
        let new = self.seen & bit == 0;
        self.seen |= bit;
        new.then_some(())
    }

    /// What follows the key of a field of the event itself: a value, or nothing where that is part of the link.
    fn top_level(&mut self, key: &[u8], value: Raw<'a>) -> Option<Option<(Follows, u8)>> {
        let Some(field) = FieldSet::of(key) else {
            // A header, unless its value is something else.
            return (key != b"traceEvents").then_some(Some((Follows::Extra, 0)));
        };
        if field == FieldSet::NS && !self.dialect.is_own() {
            // Remainders are ours; in other traces the key is an unknown one.
            return Some(Some((Follows::Extra, 0)));
        }
        let (follows, form) = match (field, value) {
            (FieldSet::NAME, Raw::Str(_)) => (Some((Follows::Text, slot::NAME)), Form::NAME),
            (FieldSet::CAT, Raw::Str(text)) => (self.category(text), Form::CAT),
            (FieldSet::PH, Raw::Str(&[letter])) => {
                self.phase = Phase::from_letter(letter)?;
                (None, Form::default())
            }
            (FieldSet::PH, number @ Raw::Number(_)) => {
                let (phase, exact) = phase_of(number);
                self.phase = exact.then_some(phase)?;
                (None, Form::NUMBERED_PHASE)
            }
            (FieldSet::PID, Raw::Number(_)) => (Some((Follows::Integer, slot::PID)), Form::PID),
            (FieldSet::TID, Raw::Number(_)) => (Some((Follows::Integer, slot::TID)), Form::TID),
            (FieldSet::TS, Raw::Number(_)) => (Some((Follows::Integer, slot::TS)), Form::default()),
            (FieldSet::DUR, Raw::Number(_)) => (Some((Follows::Integer, slot::DUR)), Form::default()),
            (FieldSet::NS, Raw::Number(_)) => (Some((Follows::Integer, slot::NS)), Form::default()),
            (FieldSet::ID, Raw::Number(_)) => (Some((Follows::Integer, slot::ID)), Form::default()),
            _ => return None,
        };
        self.once(field.bits())?;
        self.form = self.form.with(form);
        Some(follows)
    }

    /// A category as part of the link, where it means what it shows.
    fn category(&mut self, text: &'a [u8]) -> Option<(Follows, u8)> {
        let plain = std::str::from_utf8(text).ok().filter(|text| text.is_ascii() && !text.contains('\\'));
        self.cat = plain.filter(|_| self.literal);
        self.cat.is_none().then_some((Follows::Text, slot::CAT))
    }

    /// A value that was scanned, and the link before it. `key`: where its key starts.
    fn step(&mut self, follows: (Follows, u8), key: usize, value: Raw<'a>, scanner: &Scanner<'a>) -> Option<()> {
        let end = scanner.at();
        let inside = match value {
            Raw::Str(inside) => inside.len() + 2,
            Raw::Number(text) | Raw::Array(text) | Raw::Object(text) => text.len(),
            Raw::Null | Raw::Bool(true) => 4,
            Raw::Bool(false) => 5,
        };
        let quote = follows.0 == Follows::Text;
        let start = end - inside + usize::from(quote);
        let closely = self.event[key..start].iter().all(|b| !b.is_ascii_whitespace());
        self.push(start, follows, key - self.from, closely)?;
        self.from = end;
        Some(())
    }

    fn push(&mut self, end: usize, (follows, slot): (Follows, u8), key: usize, closely: bool) -> Option<()> {
        let link = &self.event[self.from..end];
        self.steps.push(Step { link, follows, slot, key, closely });
        (link.len() <= MAX_LINK && !link.contains(&0)).then_some(())
    }
}

/// A key, its colon, and where its opening quote is.
fn key<'a>(scanner: &mut Scanner<'a>) -> Option<(&'a [u8], usize)> {
    scanner.skip_space();
    let at = scanner.at();
    Some((scanner.key().ok()?, at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Reading;
    use crate::quick::{Quick, Record};

    /// A block of this file's documentation, without its comment signs.
    fn block(number: usize) -> Vec<&'static str> {
        let text = include_str!("shapes.rs");
        let block = text.split("//! ```").nth(1 + 2 * number).expect("a block").lines().skip(1);
        block.map(|line| line.trim_start_matches("//!").trim_start_matches(' ')).collect()
    }

    /// The links of an event, each with the kind of what follows and its text.
    fn links(event: &str) -> Vec<String> {
        let path = Path::of(event.as_bytes(), Dialect::Weftline, true).expect("a shape");
        let place = |step: &Step<'_>| step.link.as_ptr() as usize - event.as_ptr() as usize;
        let ends = path.steps.iter().skip(1).map(place).chain([event.len()]);
        let line = |(step, end): (&Step<'_>, usize)| {
            let link = str::from_utf8(step.link).expect("text");
            let value = event[place(step) + link.len()..end].trim_end_matches('"');
            format!("{link:<30} {:<8} {value}", format!("{:?}", step.follows)).trim_end().to_owned()
        };
        path.steps.iter().zip(ends).map(line).collect()
    }

    #[test]
    fn the_example_of_the_documentation() {
        let lines = block(0);
        let [read, write, sized] = lines[..] else { panic!("{lines:?}") };
        assert_eq!(links(read), block(1)[..8]);

        let mut quick = Quick::new(Reading::own());
        let mut scan = |line: &str| {
            let mut seen = Vec::new();
            let mut each = |record: &Record<'_>| {
                let integers = record.integers;
                seen.push((record.name.to_owned(), record.cat.to_owned(), record.dur_ns, integers[0], integers[2]));
            };
            quick.scan(line.as_bytes(), true, &mut each, &mut |aside| panic!("{aside:?}"));
            (seen.remove(0), quick.shapes.len() - 1)
        };
        let record = |name: &str, dur, fd, ret| (name.to_owned(), "POSIX".to_owned(), Some(dur), fd, ret);
        assert_eq!(scan(read), (record("read", 12_000, 3, 4096), 8), "learned");
        assert_eq!(scan(write), (record("write", 140_000, 11, -9), 8), "known");
        assert_eq!(scan(sized), (record("read", 3_000, 3, 64), 11), "three links more");
        assert_eq!(scan(sized).1, 11);
    }
}
