//! What is left of a trace when something went wrong: everything that was whole, and a list of what was not.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use weftline_format::damage::{Damage, Place, What};
use weftline_format::dialect::Dialect;
use weftline_format::identity::Identity;
use weftline_format::line::LineBuf;
use weftline_format::member::{Deflater, seal, walk};
use weftline_format::reader::{Trace, read_bytes};

/// A member with its identity line and `count` events named after it.
fn member_text(seq: u64, nonce: &str, count: u32) -> Vec<u8> {
    let mut lines = LineBuf::new();
    if seq == 0 {
        lines.open_array();
    }
    let identity = Identity { pid: 7, nonce: nonce.to_owned(), seq, ..Identity::default() };
    identity.write(&mut lines);
    for n in 0..i64::from(count) {
        lines
            .complete(&format!("{nonce}{seq}.{n}"), "POSIX", 7, 7, 1_000_001 * n, 1_000_001 * n + 999)
            .arg_i64("ret", n)
            .finish();
    }
    lines.into_bytes()
}

fn sealed(members: &[(u64, &str, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut deflater = Deflater::new();
    for (seq, nonce, count) in members {
        seal(&member_text(*seq, nonce, *count), *count, *seq, &mut out, &mut deflater);
    }
    out
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(text).expect("memory");
    encoder.finish().expect("memory")
}

fn names(trace: &Trace) -> Vec<&str> {
    trace.events.iter().filter(|event| event.counts()).map(|event| event.name.as_str()).collect()
}

fn kinds(damage: &Damage) -> Vec<What> {
    damage.flaws.iter().map(|flaw| flaw.what).collect()
}

#[test]
fn a_cut_at_any_byte_keeps_all_members_before_it() {
    let file = sealed(&[(0, "a", 3), (1, "a", 2), (2, "a", 3)]);
    let whole = read_bytes(&file);
    assert_eq!(whole.damage, Damage::default());
    let all = names(&whole);
    let ends: Vec<usize> = walk(&file).map(|(range, _)| range.end).collect();
    for cut in 0..file.len() {
        let trace = read_bytes(&file[..cut]);
        let sure = [0, 3, 5][ends.iter().filter(|end| **end <= cut).count()];
        let found = names(&trace);
        assert!(found.len() >= sure, "cut at {cut}");
        assert_eq!(found, all[..found.len()], "cut at {cut}");
        let at_end = cut == 0 || ends.contains(&cut);
        assert_eq!(trace.damage.is_empty(), at_end, "cut at {cut}: {:?}", trace.damage);
    }
}

#[test]
fn a_torn_member_gives_what_it_can() {
    let file = sealed(&[(0, "a", 2), (1, "a", 4000)]);
    let trace = read_bytes(&file[..file.len() - 5000]);
    assert!(names(&trace).len() > 2000, "{}", names(&trace).len());
    assert_eq!(kinds(&trace.damage)[0], What::TornMember);
    let note = &trace.damage.flaws[0].note;
    assert!(note.starts_with(&format!("{} of 4000 events", names(&trace).len() - 2)), "{note}");
}

#[test]
fn cut_plain_text_loses_one_event() {
    let text = member_text(0, "a", 5);
    let whole = read_bytes(&text);
    for cut in 0..text.len() {
        let trace = read_bytes(&text[..cut]);
        let lines = text[..cut].iter().filter(|b| **b == b'\n').count().saturating_sub(1);
        let open = text[..cut].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        // A line that lacks only its newline is whole.
        let whole_line = text.get(cut) == Some(&b'\n') && lines < 6 && cut > 1;
        let expected = lines + usize::from(whole_line);
        assert_eq!(trace.events, whole.events[..expected], "cut at {cut}");
        let cut_event = !whole_line && cut > open && text[open] == b'{';
        assert_eq!(kinds(&trace.damage), if cut_event { vec![What::CutEvent] } else { vec![] }, "cut at {cut}");
    }
}

#[test]
fn cut_foreign_gzip_gives_what_was_inflated() {
    let text = member_text(0, "a", 200);
    let all = read_bytes(&text);
    let file = [gzip(&text[..5000]), gzip(&text[5000..])].concat();
    for cut in (0..file.len()).step_by(7) {
        let trace = read_bytes(&file[..cut]);
        assert_eq!(trace.events, all.events[..trace.events.len()], "cut at {cut}");
        // A file that begins like gzip but is too short to be any is bad text.
        assert_eq!(trace.damage.is_empty(), cut == 0, "cut at {cut}");
    }
    let without_checksum = read_bytes(&file[..file.len() - 3]);
    assert_eq!(without_checksum.events, all.events);
    assert_eq!(kinds(&without_checksum.damage), [What::TornMember]);
}

#[test]
fn no_changed_byte_goes_unseen_or_panics() {
    let file = sealed(&[(0, "a", 3), (1, "a", 3), (2, "a", 3)]);
    let ranges: Vec<_> = walk(&file).map(|(range, _)| range).collect();
    for at in 0..file.len() {
        let mut bad = file.clone();
        bad[at] ^= 0x55;
        let trace = read_bytes(&bad);
        // The version of the extra field is the one thing that can change without a loss: the member is then read as
        // any gzip member is.
        assert!(!trace.damage.is_empty() || names(&trace).len() == 9, "byte {at}");
        let hit = ranges.iter().position(|range| range.contains(&at)).expect("a member");
        assert_eq!(trace.dialect, Dialect::Weftline, "byte {at}");
        let others: Vec<&str> =
            names(&trace).into_iter().filter(|name| !name.starts_with(&format!("a{hit}."))).collect();
        assert_eq!(others.len(), 6, "byte {at} costs no other member: {:?}", trace.damage);
    }
}

#[test]
fn damaged_members_do_not_hide_later_ones() {
    let good = sealed(&[(0, "a", 1), (1, "a", 1), (2, "a", 1)]);
    let second = walk(&good).nth(1).expect("a member").0;
    let check = |bytes: &[u8], expected: &[&str], what: &[What], case: &str| {
        let trace = read_bytes(bytes);
        assert_eq!(names(&trace), expected, "{case}");
        assert_eq!(kinds(&trace.damage), what, "{case}");
    };
    let mut long = good.clone();
    long[second.start + 24..second.start + 32].copy_from_slice(&u64::MAX.to_le_bytes());
    check(&long, &["a0.0", "a1.0", "a2.0"], &[What::TornMember, What::MissingSequence], "a size beyond the file");
    let mut short = good.clone();
    short[second.start + 24..second.start + 32].copy_from_slice(&7u64.to_le_bytes());
    check(&short, &["a0.0", "a2.0"], &[What::BadGzip, What::MissingSequence], "a size that cannot be");
    let mut gone = good.clone();
    gone.drain(second.clone());
    check(&gone, &["a0.0", "a2.0"], &[What::MissingSequence], "a member left out");
    let twice = [&good[..], &good[second.clone()]].concat();
    check(&twice, &["a0.0", "a1.0", "a2.0", "a1.0"], &[What::RepeatedSequence], "a member written twice");
    let mut junk = good.clone();
    junk.splice(second.start..second.start, *b"junk between members");
    check(&junk, &["a0.0", "a1.0", "a2.0"], &[What::BadGzip], "junk between members");
    let mut count = good.clone();
    count[second.start + 20] = 9;
    check(&count, &["a0.0", "a1.0", "a2.0"], &[What::WrongCount], "another count");
    let foreign =
        [&good[..second.start], &gzip(b"{\"name\":\"x\",\"ph\":\"X\",\"ts\":1}\n"), &good[second.start..]].concat();
    check(&foreign, &["a0.0", "x", "a1.0", "a2.0"], &[], "a foreign member between ours");
}

#[test]
fn images_that_share_a_file_count_on_their_own() {
    let file = sealed(&[(0, "a", 1), (0, "b", 1), (1, "a", 1), (1, "b", 1)]);
    assert_eq!(read_bytes(&file).damage, Damage::default());
    let shuffled = sealed(&[(1, "b", 1), (1, "a", 1), (0, "b", 1), (0, "a", 1)]);
    assert_eq!(read_bytes(&shuffled).damage, Damage::default());
    let pruned = sealed(&[(2, "a", 1), (3, "a", 1)]);
    let damage = read_bytes(&pruned).damage;
    assert_eq!(kinds(&damage), [What::MissingSequence]);
    assert_eq!(damage.flaws[0].note, "members 0 to 1 of image a");
}

#[test]
fn a_damaged_foreign_member_costs_itself() {
    let line = |name: &str| format!("{{\"name\":\"{name}\",\"ph\":\"X\",\"ts\":1,\"dur\":1,\"pid\":1,\"tid\":1}}\n");
    let mut bad = gzip(line("b").repeat(50).as_bytes());
    let middle = bad.len() / 2;
    bad[middle..middle + 8].fill(0xff);
    let file = [gzip(line("a").as_bytes()), bad, gzip(line("c").as_bytes())].concat();
    let trace = read_bytes(&file);
    let found = names(&trace);
    assert_eq!((found.first(), found.last()), (Some(&"a"), Some(&"c")), "{:?}", trace.damage);
    assert_eq!(kinds(&trace.damage)[0], What::BadGzip);
}

#[test]
fn places_lead_to_the_damage() {
    let text = b"{\"name\":\"a\",\"ph\":\"X\",\"ts\":1}\nnonsense\n{\"name\":\"b\",\"ph\":\"X\",\"ts\":1}\n";
    for (bytes, place) in [(text.to_vec(), Place::File(29)), (gzip(text), Place::Inflated(29))] {
        let trace = read_bytes(&bytes);
        assert_eq!(names(&trace), ["a", "b"]);
        let flaw = &trace.damage.flaws[0];
        assert_eq!((flaw.place, flaw.lost, flaw.what), (place, 8, What::BadLine));
    }
    let mut out = Vec::new();
    seal(text, 2, 0, &mut out, &mut Deflater::new());
    assert_eq!(read_bytes(&out).damage.flaws[0].place, Place::Member { member: 0, text: 29 });
}

#[test]
fn garbage_is_counted_not_listed_for_ever() {
    let text = "garbage\n{\"name\":\"a\",\"ph\":\"M\"}\n".repeat(3000);
    let trace = read_bytes(text.as_bytes());
    assert_eq!(trace.events.len(), 3000);
    assert_eq!((trace.damage.flaws.len(), trace.damage.len(), trace.damage.lost), (1000, 3000, 21_000));
    let garbage = read_bytes("garbage\n".repeat(3000).as_bytes());
    assert_eq!((garbage.damage.len(), garbage.events.len()), (1, 0), "one stretch is one flaw");
}

/// Events larger than any block or piece, and pieces cut within events, must not matter.
#[test]
fn large_texts_read_like_small_ones() {
    let event = |n: usize| {
        format!(
            "{{\n\"name\":\"e{n}\",\n\"ph\":\"X\",\n\"ts\":{n},\n\"dur\":1,\"args\":{{\"x\":\"{}\"}}\n}}",
            "y".repeat(n % 700)
        )
    };
    let count = 30_000;
    let spread: Vec<String> = (0..count).map(event).collect();
    let flat: Vec<String> = spread.iter().map(|text| text.replace('\n', "")).collect();
    let object = format!("{{\"first\":[1],\"traceEvents\":[{}],\"last\":2}}", flat.join(","));
    let expected = read_bytes(flat.join("\n").as_bytes());
    assert_eq!((expected.events.len(), expected.damage.len()), (count, 0));
    for (case, text) in
        [("spread over lines", spread.join(",\n")), ("one line", format!("[{}]", flat.join(","))), ("object", object)]
    {
        for bytes in [text.as_bytes().to_vec(), gzip(text.as_bytes())] {
            let trace = read_bytes(&bytes);
            assert_eq!(trace.damage, Damage::default(), "{case}");
            assert!(trace.events == expected.events, "{case}");
        }
    }
    let huge =
        format!("{{\"name\":\"huge\",\"ph\":\"X\",\"args\":{{\"x\":\"{}\"}}}}\n{}", "z".repeat(9 << 20), flat[0]);
    assert_eq!(names(&read_bytes(huge.as_bytes())), ["huge", "e0"]);
}
