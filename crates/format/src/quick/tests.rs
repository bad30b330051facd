//! Both ways give the same records, whatever the text; and a record holds all that its line said.

use proptest::prelude::*;

use super::*;
use crate::event::Event;

const FOREIGN: Reading = Reading { dialect: Dialect::Chrome, unit_ns: 1000 };
const OWN: Reading = Reading::own();

/// A record on its own, as text that can be compared and read.
fn shown(record: &Record<'_>) -> String {
    format!("{record:?}")
}

/// All that a scan finds.
fn found(quick: &mut Quick, text: &[u8], last: bool) -> (Vec<String>, usize) {
    let out = std::cell::RefCell::new(Vec::new());
    let push = |found: String| out.borrow_mut().push(found);
    let used =
        quick.scan(text, last, &mut |record| push(shown(record)), &mut |aside: Aside<'_>| push(format!("{aside:?}")));
    (out.into_inner(), used)
}

/// The same by the checked way alone.
fn found_checked(text: &[u8], last: bool, reading: Reading) -> (Vec<String>, usize) {
    let mut out = Vec::new();
    let mut scratch = Scratch::default();
    let mut used = text.len();
    for item in Items::new(text, reading, last) {
        match item {
            Item::Event(event) => {
                checked::deliver(&event, reading, &mut scratch, &mut |record| out.push(shown(record)));
                if event.lacks_time() {
                    let at = event.raw().as_ptr().addr() - text.as_ptr().addr();
                    out.push(format!("{:?}", Aside::Flaw { at, len: 0, what: What::BadTime, note: NO_TIME }));
                }
            }
            Item::Incomplete(at) => used = at,
            Item::Header(pairs) => {
                out.push(format!("{:?}", Aside::Header(pairs.into_iter().map(decoded).collect())));
            }
            Item::Pair { at, len, key, value } => {
                let (key, value) = decoded((key, value));
                out.push(format!("{:?}", Aside::Pair { at, len, key, value }));
            }
            Item::Flaw { at, len, what, note } => out.push(format!("{:?}", Aside::Flaw { at, len, what, note })),
        }
    }
    (out, used)
}

/// Both ways agree, on a first look and when every shape is known; and lines made of the records read as the same records.
fn check_text(text: &[u8], last: bool, reading: Reading) {
    let expected = found_checked(text, last, reading);
    let mut quick = Quick::new(reading);
    for look in ["first", "second"] {
        assert_eq!(found(&mut quick, text, last), expected, "{look} look: {}", text.escape_ascii());
    }
    check_unread(text, last, reading, &mut quick);
    let mut lines = Vec::new();
    quick.scan(text, last, &mut |record| lines.push(rebuild(record, reading)), &mut |_| {});
    let before = events(text, last, reading);
    let after = events(lines.join("\n").as_bytes(), true, reading);
    assert_eq!(before.len(), after.len(), "{}", text.escape_ascii());
    for ((before, after), line) in before.iter().zip(&after).zip(&lines) {
        assert_eq!(settled(before), settled(after), "{line} for {}", text.escape_ascii());
    }
}

/// What nobody reads changes nothing else, whether the shapes are known or not.
fn check_unread(text: &[u8], last: bool, reading: Reading, known: &mut Quick) {
    let arguments = 0b1010_1010_1010;
    let unread = Unread::arguments(arguments).and_id().and_process();
    let all_else = |quick: &mut Quick| {
        let (mut records, mut asides) = (Vec::new(), Vec::new());
        let each = &mut |record: &Record<'_>| {
            let (mut present, mut integers) = (record.present, record.integers);
            present &= !arguments;
            (0..INTEGERS.len()).filter(|i| arguments >> i & 1 == 1).for_each(|i| integers[i] = 0);
            records.push(shown(&Record { present, integers, id: None, pid: 0, tid: 0, ..*record }));
        };
        let used = quick.scan(text, last, each, &mut |aside: Aside<'_>| asides.push(format!("{aside:?}")));
        (records, asides, used)
    };
    let expected = all_else(&mut Quick::careful(reading));
    let mut fresh = Quick::new(reading);
    for quick in [&mut fresh, known] {
        quick.set_unread(unread);
        for _ in 0..2 {
            assert_eq!(all_else(quick), expected, "{}", text.escape_ascii());
        }
        quick.set_unread(Unread::default());
    }
}

fn events(text: &[u8], last: bool, reading: Reading) -> Vec<Event> {
    let event = |item| match item {
        Item::Event(event) => Some(event.to_event()),
        _ => None,
    };
    Items::new(text, reading, last).filter_map(event).collect()
}

/// An event by its meaning: fields by their keys, the last one where a key is repeated.
fn settled(event: &Event) -> String {
    let fields = |list: &[(String, Value)]| {
        let map: std::collections::BTreeMap<_, _> = list.iter().cloned().collect();
        format!("{map:?}")
    };
    let bare = Event { args: Vec::new(), extra: Vec::new(), ..event.clone() };
    format!("{bare:?} {} {}", fields(&event.args), fields(&event.extra))
}

/// A line, and what its record says of the parts that are not copied from the event.
fn check(line: &str, reading: Reading, expected: &str) {
    check_text(line.as_bytes(), true, reading);
    let mut quick = Quick::new(reading);
    for _ in 0..2 {
        let mut shown = Vec::new();
        let each = &mut |r: &Record<'_>| {
            let integers = INTEGERS.iter().enumerate().filter(|(i, _)| r.present & 1 << i != 0);
            let integers: Vec<String> = integers.map(|(i, name)| format!("{name}={}", r.integers[i])).collect();
            shown.push(format!(
                "{} {:?} {:?} {:?} {:?}{} {:?}{} {} | {} | {}",
                r.name,
                r.start_ns,
                r.dur_ns,
                r.id,
                r.fhash,
                if r.fhash_is_number { "#" } else { "" },
                r.hhash,
                if r.hhash_is_number { "#" } else { "" },
                integers.join(" "),
                r.rest,
                r.extra
            ));
        };
        quick.scan(line.as_bytes(), true, each, &mut |aside| panic!("{aside:?} in {line}"));
        assert_eq!(shown.join("\n"), expected, "{line}");
    }
}

#[test]
fn a_line_becomes_columns() {
    check(
        r#"{"id":7,"name":"read","cat":"POSIX","pid":1,"tid":2,"ts":5,"dur":3,"ph":"X","args":{"hhash":"ab","fhash":"cd","fd":3,"ret":-1,"x":[1, 2],"size":4096,"y":"\n"}}"#,
        FOREIGN,
        r#"read Some(5000) Some(3000) Some(7) Some("cd") Some("ab") fd=3 size=4096 ret=-1 | "x":[1, 2],"y":"\n" | "#,
    );
    check(
        r#"{"ph":1,"name":"a\u0062","ts":1.5,"dur":2.0,"id":"x","args":{"fhash":18446744073709551615,"ret":"3","size":1.5}}"#,
        FOREIGN,
        r#"ab Some(1500) Some(2000) None Some("18446744073709551615")# None size=1 ret=3 | "ret":"3","size":1.5 | "id":"x""#,
    );
    check(
        r#"{"ph":"X","name":"n","ts":5,"dur":1,"ns":250750,"own":{"a":1},"args":{}}"#,
        OWN,
        r#"n Some(5250) Some(1500) None None None  |  | "own":{"a":1}"#,
    );
    check(
        r#"{"ph":"X","name":"n","ts":5,"dur":1,"ns":250750}"#,
        FOREIGN,
        r#"n Some(5000) Some(1000) None None None  |  | "ns":250750"#,
    );
}

#[test]
fn what_is_not_exact_is_kept_as_text() {
    for (field, extra) in [
        (r#""pid":"main""#, r#""pid":"main""#),
        (r#""pid":"12""#, r#""pid":"12""#),
        (r#""pid":007"#, r#""pid":007"#),
        (r#""pid":-0"#, r#""pid":-0"#),
        (r#""pid":12"#, ""),
        (r#""pid":"a","pid":3"#, ""),
        (r#""pid":3,"pid":"a""#, r#""pid":3,"pid":"a""#),
        (r#""ts":1.0005"#, r#""ts":1.0005"#),
        (r#""ts":1.000,"dur":0.0001"#, r#""ts":1.000,"dur":0.0001"#),
        (r#""ts":1e3"#, r#""ts":1e3"#),
        (r#""ts":99999999999999999999"#, r#""ts":99999999999999999999"#),
        (r#""args":[1]"#, r#""args":[1]"#),
        (r#""id":1.5"#, r#""id":1.5"#),
        (r#""ph":"I""#, r#""ph":"X","ph":"I""#),
        (r#""ph":"p""#, r#""ph":"X","ph":"p""#),
        (r#""s" : "t""#, r#""s":"t""#),
    ] {
        let line = format!(r#"{{"ph":"X",{field}}}"#);
        check_text(line.as_bytes(), true, FOREIGN);
        let mut quick = Quick::new(FOREIGN);
        let each = &mut |r: &Record<'_>| assert_eq!(r.extra, extra, "{line}");
        quick.scan(line.as_bytes(), true, each, &mut |aside| assert!(is_about_time(&aside), "{aside:?} in {line}"));
    }
    for (times, extra) in [
        (r#""ts":5,"ns":0"#, r#""ts":5,"ns":0"#),
        (r#""ts":5,"ns":7"#, r#""ts":5,"ns":7"#),
        (r#""ts":5,"ns":7000"#, ""),
        (r#""dur":5"#, r#""dur":5"#),
        (r#""ts":5.5,"dur":1"#, r#""ts":5.5,"dur":1"#),
    ] {
        let line = format!(r#"{{"ph":"X",{times}}}"#);
        check_text(line.as_bytes(), true, OWN);
        let each = &mut |r: &Record<'_>| assert_eq!(r.extra, extra, "{line}");
        let aside = &mut |aside: Aside<'_>| assert!(is_about_time(&aside), "{aside:?} in {line}");
        Quick::new(OWN).scan(line.as_bytes(), true, each, aside);
    }
}

fn is_about_time(aside: &Aside<'_>) -> bool {
    matches!(aside, Aside::Flaw { what: What::BadTime, .. })
}

#[test]
fn integers_may_be_written_as_text() {
    for (value, ret) in [
        (r#""4194304""#, Some(4_194_304)),
        (r#""-9""#, Some(-9)),
        (r#"" 7 ""#, Some(7)),
        ("4096.0", Some(4096)),
        ("4.5e3", Some(4500)),
        ("1e40", None),
        (r#""4 MiB""#, None),
        (r#""""#, None),
        ("null", None),
        ("[4]", None),
    ] {
        let line = format!(r#"{{"ph":"X","name":"read","ts":1,"dur":2,"args":{{"fd":3,"ret":{value},"size":5}}}}"#);
        check_text(line.as_bytes(), true, FOREIGN);
        let mut quick = Quick::new(FOREIGN);
        for look in ["first", "second"] {
            let each = &mut |r: &Record<'_>| {
                assert_eq!((r.present & 4 != 0).then_some(r.integers[2]), ret, "{look} look: {line}");
                assert_eq!(r.rest, format!(r#""ret":{value}"#), "{look} look");
                assert_eq!(integers_in(r.rest), 4, "{look} look");
            };
            quick.scan(line.as_bytes(), true, each, &mut |aside| panic!("{aside:?} in {line}"));
        }
    }
}

#[test]
fn events_without_a_time_are_told() {
    for (times, flaws) in [
        (r#""ts":NaN,"dur":10"#, 1),
        (r#""ts":null,"dur":10"#, 1),
        (r#""ts":"soon","dur":10"#, 1),
        (r#""ts":1e40,"dur":10"#, 1),
        (r#""dur":10"#, 1),
        (r#""ts":"12","dur":10"#, 0),
        (r#""ts":-12,"dur":10"#, 0),
    ] {
        let line = format!(r#"{{"ph":"X","name":"n",{times}}}"#);
        check_text(line.as_bytes(), true, FOREIGN);
        let mut quick = Quick::new(FOREIGN);
        for look in ["first", "second"] {
            let (mut found, mut has_times) = (0, true);
            let each = &mut |r: &Record<'_>| has_times = r.start_ns.is_some() && r.dur_ns.is_some();
            quick.scan(line.as_bytes(), true, each, &mut |aside| found += usize::from(is_about_time(&aside)));
            assert_eq!((found, has_times), (flaws, flaws == 0), "{look} look: {line}");
        }
        let metadata = line.replace(r#""X""#, r#""M""#);
        quick.scan(metadata.as_bytes(), true, &mut |_| {}, &mut |aside| panic!("{aside:?} in {metadata}"));
    }
}

#[test]
fn bytes_that_are_no_text_come_back() {
    for odd in [&b"\xff"[..], b"\\\xff", b"\\ud83d\xff", b"a\\\\\xff\xfe", "\u{10dc80}".as_bytes(), b"\\\\\\\xff"] {
        let line = [&br#"{"ph":"X","name":""#[..], odd, br#"","args":{"p":""#, odd, b"\"}}\n"].concat();
        check_bytes(&line);
        // The lines around are not held up by it.
        let plain = &b"{\"ph\":\"X\",\"name\":\"\xc3\xa9\"}\n"[..];
        check_bytes(&[plain, &line, plain, &line].concat());
    }
}

fn check_bytes(text: &[u8]) {
    let expected = found_checked(text, true, FOREIGN);
    let mut quick = Quick::new(FOREIGN);
    for _ in 0..2 {
        assert_eq!(found(&mut quick, text, true), expected, "{}", text.escape_ascii());
    }
    let values: Vec<Option<Value>> = events(text, true, FOREIGN).iter().map(|e| e.arg("p").cloned()).collect();
    let mut kept = Vec::new();
    let each = &mut |r: &Record<'_>| kept.push(fields(r.rest).next().map(|(_, value)| value));
    quick.scan(text, true, each, &mut |_| {});
    let paths = |list: &[Option<Value>]| -> Vec<_> {
        let bytes = |v: &Option<Value>| Some(crate::text::path_bytes(v.as_ref()?.as_str()?).into_owned());
        list.iter().map(bytes).collect()
    };
    assert_eq!(paths(&kept), paths(&values), "{}", text.escape_ascii());
}

#[test]
fn keys_without_end_do_not_fill_the_memory() {
    let mut text = String::new();
    for i in 0..20_000 {
        text.push_str(&format!("{{\"ph\":\"X\",\"args\":{{\"k{}\":{{\"v\":{i}}},\"n{i}\":1}}}}\n", i % 50));
    }
    let mut quick = Quick::new(FOREIGN);
    let expected = found_checked(text.as_bytes(), true, FOREIGN);
    assert_eq!(found(&mut quick, text.as_bytes(), true), expected);
    assert!(quick.shapes.len() <= 4096, "{} nodes", quick.shapes.len());
}

#[test]
fn known_shapes_take_the_fast_way() {
    let lines: String = (0..50)
        .map(|i| {
            format!(
                "{{\"id\":{i},\"name\":\"r{i}\",\"cat\":\"é\",\"pid\":1,\"tid\":2,\"ts\":5{i},\"dur\":3,\"ph\":\"X\",\"args\":{{\"hhash\":\"{i:016x}\",\"a\":1.5,\"b\":{{\"c\":[{i}]}},\"ret\":\"x\",\"fd\":{i}}}}}\r\n"
            )
        })
        .collect();
    let mut quick = Quick::new(FOREIGN);
    found(&mut quick, lines.as_bytes(), true);
    let mut at = 0;
    for line in lines.lines() {
        let how = fast::How { reading: FOREIGN, unread: 0 };
        let used = fast::event(&lines, at, &mut quick.shapes, how, &mut quick.scratch, &mut |_| {});
        assert_eq!(used, Ok(at + line.len()), "{line}");
        at += line.len() + 2;
    }
}

/// Categories are parts of links while they are few, and values when they are many; both go the fast way.
#[test]
fn any_number_of_categories() {
    let lines: String = (0..400)
        .map(|i| format!("{{\"name\":\"r\",\"cat\":\"c{}\",\"ph\":\"X\",\"ts\":{i},\"dur\":1}}\n", i % 100))
        .collect();
    check_text(lines.as_bytes(), true, FOREIGN);
    let mut quick = Quick::new(FOREIGN);
    let expected = found(&mut quick, lines.as_bytes(), true);
    let (how, mut at) = (fast::How { reading: FOREIGN, unread: 0 }, 0);
    let mut seen = Vec::new();
    for line in lines.lines() {
        let each = &mut |record: &Record<'_>| seen.push(shown(record));
        let used = fast::event(&lines, at, &mut quick.shapes, how, &mut quick.scratch, each);
        assert_eq!(used, Ok(at + line.len()), "{line}");
        at += line.len() + 1;
    }
    assert_eq!(seen, expected.0);
}

/// Keys that occur, known ones more often.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => proptest::sample::select(vec!["name", "cat", "ph", "pid", "tid", "ts", "dur", "ns", "id", "args"]),
        2 => proptest::sample::select(vec!["s", "bp", "a\\\"b", "na\\u006de", "traceEvents", "é", ""]),
    ]
    .prop_map(str::to_owned)
}

fn argument_key() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => proptest::sample::select(INTEGERS.to_vec()),
        3 => proptest::sample::select(vec!["fhash", "hhash"]),
        3 => proptest::sample::select(vec!["x", "fname", "f\\u0064", "a key of more than sixteen bytes", "value"]),
    ]
    .prop_map(str::to_owned)
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => any::<u16>().prop_map(|v| v.to_string()),
        2 => any::<i64>().prop_map(|v| v.to_string()),
        2 => (0u64..2_000_000_000_000_000).prop_map(|v| v.to_string()),
        1 => any::<u64>().prop_map(|v| v.to_string()),
        1 => any::<i16>().prop_map(|v| format!("{}.{}", v, v.unsigned_abs() % 7)),
        1 => proptest::sample::select(vec![
            "0", "-0", "00", "-1", "1e3", "1.25E-7", "999999", "1000000", "123456789012345678", "1234567890123456789",
            "99999999999999999999999", "NaN", "-inf", "0.0005", "1e999",
        ])
        .prop_map(str::to_owned),
    ]
}

fn string() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-zA-Z_/ .]{0,20}",
        2 => proptest::sample::select(vec![
            "X", "M", "C", "i", "I", "B", "12", "-5", "1.5", "\\n", "a\\\\", "\\u00e9é", "\\ud83d\\ude00", "\\udcff", "\\x", "NaN",
            "}}{\\\"", "\t", "\u{10dc80}",
        ])
        .prop_map(str::to_owned),
    ]
    .prop_map(|inside| format!("\"{inside}\""))
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        5 => number(),
        5 => string(),
        1 => proptest::sample::select(vec!["null", "true", "false", "[]", "{}", "[1, {\"a\":[2]}]", "{\"fd\": 3}"])
            .prop_map(str::to_owned),
    ]
}

fn joined(fields: &[(String, String)], space: &str) -> String {
    let fields: Vec<String> = fields.iter().map(|(k, v)| format!("\"{k}\":{space}{v}")).collect();
    format!("{{{}}}", fields.join(&format!(",{space}")))
}

fn space() -> impl Strategy<Value = &'static str> {
    prop_oneof![8 => Just(""), 1 => Just(" "), 1 => Just("\n ")]
}

/// An event as a known writer makes it, with odd values here and there.
fn usual_line() -> impl Strategy<Value = String> {
    let odd = |usual: BoxedStrategy<String>| prop_oneof![12 => usual, 1 => value()];
    let integer = || (0u32..100_000).prop_map(|v| v.to_string()).boxed();
    let arguments = proptest::collection::vec((argument_key(), odd(integer())), 0..4);
    let top = (odd(Just("\"read\"".to_owned()).boxed()), odd(integer()), odd(integer()), odd(integer()), integer());
    let ph = odd(prop_oneof![Just("\"X\""), Just("1"), Just("\"M\"")].prop_map(str::to_owned).boxed());
    (top, ph, arguments, proptest::option::of((key(), value())), space()).prop_map(
        |((name, pid, ts, dur, ns), ph, arguments, more, space)| {
            let mut fields: Vec<(String, String)> =
                [("name", name), ("pid", pid), ("ts", ts), ("dur", dur), ("ph", ph)]
                    .map(|(key, value)| (key.to_owned(), value))
                    .into();
            fields.push(("ns".to_owned(), ns));
            fields.push(("args".to_owned(), joined(&arguments, space)));
            fields.extend(more);
            joined(&fields, space)
        },
    )
}

fn odd_line() -> impl Strategy<Value = String> {
    let arguments = proptest::collection::vec((argument_key(), value()), 0..6);
    let fields = proptest::collection::vec((key(), value()), 0..6);
    (fields, arguments, space()).prop_map(|(mut fields, arguments, space)| {
        fields.push(("args".to_owned(), joined(&arguments, space)));
        fields.push(("ph".to_owned(), "\"X\"".to_owned()));
        joined(&fields, space)
    })
}

fn text() -> impl Strategy<Value = String> {
    let garbage =
        proptest::sample::select(vec!["junk", "{\"a\":", "[", "]", "{}", "\"k\":1", "{\"ph\"", "\u{feff}", "}"]);
    let line = prop_oneof![8 => usual_line(), 4 => odd_line(), 1 => garbage.prop_map(str::to_owned)];
    let end = proptest::sample::select(vec!["\n", "\n", "\r\n", ",\n", "", "]\n[", " "]);
    proptest::collection::vec((line, end), 1..12)
        .prop_map(|lines| lines.into_iter().map(|(line, end)| line + end).collect())
}

fn reading() -> impl Strategy<Value = Reading> {
    let units = proptest::sample::select(vec![1, 1000, 1_000_000, 1_000_000_000]);
    prop_oneof![Just(OWN), units.prop_map(|unit_ns| Reading { dialect: Dialect::Chrome, unit_ns })]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_ways_agree(text in text(), reading in reading(), last: bool, cut in 0usize..400) {
        check_text(text.as_bytes(), last, reading);
        check_text(&text.as_bytes()[..cut.min(text.len())], last, reading);
    }

    #[test]
    fn both_ways_agree_on_any_byte(text in text(), spots in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5)) {
        let mut bytes = text.into_bytes();
        for (spot, byte) in spots {
            if !bytes.is_empty() {
                let at = spot.index(bytes.len());
                bytes[at] = byte;
            }
        }
        let expected = found_checked(&bytes, true, FOREIGN);
        let mut quick = Quick::new(FOREIGN);
        for _ in 0..2 {
            prop_assert_eq!(&found(&mut quick, &bytes, true), &expected);
        }
    }
}
