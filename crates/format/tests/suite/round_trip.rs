//! Random events, written and read back: by this crate's reader, and by a naive one that asks serde_json line by line.

use std::io::Read as _;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value as Json;
use weftline_format::damage::What;
use weftline_format::event::{Event, Phase, Value};
use weftline_format::hash::{hex, path_hash};
use weftline_format::identity::Identity;
use weftline_format::line::LineBuf;
use weftline_format::member::{Deflater, seal};
use weftline_format::reader::read_bytes;
use weftline_format::text::{from_bytes, path_bytes};

/// Text as it occurs, text full of what JSON must escape, and bytes of any kind.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z_0-9/.]{0,20}",
        "[\"\\\\\\x00-\\x1f{}\\[\\],:]{0,12}",
        any::<String>().prop_map(|text| from_bytes(text.as_bytes()).into_owned()),
        vec(any::<u8>(), 0..20).prop_map(|bytes| from_bytes(&bytes).into_owned()),
        Just("NaN".to_owned()),
        Just("-Infinity".to_owned()),
        Just("\u{10FFFF}\u{7f}\u{2028}".to_owned()),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(0), -9i64..100].prop_map(Value::Int),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::Float),
        prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY), Just(-0.0), Just(5e-324)]
            .prop_map(Value::Float),
        text().prop_map(Value::Str),
        vec(any::<i32>(), 0..4).prop_map(|list| Value::Json(format!("{list:?}"))),
        Just(Value::Json(r#"{"a":[{"b":"}\"]"}],"c":123456789012345678901234567890}"#.into())),
    ]
}

/// Times near today, near zero, and as far as whole microseconds in 64 bits of nanoseconds go.
fn time() -> impl Strategy<Value = i64> {
    prop_oneof![
        1_794_764_744_755_824_123i64..1_794_764_744_999_999_999,
        -5_000i64..5_000,
        any::<i64>().prop_map(|v| v / 4)
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let key = prop_oneof!["[a-z]{1,8}", text()];
    // Keys that mean something at the top level are no extra fields.
    let extra_key = "x[a-z]{0,5}";
    (
        (prop::sample::select(&Phase::ALL[..]), text(), text(), any::<i64>(), any::<i64>()),
        (prop::option::of(time()), prop::option::of(prop_oneof![0i64..5_000, any::<i64>().prop_map(|v| v / 4)])),
        prop::option::of(prop_oneof![text(), "[0-9]{1,20}"]),
        vec((key, value()), 0..6),
        vec((extra_key, value()), 0..2),
    )
        .prop_map(|((phase, name, cat, pid, tid), (start_ns, dur_ns), id, args, extra)| Event {
            phase,
            name,
            cat,
            pid,
            tid,
            start_ns,
            // What has no time has no duration that anybody could use.
            dur_ns: dur_ns.filter(|_| start_ns.is_some()),
            id,
            args,
            extra,
        })
}

/// Equality in which all NaNs are one.
fn same(a: &[Event], b: &[Event]) -> bool {
    let bits = |value: &Value| match value {
        Value::Float(v) if v.is_nan() => Value::Str("a NaN".into()),
        Value::Float(v) => Value::Str(format!("float {:x}", v.to_bits())),
        other => other.clone(),
    };
    let plain = |event: &Event| {
        let clean = |list: &[(String, Value)]| list.iter().map(|(k, v)| (k.clone(), bits(v))).collect();
        Event { args: clean(&event.args), extra: clean(&event.extra), ..event.clone() }
    };
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| plain(a) == plain(b))
}

fn sealed(events: &[Event], per_member: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut deflater = Deflater::new();
    for (seq, chunk) in events.chunks(per_member).enumerate() {
        let mut lines = LineBuf::new();
        for event in chunk {
            lines.write_event(event);
        }
        let count = chunk.iter().filter(|event| event.counts()).count();
        seal(lines.as_bytes(), count as u32, seq as u64, &mut out, &mut deflater);
    }
    out
}

/// serde_json takes no lone surrogates: they become the characters that stand for them, the naive way.
fn without_lone_surrogates(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let code = rest.get(at + 2..at + 6).filter(|_| rest[at + 1..].starts_with('u'));
        let surrogate =
            code.and_then(|code| u32::from_str_radix(code, 16).ok()).filter(|code| (0xD800..0xE000).contains(code));
        let (text, len) = match surrogate {
            Some(code) => (char::from_u32(code + 0x10_0000).expect("a character").to_string(), 6),
            None => (rest[at..at + 2].to_owned(), 2),
        };
        out.push_str(&text);
        rest = &rest[at + len..];
    }
    out + rest
}

fn naive_matches(event: &Event, line: &str) {
    let json: Json = serde_json::from_str(&without_lone_surrogates(line)).unwrap_or_else(|e| panic!("{e}: {line}"));
    let text = |key: &str| json.get(key).and_then(Json::as_str).unwrap_or_default().to_owned();
    assert_eq!((text("name"), text("cat")), (event.name.clone(), event.cat.clone()), "{line}");
    assert_eq!(text("ph"), event.phase.letter().to_string(), "{line}");
    assert_eq!((json["pid"].as_i64(), json["tid"].as_i64()), (Some(event.pid), Some(event.tid)), "{line}");
    let ns = json.get("ns").map_or(0, |ns| ns.as_i64().expect("an integer"));
    if let Some(start) = event.start_ns {
        let ts = json["ts"].as_i64().expect("an integer");
        assert_eq!((ts, ts * 1000 + ns / 1000), (start.div_euclid(1000), start), "{line}");
        if let Some(dur) = event.dur_ns {
            let end = ts + json["dur"].as_i64().expect("an integer");
            assert_eq!((end, end * 1000 + ns % 1000), ((start + dur).div_euclid(1000), start + dur), "{line}");
        }
    }
    // serde_json keeps the last of repeated keys, as `Event::arg` does.
    for (key, _) in &event.args {
        let found = &json["args"][key.as_str()];
        match event.arg(key).expect("its own argument") {
            Value::Null => assert!(found.is_null(), "{line}"),
            Value::Bool(v) => assert_eq!(found.as_bool(), Some(*v), "{line}"),
            Value::Int(v) => assert_eq!(found.as_i64(), Some(*v), "{line}"),
            Value::UInt(v) => assert_eq!(found.as_u64(), Some(*v), "{line}"),
            Value::Float(v) if v.is_finite() => {
                let read = found.as_f64().expect("a number");
                // serde_json rounds to a neighbour now and then; this crate must not.
                assert!((read - v).abs() <= v.abs() * 1e-15 + f64::MIN_POSITIVE, "{line}");
            }
            Value::Float(v) => assert_eq!(found.as_str(), Some(&*format!("{v}").replace("inf", "Infinity")), "{line}"),
            Value::Str(v) => assert_eq!(found.as_str(), Some(v.as_str()), "{line}"),
            Value::Json(v) => assert_eq!(*found, serde_json::from_str::<Json>(v).expect("JSON"), "{line}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn events_come_back(events in vec(event(), 1..12), per_member in 1usize..5) {
        let file = sealed(&events, per_member);
        let trace = read_bytes(&file);
        let without_time = |event: &&Event| event.start_ns.is_none() && event.phase != Phase::Metadata;
        prop_assert_eq!(trace.damage.len(), events.iter().filter(without_time).count() as u64);
        prop_assert!(trace.damage.flaws.iter().all(|flaw| flaw.what == What::BadTime), "{:?}", trace.damage);
        prop_assert!(same(&trace.events, &events), "{:#?}\n{:#?}", trace.events, events);

        let mut inflated = String::new();
        flate2::read::MultiGzDecoder::new(&file[..]).read_to_string(&mut inflated).expect("gzip of UTF-8");
        prop_assert_eq!(inflated.lines().count(), events.len());
        for (event, line) in events.iter().zip(inflated.lines()) {
            naive_matches(event, line);
        }
    }

    #[test]
    fn the_straight_way_writes_the_same(
        name in text(), cat in text(), pid: u32, tid: u32, start in time(), dur in 0i64..10_000_000,
        key in text(), int: i64, uint: u64, float: f64, flag: bool, bytes in vec(any::<u8>(), 0..40), id: u64,
    ) {
        let mut lines = LineBuf::new();
        Identity { pid, nonce: "n".into(), ..Identity::default() }.write(&mut lines);
        lines.complete(&name, &cat, pid, tid, start, start + dur);
        lines.arg_i64(&key, int).arg_u64("u", uint).arg_f64("f", float).arg_bool("b", flag);
        lines.arg_str("s", &bytes).arg_hash("h", id).arg_strs("l", [&bytes[..], b"x"]).finish();
        lines.flow_end(&name, &cat, pid, tid, start, id).finish();
        let trace = read_bytes(lines.as_bytes());
        prop_assert_eq!(&trace.damage.flaws, &[]);
        let text = from_bytes(&bytes).into_owned();
        let span = Event {
            start_ns: Some(start),
            dur_ns: Some(dur),
            args: vec![
                (key, Value::Int(int)),
                ("u".into(), Value::from(uint)),
                ("f".into(), Value::Float(float)),
                ("b".into(), Value::Bool(flag)),
                ("s".into(), Value::Str(text)),
                ("h".into(), Value::Str(String::from_utf8(hex(id).to_vec()).expect("digits"))),
            ],
            ..Event::new(Phase::Complete, name.clone(), cat.clone(), i64::from(pid), i64::from(tid))
        };
        let mut found = trace.events[1].clone();
        prop_assert!(matches!(found.args.pop(), Some((key, Value::Json(_))) if key == "l"));
        prop_assert!(same(&[found], std::slice::from_ref(&span)), "{:#?}\n{:#?}", trace.events[1], span);
        let flow = Event {
            phase: Phase::FlowEnd,
            dur_ns: None,
            id: Some(format!("0x{id:x}")),
            args: vec![],
            extra: vec![("bp".into(), "e".into())],
            ..span
        };
        prop_assert_eq!(&trace.events[2], &flow);
    }

    #[test]
    fn neighbours_never_overlap(start in time(), steps in vec(0i64..3_000, 2..30)) {
        let mut lines = LineBuf::new();
        let mut at = start;
        for step in &steps {
            lines.complete("n", "c", 1, 1, at, at + step).finish();
            at += step;
        }
        let text = String::from_utf8(lines.into_bytes()).expect("UTF-8");
        let mut last_end = i64::MIN;
        for line in text.lines() {
            let json: Json = serde_json::from_str(line).expect("JSON");
            let ts = json["ts"].as_i64().expect("an integer");
            prop_assert!(ts >= last_end, "{}", text);
            last_end = ts + json["dur"].as_i64().expect("an integer");
        }
        let trace = read_bytes(text.as_bytes());
        let times: Vec<i64> = trace.events.iter().filter_map(|event| event.dur_ns).collect();
        // Without a single remainder the text could be anybody's, and means the same.
        prop_assert_eq!(times, steps);
    }

    #[test]
    fn any_path_comes_back(path in vec(any::<u8>(), 0..60), other in any::<String>()) {
        for path in [&path[..], other.as_bytes()] {
            let hash = path_hash(path);
            let mut lines = LineBuf::new();
            Identity { pid: 1, exe: from_bytes(path).into_owned(), cmd: vec![from_bytes(path).into_owned()], ..Identity::default() }
                .write(&mut lines);
            lines.define_path(1, 1, hash, path);
            lines.complete("read", "POSIX", 1, 1, 0, 1).arg_hash("fhash", hash).finish();
            let trace = read_bytes(lines.as_bytes());
            prop_assert_eq!(&trace.damage.flaws, &[]);
            let found = trace.path_of(&trace.events[2]).expect("a defined path");
            prop_assert_eq!(&*path_bytes(found), path);
            let identity = Identity::from_event(&trace.events[0]).expect("an identity line");
            prop_assert_eq!(&*path_bytes(&identity.cmd[0]), path);
            prop_assert_eq!(&*path_bytes(&identity.exe), path);
        }
    }

    #[test]
    fn reading_anything_is_stable(bytes in vec(prop_oneof![
        4 => prop::sample::select(&b"{}[]\",:\\\nntufe0123.-+ "[..]),
        1 => any::<u8>(),
    ], 0..300)) {
        let text = [b"{\"name\":\"a\",\"ph\":\"X\",\"args\":{\"k\":".as_slice(), &bytes].concat();
        for input in [&bytes, &text] {
            let events = read_bytes(input).events;
            let once = read_bytes(&sealed(&events, 3));
            prop_assert!(once.damage.flaws.iter().all(|flaw| flaw.what == What::BadTime), "{:?}", once.damage);
            let twice = read_bytes(&sealed(&once.events, 3));
            prop_assert!(same(&once.events, &twice.events));
        }
    }
}
