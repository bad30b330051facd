//! Traces made by hand; tools/perfetto/compare_import.py compares with Perfetto's own engine.

use std::io::Write as _;

use super::*;
use crate::formats::wire::make::{bytes, fixed, message, number};
use crate::sink::Memory;

const CLEARED: u64 = 1;
const NEEDS: u64 = 2;

/// A packet of a sequence.
fn packet(sequence: u64, fields: &[Vec<u8>]) -> Vec<u8> {
    message(1, &[&[number(10, sequence)], fields].concat())
}

/// A packet with a track event.
fn event(at: u64, kind: u64, fields: &[Vec<u8>]) -> Vec<u8> {
    packet(1, &[number(8, at), message(11, &[&[number(9, kind)], fields].concat())])
}

/// A description of a track.
fn track(fields: &[Vec<u8>]) -> Vec<u8> {
    packet(1, &[message(60, fields)])
}

fn snapshot(boot: u64, utc: u64) -> Vec<u8> {
    let clock = |id, time| message(1, &[number(1, id), number(2, time)]);
    packet(1, &[message(6, &[clock(6, boot), clock(1, utc)])])
}

/// A process 7 (track 1) with a thread 8 (track 2), at 1000 on both clocks but for a million.
fn start() -> Vec<Vec<u8>> {
    vec![
        packet(1, &[number(13, CLEARED)]),
        snapshot(1_000, 1_001_000),
        track(&[number(1, 1), message(3, &[number(1, 7), bytes(6, b"worker"), bytes(2, b"/bin/w"), bytes(2, b"-x")])]),
        track(&[number(1, 2), number(5, 1), message(4, &[number(1, 7), number(2, 8), bytes(5, b"main")])]),
    ]
}

fn memory_of(trace: &[u8]) -> (Memory, Result<()>) {
    let mut known = Survey::default();
    let mut reader = trace;
    let surveyed = survey(&mut Input::new("x", &mut reader), &mut known);
    let (mut reader, mut memory) = (trace, Memory::default());
    let read = read(&mut Input::new("x", &mut reader), &known, &mut memory);
    (memory, surveyed.and(read))
}

fn check(packets: &[Vec<u8>], events: &[&str], skipped: &[(&str, u64)]) {
    let (memory, read) = memory_of(&packets.concat());
    read.expect("a good trace");
    assert_eq!(memory.events, events);
    let found: Vec<_> = memory.skipped.iter().map(|(reason, skipped)| (reason.as_str(), skipped.count)).collect();
    assert_eq!(found, skipped);
}

fn started(more: &[Vec<u8>]) -> Vec<Vec<u8>> {
    [&start(), more].concat()
}

const MAIN: &str = "metadata thread_name PROCESS 7/8 1001100 name=main";

#[test]
fn spans_of_threads_and_tracks() {
    let on = |uuid, name: &str| [number(11, uuid), bytes(23, name.as_bytes())];
    let trace = started(&[
        event(1_100, 1, &[&on(2, "outer")[..], &[bytes(22, b"io"), bytes(22, b"disk")]].concat()),
        event(1_200, 1, &on(2, "inner")),
        event(1_300, 2, &[number(11, 2)]),
        event(1_350, 3, &on(2, "mark")),
        event(1_400, 2, &[number(11, 2)]),
        event(1_100, 1, &on(3, "request")),
        event(1_900, 2, &[number(11, 3)]),
        // Described behind its events.
        track(&[number(1, 3), number(5, 1), bytes(2, b"requests")]),
    ]);
    let events = [
        MAIN,
        "span inner track_event 7/8 1001200..1001300",
        "instant mark track_event 7/8 1001350",
        "span outer io,disk 7/8 1001100..1001400",
        "async request track_event 7/7 1001100..1001900 track=requests",
    ];
    check(&trace, &events, &[]);
    let (memory, _) = memory_of(&trace.concat());
    assert_eq!(memory.processes, ["7 worker"]);
    assert_eq!(memory.used.expect("a clock").how, "through 1 clock snapshots of the trace");
}

#[test]
fn ends_that_do_not_match() {
    let on = |name: &str, cat: &str| [number(11, 2), bytes(23, name.as_bytes()), bytes(22, cat.as_bytes())];
    let trace = started(&[
        event(1_100, 2, &[number(11, 2)]),
        event(1_100, 1, &on("open", "a")),
        event(1_200, 1, &on("outer", "b")),
        event(1_300, 1, &on("inner", "c")),
        event(1_400, 2, &on("outer", "b")),
        event(1_500, 1, &on("next", "d")),
        event(1_600, 2, &[number(11, 2), bytes(22, b"d")]),
    ]);
    let events = [
        MAIN,
        "span outer b 7/8 1001200..1001400",
        "span inner c 7/8 1001300..1001400",
        "span next d 7/8 1001500..1001600",
        "span open a 7/8 1001100..1001600",
    ];
    let skipped = [
        ("end that is missing: the span ends with the one below it", 1),
        ("end without a begin", 1),
        ("span without end", 1),
    ];
    check(&trace, &events, &skipped);
}

#[test]
fn what_is_too_deep_is_counted_and_takes_no_time() {
    let begin = event(1_100, 1, &[number(11, 2), bytes(23, b"b")]);
    let trace = started(&vec![begin; 100_000]);
    let (memory, read) = memory_of(&trace.concat());
    read.expect("a good trace");
    let deep = "span beyond the limits: 4096 within each other, a million open ones, 256 MiB";
    assert_eq!((memory.events.len(), memory.skipped[deep].count), (1 + 4096, 100_000 - 4096));
    // And of arguments.
    let note = message(4, &[bytes(10, b"x"), number(2, 1)]);
    let many = (0..200_000_u32).flat_map(|place| message(4, &[bytes(10, &place.to_le_bytes())])).chain(note).collect();
    let (memory, _) = memory_of(&started(&[event(1_100, 3, &[number(11, 2), many])]).concat());
    assert_eq!(memory.skipped["argument beyond the limit of 1024, or of 32 MiB"].count, 1);
}

#[test]
fn events_out_of_order_wait() {
    let on = |name: &str| [number(11, 2), bytes(23, name.as_bytes())];
    let trace = started(&[
        event(1_500, 1, &on("second")),
        event(1_100, 1, &on("first")),
        event(1_600, 2, &[number(11, 2)]),
        event(1_200, 2, &[number(11, 2)]),
    ]);
    let events = [MAIN, "span first track_event 7/8 1001100..1001200", "span second track_event 7/8 1001500..1001600"];
    check(&trace, &events, &[]);
}

#[test]
fn arguments_of_every_kind() {
    let note = |name: &str, value: Vec<u8>| message(4, &[bytes(10, name.as_bytes()), value]);
    let entry = |field, name: &str, value: Vec<u8>| message(field, &[bytes(10, name.as_bytes()), value]);
    let nested = message(8, &[number(1, 1), bytes(2, b"k"), message(3, &[number(5, 9)])]);
    let fields = [
        number(11, 2),
        bytes(23, b"e"),
        note("b", number(2, 1)),
        note("u", number(3, u64::MAX)),
        note("i", number(4, (-5_i64).cast_unsigned())),
        note("d", fixed(5, 0.5_f64.to_bits())),
        note("p", number(7, 255)),
        note("s", bytes(6, b"text")),
        note("j", bytes(9, b"[1, 2]")),
        note("bad", bytes(9, b"[1, ")),
        note("n", nested),
        note("o", entry(11, "x", message(12, &[bytes(6, b"y")]))),
        note("a", [message(12, &[number(4, 1)]), message(12, &[number(2, 0)])].concat()),
        note("none", vec![]),
        fixed(47, 5),
        fixed(47, 6),
        fixed(48, 5),
        bytes(4711, b"\x01\xff"),
        number(52, 3),
    ];
    let expected = concat!(
        "instant e track_event 7/8 1001100 b=true u=18446744073709551615 i=-5 d=0.5 p=0xff s=text j=[1, 2] bad=\"[1, \" ",
        r#"n={"k":9} o={"x":["y"]} a=[1,false] none=null field_4711=01ff correlation_id=3 flow_ids=[5,6] terminating_flow_ids=[5]"#
    );
    check(&started(&[event(1_100, 3, &fields)]), &[MAIN, expected], &[]);
}

#[test]
fn interned_texts_and_defaults() {
    let entry = |field, iid, text: &str| message(field, &[number(1, iid), bytes(2, text.as_bytes())]);
    let interned = message(12, &[entry(2, 4, "name"), entry(1, 1, "cat"), entry(3, 2, "key"), entry(29, 9, "value")]);
    let defaults = message(59, &[message(11, &[number(11, 2)])]);
    let fields = [number(9, 3), number(10, 4), number(3, 1), message(4, &[number(1, 2), number(17, 9)])];
    let instant = |at, flags| packet(5, &[number(8, at), number(13, flags), message(11, &fields)]);
    let trace = started(&[
        instant(1_050, NEEDS),
        packet(5, &[number(13, CLEARED), interned, defaults]),
        instant(1_100, NEEDS),
        packet(5, &[number(42, 1)]),
        instant(1_200, NEEDS),
        packet(5, &[number(13, CLEARED)]),
        instant(1_300, NEEDS),
    ]);
    let skipped = [
        ("gap: packets before this one were lost when the trace was recorded", 1),
        ("packet without the interned data that it needs", 2),
        ("text that was not interned", 1),
    ];
    let events =
        [MAIN, "instant name cat 7/8 1001100 key=value", "instant unnamed track_event 0/0 1001300 unnamed=null"];
    check(&trace, &events, &skipped);
}

#[test]
fn counters_of_every_kind() {
    let counter = |uuid, name: &str, fields: &[Vec<u8>]| {
        track(&[number(1, uuid), number(5, 1), bytes(2, name.as_bytes()), message(8, fields)])
    };
    let value = |at, uuid, value: i64| event(at, 4, &[number(11, uuid), number(30, value.cast_unsigned())]);
    let extra = [number(31, 11), number(31, 10), number(12, 5), number(12, 6), number(12, 7)];
    let trace = started(&[
        counter(10, "rss", &[number(3, 3), number(4, 1024)]),
        counter(11, "sum", &[number(5, 1), bytes(6, b"things")]),
        value(1_100, 10, -2),
        value(1_200, 11, 4),
        value(1_300, 11, 3),
        event(1_400, 4, &[number(11, 10), fixed(44, 0.5_f64.to_bits())]),
        event(1_500, 3, &[&extra[..], &[number(11, 2), bytes(23, b"i")]].concat()),
        event(1_600, 4, &[number(11, 10)]),
    ]);
    let events = [
        "counter rss counter 7/7 1001100..1001100 bytes=-2048",
        "counter sum counter 7/7 1001200..1001200 things=4",
        "counter sum counter 7/7 1001300..1001300 things=7",
        "counter rss counter 7/7 1001400..1001400 bytes=512",
        "counter sum counter 7/7 1001500..1001500 things=12",
        "counter rss counter 7/7 1001500..1001500 bytes=6144",
        "metadata thread_name PROCESS 7/8 1001500 name=main",
        "instant i track_event 7/8 1001500",
    ];
    check(&trace, &events, &[("counter event without a value", 1), ("extra value without a counter track", 1)]);
}

#[test]
fn legacy_phases() {
    let legacy = |at, phase: char, more: &[Vec<u8>]| {
        let old = message(6, &[&[number(2, u64::from(phase))], more].concat());
        packet(1, &[number(8, at), message(11, &[number(11, 2), bytes(23, b"e"), bytes(22, b"c"), old])])
    };
    let trace = started(&[
        legacy(1_100, 'X', &[number(3, 2)]),
        legacy(4_000, 'b', &[number(6, 5)]),
        legacy(4_100, 'b', &[number(10, 5)]),
        legacy(4_200, 'n', &[number(6, 5)]),
        legacy(4_300, 'e', &[number(6, 5)]),
        legacy(4_400, 'e', &[number(10, 5)]),
        legacy(4_500, 's', &[number(8, 9)]),
        legacy(4_600, 'Z', &[]),
        legacy(4_700, 'X', &[]),
    ]);
    let events = [
        MAIN,
        "span e c 7/8 1001100..1003100",
        "instant e c 7/8 1004200 id=5",
        "async e c 7/8 1004000..1004300 id=5",
        "async e c 7/8 1004100..1004400 id=5",
        "instant e c 7/8 1004500 flow_ids=[9] flow_phase=s",
    ];
    check(&trace, &events, &[("complete event without a duration", 1), ("track event of phase 'Z'", 1)]);
}

#[test]
fn compressed_packets() {
    let inner = event(1_100, 3, &[number(11, 2), bytes(23, b"in")]);
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    zlib.write_all(&inner).expect("memory");
    let zlib = zlib.finish().expect("memory");
    let zstd = zstd::encode_all(inner.as_slice(), 1).expect("memory");
    let nested = {
        let mut twice = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        twice.write_all(&message(1, &[bytes(50, &zlib)])).expect("memory");
        twice.finish().expect("memory")
    };
    let trace = started(&[
        message(1, &[bytes(50, &zlib)]),
        message(1, &[bytes(133, &zstd)]),
        message(1, &[bytes(50, &nested)]),
        message(1, &[bytes(50, b"junk")]),
    ]);
    let instant = "instant in track_event 7/8 1001100";
    let skipped = [("compressed packets within compressed packets", 1), (DAMAGED, 1)];
    check(&trace, &[MAIN, instant, instant], &skipped);
}

#[test]
fn other_packets_are_counted_by_name() {
    let trace = started(&[
        packet(1, &[bytes(1, b"")]),
        packet(1, &[bytes(1, b"")]),
        packet(1, &[bytes(33, b"")]),
        packet(1, &[bytes(5000, b"")]),
        packet(1, &[number(98, 3)]),
        message(1, &[vec![0xFF]]),
        number(2, 5),
        packet(1, &[number(8, 5), number(58, 42), message(11, &[number(9, 3)])]),
        packet(1, &[message(11, &[number(9, 3)])]),
        event(1_100, 5, &[]),
        event(1_100, 3, &[number(11, 2), bytes(23, b"i")]),
    ]);
    let skipped = [
        ("damaged packet", 1),
        ("field 2 of the trace", 1),
        ("packet ftrace_events", 2),
        ("packet of another machine", 1),
        ("packet of field 5000", 1),
        ("packet trace_config", 1),
        ("time on a clock that no snapshot describes", 1),
        ("track event of type state", 1),
        ("track event without a time", 1),
    ];
    check(&trace, &[MAIN, "instant i track_event 7/8 1001100"], &skipped);
}

#[test]
fn a_trace_that_perfetto_s_own_classes_wrote() {
    let (memory, read) = memory_of(include_bytes!("../../../tests/data/small.pftrace"));
    read.expect("a good trace");
    let [name, span] = memory.events.as_slice() else { panic!("{:?}", memory.events) };
    assert_eq!(name, "metadata thread_name PROCESS 100/101 1794990000000000001 name=main thread");
    let start = "span all kinds track_event 100/101 1794990000000000001..1794990000000000005 bool=true ";
    assert!(span.starts_with(start) && span.ends_with(" flow_ids=[7,8] at_end=yes terminating_flow_ids=[7]"), "{span}");
    assert!(memory.skipped.is_empty(), "{:?}", memory.skipped);
}

#[test]
fn threads_may_have_negative_numbers() {
    let tid = number(2, (-2_i64).cast_unsigned());
    let trace = started(&[
        track(&[number(1, 9), message(4, &[number(1, 7), tid])]),
        event(1_100, 1, &[number(11, 9), bytes(23, b"x")]),
        event(1_200, 2, &[number(11, 9)]),
    ]);
    check(&trace, &["span x track_event 7/4294967294 1001100..1001200"], &[]);
}

#[test]
fn without_utc_times_count_from_1970() {
    let instant = |fields: &[Vec<u8>]| packet(1, &[fields, &[message(11, &[number(9, 3)])]].concat());
    let (memory, _) = memory_of(&instant(&[number(8, 77)]));
    assert_eq!(memory.events, ["instant unnamed track_event 0/0 77"]);
    assert_eq!(memory.used.expect("a clock").how, "no snapshot holds UTC: times count from 1970");
    // All times are UTC, though no snapshot says so.
    let (memory, _) = memory_of(&instant(&[number(8, 77), number(58, 1)]));
    assert_eq!(memory.events, ["instant unnamed track_event 0/0 77"]);
    assert_eq!(memory.used.expect("a clock").how, "the trace's clock is UTC");
}

#[test]
fn detection() {
    let trace = started(&[event(1_100, 3, &[bytes(23, b"i")])]).concat();
    let detect = |name, bytes: &[u8]| detect(&Head { name, bytes });
    assert_eq!(detect("a.pftrace", &trace), Confidence::Certain);
    assert_eq!(detect("trace", &trace), Confidence::Likely);
    assert_eq!(detect("trace", &trace[..trace.len() - 3]), Confidence::Likely);
    for other in [&b""[..], b"\n\n", b"\n{\"a\":1}", &[0; 100], b"text", b"\x0a\x02\x12\x00"] {
        assert_eq!(detect("x", other), Confidence::No, "{other:?}");
    }
}

#[test]
fn damage_is_told_and_what_was_before_it_is_kept() {
    let trace = started(&[event(1_100, 1, &[number(11, 2), bytes(23, b"open")])]).concat();
    let (memory, read) = memory_of(&[trace.as_slice(), b"\x0a\x05\x01"].concat());
    let error = read.expect_err("cut").to_string();
    assert_eq!(error, format!("x, at byte {}: the file ends 4 bytes too early", trace.len() + 2));
    assert_eq!(memory.events, [MAIN, "span open track_event 7/8 1001100..1001100"]);
    let (_, read) = memory_of(b"some text");
    assert_eq!(read.expect_err("no trace").to_string(), "x, at byte 0: this is no field of a protobuf message");
}

#[test]
fn cut_or_changed_anywhere() {
    let entry = message(12, &[message(2, &[number(1, 4), bytes(2, b"name")])]);
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    zlib.write_all(&event(1_100, 3, &[number(11, 2), number(10, 4)])).expect("memory");
    let note = message(4, &[bytes(10, b"o"), message(11, &[bytes(10, b"x"), message(12, &[bytes(6, b"y")])])]);
    let old = message(6, &[number(2, 88), number(3, 7), number(18, 1)]);
    let trace = started(&[
        packet(1, &[entry]),
        message(1, &[bytes(50, &zlib.finish().expect("memory"))]),
        event(1_200, 1, &[number(11, 2), number(10, 4), note]),
        event(1_300, 2, &[number(11, 2), number(31, 9), number(12, 5)]),
        packet(1, &[number(8, 1_400), message(11, &[old])]),
        packet(1, &[message(2, &[message(1, &[number(1, 5), number(2, 1), bytes(3, b"x")])])]),
    ])
    .concat();
    for length in 0..trace.len() {
        let _ = memory_of(&trace[..length]);
    }
    let mut changed = trace.clone();
    for place in 0..trace.len() {
        for byte in [0, 0x0A, 0x7F, 0xFF, trace[place] ^ 1, trace[place].wrapping_add(8)] {
            changed[place] = byte;
            let _ = memory_of(&changed);
        }
        changed[place] = trace[place];
    }
}
