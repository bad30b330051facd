//! Requests in every form, and what is wrong with some.

use super::*;
use crate::formats::wire::make::{bytes, fixed, message, number};
use crate::sink::Memory;

const LINE: &str = concat!(
    r#"{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"front"}},"#,
    r#"{"key":"process.pid","value":{"intValue":"77"}},{"key":"host.name","value":{"stringValue":"h"}}]},"#,
    r#""scopeSpans":[{"scope":{"name":"lib","version":"2"},"spans":[{"traceId":"0102030405060708090a0b0c0d0e0f10","#,
    r#""spanId":"0102030405060708","name":"get","kind":2,"startTimeUnixNano":"1000","endTimeUnixNano":"3000","#,
    r#""attributes":[{"key":"n","value":{"intValue":"-5"}},{"key":"d","value":{"doubleValue":1}},"#,
    r#"{"key":"l","value":{"arrayValue":{"values":[{"boolValue":true},{"stringValue":"x"}]}}}],"#,
    r#""events":[{"timeUnixNano":"2000","name":"tick","attributes":[{"key":"e","value":{"stringValue":"y"}}]}],"#,
    r#""links":[{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060709"}],"#,
    r#""status":{"code":2,"message":"bad"}}]}]}]}"#,
);

fn text(key: &str, value: &str) -> Vec<u8> {
    [bytes(1, key.as_bytes()), message(2, &[bytes(1, value.as_bytes())])].concat()
}

/// The same as [`LINE`].
fn request() -> Vec<u8> {
    let trace: Vec<u8> = (1..=16).collect();
    let whole =
        |key: &str, value: i64| [bytes(1, key.as_bytes()), message(2, &[number(3, value.cast_unsigned())])].concat();
    let list = message(5, &[message(1, &[number(2, 1)]), message(1, &[bytes(1, b"x")])]);
    let span = [
        bytes(1, &trace),
        bytes(2, &trace[..8]),
        bytes(5, b"get"),
        number(6, 2),
        fixed(7, 1000),
        fixed(8, 3000),
        bytes(9, &whole("n", -5)),
        message(9, &[bytes(1, b"d"), message(2, &[fixed(4, 1.0_f64.to_bits())])]),
        message(9, &[bytes(1, b"l"), message(2, &[list])]),
        message(11, &[fixed(1, 2000), bytes(2, b"tick"), bytes(3, &text("e", "y"))]),
        message(13, &[bytes(1, &trace), bytes(2, &[1, 2, 3, 4, 5, 6, 7, 9])]),
        message(15, &[bytes(2, b"bad"), number(3, 2)]),
    ];
    let resource = [
        bytes(1, &text("service.name", "front")),
        bytes(1, &whole("process.pid", 77)),
        bytes(1, &text("host.name", "h")),
    ];
    let scope = message(2, &[message(1, &[bytes(1, b"lib"), bytes(2, b"2")]), message(2, &span)]);
    message(1, &[message(1, &resource), scope])
}

/// What both become, in the order of the protobuf message.
fn expected() -> Vec<String> {
    let ids = "trace_id=0102030405060708090a0b0c0d0e0f10 span_id=0102030405060708";
    let links = r#"[{"trace_id":"0102030405060708090a0b0c0d0e0f10","span_id":"0102030405060709"}]"#;
    vec![
        "h|metadata resource otlp 77/77 1000 service.name=front process.pid=77 host.name=h".to_owned(),
        format!(
            "h|async get lib 77/77 1000..3000 kind=server n=-5 d=1 l=[true,\"x\"] status_message=bad status=error {ids} \
             links={links} scope_version=2"
        ),
        format!("h|instant tick lib 77/77 2000 e=y {ids}"),
    ]
}

fn memory_of(file: &[u8]) -> (Memory, Result<()>) {
    let mut reader = file;
    let mut memory = Memory::default();
    let read = read(&mut Input::new("x", &mut reader), &Survey::default(), &mut memory);
    (memory, read)
}

/// An event with its arguments in the order of their names: the two forms have them in different ones.
fn sorted(event: &str) -> String {
    let mut words: Vec<&str> = event.split(' ').collect();
    let from = words.iter().position(|word| word.contains('=')).unwrap_or(words.len());
    words[from..].sort_unstable();
    words.join(" ")
}

fn check(file: &[u8], events: &[String], skipped: &[(&str, u64)]) {
    let (memory, read) = memory_of(file);
    read.expect("a good file");
    let found: Vec<_> = memory.events.iter().map(|event| sorted(event)).collect();
    assert_eq!(found, events.iter().map(|event| sorted(event)).collect::<Vec<_>>());
    let found: Vec<_> = memory.skipped.iter().map(|(reason, skipped)| (reason.as_str(), skipped.count)).collect();
    assert_eq!(found, skipped);
}

/// The same spans again, of a process that is known.
fn twice(events: &[String]) -> Vec<String> {
    [events, &events[1..]].concat()
}

#[test]
fn every_form_is_the_same() {
    let (request, events) = (request(), expected());
    check(LINE.as_bytes(), &events, &[]);
    check(&request, &events, &[]);
    check(format!("{LINE}\n\n{LINE}\n").as_bytes(), &twice(&events), &[]);
    let pretty = LINE.replace(",\"", ",\n \"").replacen('{', "{\n", 1);
    check(pretty.as_bytes(), &events, &[]);
    check(format!("{pretty}\n{pretty}\n").as_bytes(), &twice(&events), &[]);
    let big = [&u32::try_from(request.len()).expect("short").to_be_bytes()[..], &request].concat();
    check(&[big.clone(), big].concat(), &twice(&events), &[]);
    let mut delimited = Vec::new();
    crate::formats::wire::make::varint(&mut delimited, request.len() as u64);
    delimited.extend(&request);
    check(&[delimited.clone(), delimited].concat(), &twice(&events), &[]);
    check(&[request.clone(), request].concat(), &twice(&events), &[]);
}

#[test]
fn lines_that_the_sdk_of_python_wrote() {
    let (memory, read) = memory_of(include_bytes!("../../../tests/data/spans.otlp.jsonl"));
    read.expect("a good file");
    assert_eq!(memory.processes, ["4242 front", "4242 back", "4194304 loose"]);
    let count = |what: &str| memory.events.iter().filter(|event| event.contains(what)).count();
    assert_eq!((count("|metadata resource "), count("|async op ")), (3, 12));
    assert!(memory.skipped.is_empty(), "{:?}", memory.skipped);
}

#[test]
fn what_is_left_out_is_counted() {
    let events = expected();
    check(
        format!("{LINE}\njunk\n{}", &LINE[..60]).as_bytes(),
        &events,
        &[("line that is not JSON of OpenTelemetry", 1), ("torn line", 1)],
    );
    let metrics = r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"a"},{"name":"b"}]}]}]}"#;
    let logs = r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{}}]}]}],"new":5}"#;
    check(
        format!("{metrics}\n{LINE}\n{logs}\n").as_bytes(),
        &events,
        &[("field \"new\" of an object", 1), ("log record", 1), ("metric", 2)],
    );
    let metric = message(1, &[message(2, &[message(2, &[bytes(1, b"a"), message(5, &[])])])]);
    let log = message(1, &[message(2, &[message(2, &[fixed(11, 5), message(5, &[])])])]);
    check(
        &[request(), metric, log, number(9, 1)].concat(),
        &events,
        &[("field 9 of a message", 1), ("log record", 1), ("metric", 1)],
    );
    let odd = LINE.replace("\"3000\"", "\"0\"").replace("\"name\":\"get\",", "\"later\":{\"a\":[1]},");
    let (memory, _) = memory_of(odd.as_bytes());
    assert!(memory.events[1].starts_with("h|async unnamed lib 77/77 1000..1000 "), "{}", memory.events[1]);
    assert!(memory.events[1].contains("later={\"a\":[1]}"), "{}", memory.events[1]);
    assert_eq!(memory.skipped["span without end"].count, 1);
}

#[test]
fn resources_without_a_process_are_told_apart() {
    let other = |name: &str| LINE.replace("process.pid", "x").replace("front", name);
    let (memory, _) = memory_of(format!("{}\n{}\n{}\n", other("a"), other("b"), other("a")).as_bytes());
    assert_eq!(memory.processes, ["4194304 a", "4194305 b"]);
    let bare =
        r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"s","startTimeUnixNano":5,"endTimeUnixNano":6}]}]}]}"#;
    let (memory, _) = memory_of(bare.as_bytes());
    assert_eq!(
        (memory.processes, memory.events),
        (vec!["4194304 unknown".to_owned()], vec!["async s otlp 4194304/4194304 5..6 trace_id= span_id=".to_owned()],)
    );
}

#[test]
fn a_line_beyond_all_limits_is_read_span_by_span() {
    let (start, rest) = LINE.split_at(LINE.find("{\"traceId\"").expect("a span"));
    let (span, end) = rest.split_at(rest.find("]}]}]}").expect("the end"));
    let many = 20_000;
    let long = format!("{start}{}{end}", vec![span; many].join(","));
    assert!(long.len() > crate::input::LONGEST_LINE);
    let (memory, read) = memory_of(format!("{LINE}\n{long}\n{LINE}\n").as_bytes());
    read.expect("a good file");
    assert_eq!((memory.events.len(), memory.skipped.len()), (1 + 2 * (many + 2), 0));
    let (memory, read) = memory_of(format!("{long}\n").as_bytes());
    read.expect("a good file");
    assert_eq!(memory.events.len(), 1 + 2 * many);
}

#[test]
fn detection() {
    let detect = |bytes: &[u8]| detect(&Head { name: "x", bytes });
    assert_eq!(detect(LINE.as_bytes()), Confidence::Certain);
    assert_eq!(detect(b"{\n  \"resourceLogs\": ["), Confidence::Certain);
    assert_eq!(detect(&request()), Confidence::Likely);
    // A beginning, as of a long file.
    assert_eq!(detect(&[request(), request()].concat()[..request().len() + 50]), Confidence::Likely);
    for other in [&b""[..], b"{\"traceEvents\":[]}", b"\x0a\x02\x08\x01", b"\x0a\x00", &[0; 300], b"text\n"] {
        assert_eq!(detect(other), Confidence::No, "{other:?}");
    }
}

#[test]
fn what_it_is_not_is_told() {
    let (_, read) = memory_of(b"some text\n");
    let error = read.expect_err("no such file").to_string();
    assert_eq!(error, "x, at byte 0: this is neither JSON nor a protobuf message of OpenTelemetry");
    let (_, read) = memory_of(b"{\n\"resourceSpans\": [\n {5}");
    let error = read.expect_err("no JSON").to_string();
    assert!(error.contains("this is not JSON of OpenTelemetry: "), "{error}");
}

#[test]
fn cut_or_changed_anywhere() {
    let request = request();
    let big = [&u32::try_from(request.len()).expect("short").to_be_bytes()[..], &request].concat();
    for file in [LINE.as_bytes(), &LINE.replace(',', ",\n").into_bytes(), &request, &big] {
        for length in 0..file.len() {
            let _ = memory_of(&file[..length]);
        }
        let mut changed = file.to_vec();
        for place in 0..file.len() {
            for byte in [0, 0x0A, 0x7F, 0xFF, file[place] ^ 1, file[place].wrapping_add(8)] {
                changed[place] = byte;
                let _ = memory_of(&changed);
            }
            changed[place] = file[place];
        }
    }
}
