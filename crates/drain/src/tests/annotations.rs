//! What programs tell of themselves comes out as they told it.

use weftline_recorder::annotation::{Argument, EventKind, MAX_PAYLOAD, PER_RECORD, Payload, Usage};
use weftline_recorder::clock;
use weftline_recorder::layout::{RECORDS_PER_SEGMENT, record_flags};

use super::*;
use crate::arena::writer::{Annotation, Completeness, NOBODY};
use crate::recover::recover;
use crate::stop::{self, Stop};

const TID: u32 = 11;

/// A program that tells of itself.
struct Teller {
    program: Program,
    /// Ticks of everything that has no time of its own.
    now: u64,
}

impl Teller {
    fn start(drain: &Drain) -> Teller {
        Teller { program: Program::start(drain.directory(), NOBODY), now: clock::ticks() }
    }

    fn payload(&self, arguments: &[(&str, Argument<'_>)]) -> Payload {
        let mut payload = Payload::new();
        for (key, value) in arguments {
            payload.add(self.program.intern(0, key.as_bytes()), *value);
        }
        payload
    }

    fn annotation<'p>(&self, kind: EventKind, name: &str, category: &str, payload: &'p Payload) -> Annotation<'p> {
        let id = |text: &str| if text.is_empty() { 0 } else { self.program.intern(0, text.as_bytes()) };
        let (name, category) = (id(name), id(category));
        Annotation {
            kind,
            flags: 0,
            name,
            category,
            start: self.now,
            end: self.now,
            id: 0,
            payload: payload.as_bytes(),
        }
    }

    fn tell(&mut self, kind: EventKind, name: &str, category: &str, arguments: &[(&str, Argument<'_>)]) {
        let payload = self.payload(arguments);
        let annotation = self.annotation(kind, name, category, &payload);
        self.program.annotate(TID, &annotation, Completeness::Whole);
    }

    /// A span of so many ticks from `from` on.
    fn span(&mut self, kind: EventKind, name: &str, (from, ticks): (u64, u64)) {
        let payload = Payload::new();
        let (start, end) = (self.now + from, self.now + from + ticks);
        let annotation = Annotation { start, end, ..self.annotation(kind, name, "", &payload) };
        self.program.annotate(TID, &annotation, Completeness::Whole);
    }
}

/// Drains what `tell` told; the events of annotations, the manifest.
fn recorded(tell: impl FnOnce(&mut Teller)) -> (Vec<Event>, SupervisorRecord) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let drain = drain(run, DrainOptions::default());
    let mut teller = Teller::start(&drain);
    tell(&mut teller);
    drop(teller);
    let outcome = drain.finish().expect("finished");
    let trace = read_run(run);
    let process = &outcome.record.processes[0];
    assert_eq!(process.events, count_events(&trace), "metadata does not count");
    let recorded =
        trace.events.into_iter().filter(|event| !["weft", "POSIX", "dftracer"].contains(&event.cat.as_str()));
    (recorded.collect(), outcome.record)
}

#[test]
fn every_kind_has_its_phase() {
    let (events, record) = recorded(|teller| {
        for kind in EventKind::ALL {
            let payload = teller.payload(&[("n", Argument::Int(kind as i64))]);
            let annotation =
                Annotation { id: 0xABCD_0000_0000_0001, ..teller.annotation(kind, "step", "train", &payload) };
            teller.program.annotate(TID, &annotation, Completeness::Whole);
        }
    });
    let letters: String = events.iter().map(|event| event.phase.letter()).collect();
    assert_eq!(letters, "XBEbebeniCMstf");
    let id = Some("0xabcd000000000001");
    for event in &events {
        assert_eq!((event.name.as_str(), event.cat.as_str(), event.tid), ("step", "train", i64::from(TID)));
        let has_id = "besnft".contains(event.phase.letter());
        assert_eq!(event.id.as_deref(), id.filter(|_| has_id), "{event:?}");
        assert!(event.start_ns.is_some(), "{event:?}");
    }
    let numbers: Vec<Option<i64>> = events.iter().map(|event| number(event, "n")).collect();
    let mut expected: Vec<Option<i64>> = (0..13).map(Some).collect();
    // The end of the pair has no arguments.
    expected.insert(4, None);
    assert_eq!(numbers, expected);
    assert_eq!(record.processes[0].drops.len(), 0);
}

fn check_arguments(arguments: &[(&str, Argument<'_>)], expected: &[(&str, Value)]) {
    let (events, record) = recorded(|teller| teller.tell(EventKind::Instant, "here", "", arguments));
    let expected: Vec<(String, Value)> =
        expected.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    // NaN is not equal to itself, and all that matters is its text.
    assert_eq!(format!("{:?}", events[0].args), format!("{expected:?}"));
    assert_eq!((events.len(), events[0].cat.as_str()), (1, "app"));
    assert_eq!(record.processes[0].drops.len(), 0);
}

/// Times that the program has from elsewhere are told as they are, and are no argument.
#[test]
fn times_that_the_program_gives() {
    let (events, _) = recorded(|teller| {
        teller.tell(EventKind::Span, "sim", "", &[("", Argument::At(1_000_000, 1_500_007)), ("n", Argument::Int(1))]);
        teller.tell(EventKind::Instant, "sim", "", &[("", Argument::At(0, 0))]);
        teller.tell(EventKind::AsyncSpan, "sim", "", &[("", Argument::At(5_000, 1_000)), ("n", Argument::Int(3))]);
        // Only what stands first is the event's time.
        teller.tell(EventKind::Instant, "now", "", &[("n", Argument::Int(4)), ("", Argument::At(7, 7))]);
    });
    let seen: Vec<(char, Option<i64>, Option<i64>, usize)> = events
        .iter()
        .filter(|event| event.name == "sim")
        .map(|event| (event.phase.letter(), event.start_ns, event.end_ns(), event.args.len()))
        .collect();
    let at = |phase, start, end, arguments| (phase, Some(start), Some(end), arguments);
    assert_eq!(
        seen,
        [at('X', 1_000_000, 1_500_007, 1), at('i', 0, 0, 0), at('b', 5_000, 5_000, 1), at('e', 5_000, 5_000, 0)]
    );
    let now = events.iter().find(|event| event.name == "now").expect("an event");
    assert!(now.start_ns > Some(1_600_000_000_000_000_000) && now.args.len() == 1, "{now:?}");
}

#[test]
fn arguments_come_back() {
    let text = |text: &str| Value::Str(text.to_owned());
    check_arguments(&[], &[]);
    check_arguments(
        &[
            ("small", Argument::Int(-1)),
            ("large", Argument::Int(i64::MIN)),
            ("huge", Argument::UInt(u64::MAX)),
            ("half", Argument::Float(0.5)),
            ("nan", Argument::Float(f64::NAN)),
            ("infinite", Argument::Float(f64::NEG_INFINITY)),
            ("yes", Argument::Bool(true)),
            ("no", Argument::Bool(false)),
            ("none", Argument::Null),
        ],
        &[
            ("small", Value::Int(-1)),
            ("large", Value::Int(i64::MIN)),
            ("huge", Value::UInt(u64::MAX)),
            ("half", Value::Float(0.5)),
            ("nan", Value::Float(f64::NAN)),
            ("infinite", Value::Float(f64::NEG_INFINITY)),
            ("yes", Value::Bool(true)),
            ("no", Value::Bool(false)),
            ("none", Value::Null),
        ],
    );
    check_arguments(
        &[
            ("odd \"key\"\n", Argument::Text("a \"quoted\"\\\n\u{7}é".as_bytes())),
            ("bytes", Argument::Text(b"caf\xe9")),
            ("looks like", Argument::Text(b"NaN")),
            ("empty", Argument::Text(b"")),
            ("begun", Argument::CutText("Grüß".as_bytes(), 5_000)),
            ("list", Argument::Json(b"[1,{\"a\":\n2}]")),
            ("no list", Argument::Json(b"[1,")),
            ("not utf-8", Argument::Json(b"\"\xe9\"")),
        ],
        &[
            ("odd \"key\"\n", text("a \"quoted\"\\\n\u{7}é")),
            ("bytes", Value::Str(weftline_format::identity::held(b"caf\xe9"))),
            ("looks like", text("NaN")),
            ("empty", text("")),
            ("begun", text("Grüß… (5000 bytes)")),
            ("list", Value::Json("[1,{\"a\": 2}]".to_owned())),
            ("no list", text("[1,")),
            ("not utf-8", Value::Str(weftline_format::identity::held(b"\"\xe9\""))),
        ],
    );
}

#[test]
fn the_last_of_repeated_arguments_counts() {
    let (from, to) = (
        Usage { thread: 1_000, thread_user: 600, process: 5_000, process_user: 1_000, rss: 7 << 20 },
        Usage { thread: 4_000, thread_user: 2_600, process: 9_000, process_user: 9_000, rss: 6 << 20 },
    );
    let used = [
        ("cpu_ns", 3_000),
        ("cpu_user_ns", 2_000),
        ("cpu_system_ns", 1_000),
        ("process_cpu_ns", 4_000),
        ("process_user_ns", 8_000),
        ("process_system_ns", 0),
        ("rss_start", 7 << 20),
        ("rss_end", 6 << 20),
    ];
    let used = used.map(|(key, number)| (key, Value::Int(number)));
    check_arguments(&[("", Argument::Usage(from, to))], &used);
    check_arguments(
        &[("a", Argument::Int(1)), ("b", Argument::Int(2)), ("a", Argument::Text(b"three"))],
        &[("b", Value::Int(2)), ("a", Value::Str("three".to_owned()))],
    );
    check_arguments(&[("rss_end", Argument::Int(1)), ("", Argument::Usage(from, to))], &used);
    let mut without = used.to_vec();
    without[7].1 = Value::Int(1);
    check_arguments(&[("", Argument::Usage(from, to)), ("rss_end", Argument::Int(1))], &without);
}

#[test]
fn texts_may_be_names_and_durations_ticks() {
    let (events, _) = recorded(|teller| {
        let name = teller.program.intern(0, b"/not/../a path");
        let ticks = clock::ticks();
        weftline_recorder::sys::nap(3_000_000);
        teller.now = clock::ticks();
        let busy = teller.now - ticks;
        let arguments =
            [("path", Argument::Name(name)), ("lost", Argument::Name(u32::MAX)), ("busy", Argument::Ticks(busy))];
        teller.tell(EventKind::Instant, "../here", "", &arguments);
    });
    assert_eq!(events[0].name, "../here");
    assert_eq!(events[0].arg("path").and_then(Value::as_str), Some("/not/../a path"));
    assert_eq!(events[0].arg("lost"), Some(&Value::Null));
    let busy = number(&events[0], "busy").expect("a duration");
    assert!((2_900_000..500_000_000).contains(&busy), "{busy}");
}

#[test]
fn lost_texts_have_names_that_say_so() {
    let (events, _) = recorded(|teller| {
        let mut payload = Payload::new();
        payload.add(0, Argument::Int(1));
        payload.add(u32::MAX, Argument::Int(2));
        for kind in [EventKind::Instant, EventKind::End] {
            let annotation = teller.annotation(kind, "", "", &payload);
            teller.program.annotate(TID, &annotation, Completeness::Whole);
        }
    });
    let headings: Vec<(&str, &str)> = events.iter().map(|event| (event.name.as_str(), event.cat.as_str())).collect();
    assert_eq!(headings, [("(name lost)", "app"), ("", "")]);
    assert_eq!(events[0].args, [("arg0".to_owned(), Value::Int(1)), ("arg1".to_owned(), Value::Int(2))]);
}

#[test]
fn payloads_of_all_lengths_come_back() {
    let longest = MAX_PAYLOAD - 7;
    // So many records that segments end within payloads, at every place.
    let lengths: Vec<usize> = (0..400).chain((400..longest).step_by(37)).chain([longest]).collect();
    let text = |length: usize| (0..length).map(|place| b'a' + (place % 26) as u8).collect::<Vec<u8>>();
    let (events, record) = recorded(|teller| {
        for length in &lengths {
            teller.tell(EventKind::Instant, "text", "", &[("text", Argument::Text(&text(*length)))]);
        }
    });
    assert_eq!(events.len(), lengths.len());
    for (event, length) in events.iter().zip(&lengths) {
        assert_eq!(event.arg("text").and_then(Value::as_str).map(str::as_bytes), Some(&text(*length)[..]), "{length}");
    }
    assert_eq!(record.processes[0].drops.len(), 0);
}

#[test]
fn the_end_of_a_segment_may_stay_empty() {
    let text = [b'x'; 5 * PER_RECORD];
    for left in 1..8 {
        let (events, record) = recorded(|teller| {
            let path = teller.program.intern(0, b"/data/f");
            reads(&mut teller.program, TID, path, 0, i64::from(RECORDS_PER_SEGMENT - left));
            assert_eq!(teller.program.room(TID), left);
            teller.tell(EventKind::Instant, "text", "", &[("text", Argument::Text(&text))]);
            teller.tell(EventKind::Instant, "after", "", &[]);
        });
        let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
        assert_eq!(names, ["text", "after"], "{left} records left");
        assert_eq!(record.processes[0].drops.len(), 0, "{left} records left");
        assert_eq!(record.processes[0].events, u64::from(RECORDS_PER_SEGMENT - left) + 2);
    }
}

#[test]
fn what_a_killed_process_did_not_finish_telling_is_nothing() {
    let text = [b'x'; 100];
    let (events, record) = recorded(|teller| {
        let payload = teller.payload(&[("text", Argument::Text(&text))]);
        let annotation = teller.annotation(EventKind::Instant, "never", "", &payload);
        teller.tell(EventKind::Instant, "before", "", &[("text", Argument::Text(&text))]);
        teller.program.annotate(TID, &annotation, Completeness::WithoutHead);
        teller.tell(EventKind::Instant, "after", "", &[("text", Argument::Text(&text))]);
        teller.program.annotate(TID, &annotation, Completeness::WithoutHead);
    });
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["before", "after"]);
    assert_eq!(record.processes[0].drops.len(), 0);
}

#[test]
fn damaged_annotations_are_counted() {
    let (events, record) = recorded(|teller| {
        let long = Payload::new();
        let annotation = teller.annotation(EventKind::Instant, "damaged", "", &long);
        // Says that its payload goes on behind it; and one that is longer than any can be.
        for detail in [100, u32::MAX] {
            let mut record = call(Call::pread64);
            record.head = weftline_recorder::annotation::ANNOTATION | EventKind::Instant as u32;
            (record.path, record.detail) = (annotation.name, detail);
            teller.program.record(TID, &record);
        }
        teller.tell(EventKind::Instant, "whole", "", &[]);
    });
    assert_eq!(events.iter().map(|event| event.name.as_str()).collect::<Vec<_>>(), ["whole"]);
    assert_eq!(record.processes[0].drops.get("damaged-record"), Some(&2));
}

#[test]
fn only_spans_on_the_stack_can_cross() {
    let (events, record) = recorded(|teller| {
        teller.span(EventKind::Span, "a", (0, 50_000));
        // Instants and async spans are on no stack, and do not push the spans out of sight.
        for place in 0..100 {
            teller.span(EventKind::Instant, "i", (60_000 + place, 0));
            teller.span(EventKind::AsyncSpan, "s", (10_000, 60_000 + place));
        }
        teller.span(EventKind::Span, "b", (30_000, 100_000));
    });
    let phases = |name: &str| {
        let phases: String = events.iter().filter(|e| e.name == name).map(|e| e.phase.letter()).collect();
        phases
    };
    assert_eq!((phases("a").as_str(), phases("b").as_str()), ("X", "be"));
    assert_eq!((phases("s"), phases("i")), ("be".repeat(100), "i".repeat(100)));
    let ids: std::collections::BTreeSet<&str> =
        events.iter().filter(|e| e.name == "b").filter_map(|e| e.id.as_deref()).collect();
    assert_eq!(ids.len(), 1, "both ends of a pair have the same id, which was made up");
    assert_eq!(record.processes[0].events, 1 + 100 + 200 + 2);
}

#[test]
fn crossing_is_seen_over_segments_with_long_payloads() {
    let text = [b'x'; 64 * PER_RECORD];
    let (events, _) = recorded(|teller| {
        teller.span(EventKind::Span, "a", (0, 50_000));
        teller.now += 60_000;
        while teller.program.room(TID) > 65 {
            teller.tell(EventKind::Instant, "text", "", &[("text", Argument::Text(&text))]);
        }
        teller.tell(EventKind::Instant, "text", "", &[("text", Argument::Text(&text))]);
        teller.now -= 60_000;
        teller.span(EventKind::Span, "b", (30_000, 100_000));
    });
    assert_eq!(events.last().map(|event| event.phase), Some(Phase::AsyncEnd));
}

#[test]
fn annotations_of_a_vfork_child_carry_its_pid() {
    let (events, _) = recorded(|teller| {
        let payload = Payload::new();
        let annotation = teller.annotation(EventKind::Span, "child's", "", &payload);
        let annotation = Annotation { flags: record_flags::VFORK_CHILD, ..annotation };
        teller.program.annotate(TID, &annotation, Completeness::Whole);
        let mut vfork = call(Call::vfork);
        vfork.ret = 4711;
        teller.program.record(TID, &vfork);
        teller.tell(EventKind::Span, "parent's", "", &[]);
    });
    let pids: Vec<(&str, i64)> = events.iter().map(|event| (event.name.as_str(), event.pid)).collect();
    assert_eq!(pids[0], ("child's", 4711));
    assert_eq!(pids.last(), Some(&("parent's", i64::from(NOBODY))));
}

#[test]
fn the_traces_own_metadata_cannot_be_faked() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let drain = drain(run, DrainOptions::default());
    let mut teller = Teller::start(&drain);
    teller.tell(
        EventKind::Meta,
        "process_name",
        "weft",
        &[("nonce", Argument::Text(b"another")), ("seq", Argument::Int(7))],
    );
    teller.tell(EventKind::Meta, "model", "", &[("v", Argument::Int(1))]);
    drop(teller);
    drain.finish().expect("finished");
    let trace = read_run(run);
    let recorded = trace.events.iter().filter(|event| event.cat == "app");
    let recorded: Vec<(Phase, &str)> = recorded.map(|event| (event.phase, event.name.as_str())).collect();
    assert_eq!(recorded, [(Phase::Metadata, "process_name"), (Phase::Metadata, "model")]);
    // Nothing but metadata was told, and it has a file nevertheless.
    let record = record_of(run);
    assert_eq!(record.processes[0].events, 0);
    assert!(run.join(&record.processes[0].file).is_file(), "{:?}", record.processes[0].file);
}

/// Names, categories, counts and times of the spans in a manifest.
fn spans(record: &SupervisorRecord) -> Vec<(String, String, u64, u64)> {
    record.spans.iter().map(|span| (span.name.clone(), span.cat.clone(), span.count, span.time_ns)).collect()
}

fn tell_spans(teller: &mut Teller) {
    for round in 0..2_500 {
        let from = round * 1_000_000;
        teller.span(EventKind::Span, "read", (from, 500_000));
        teller.span(EventKind::AsyncSpan, "request", (from, 900_000));
        // Crosses the one before.
        teller.span(EventKind::Span, "late", (from + 400_000, 200_000));
        for (kind, at) in [
            (EventKind::Begin, 0),
            (EventKind::End, 300_000),
            (EventKind::AsyncBegin, 0),
            (EventKind::AsyncEnd, 700_000),
        ] {
            teller.span(kind, "apart", (from + at, 0));
        }
    }
    // Its name is that of a call, its category is not; and a call with the same name.
    let mut read = call(Call::read);
    (read.ret, read.size) = (10, 10);
    teller.program.record(TID, &read);
}

#[test]
fn spans_are_summed_up_and_recovered_alike() {
    let mut seen = Vec::new();
    for place in [None, Some(Stop::Taken), Some(Stop::Written), Some(Stop::Released), Some(Stop::Journaled)] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let run = directory.path();
        stop::set(place.map(|place| (place, 1)));
        let mut drain = drain(run, DrainOptions::default());
        let mut teller = Teller::start(&drain);
        tell_spans(&mut teller);
        drop(teller);
        drain.poll();
        match drain.finish() {
            Ok(_) => assert_eq!(place, None),
            Err(_) => drop(recover(run, &ALONE).expect("recovered")),
        }
        stop::set(None);
        let record = record_of(run);
        let calls: Vec<(&str, u64, u64)> = record.calls.iter().map(|c| (c.name.as_str(), c.count, c.bytes)).collect();
        assert_eq!(calls, [("read", 1, 10)], "{place:?}");
        assert_eq!(record.processes[0].events, count_events(&read_run(run)), "{place:?}");
        let found = spans(&record);
        let counts: Vec<(&str, &str, u64)> = found.iter().map(|s| (s.0.as_str(), s.1.as_str(), s.2)).collect();
        assert_eq!(
            counts,
            [("apart", "app", 5_000), ("request", "app", 2_500), ("read", "app", 2_500), ("late", "app", 2_500)],
            "{place:?}"
        );
        // What a tick is differs from run to run by a little.
        let per_tick: Vec<f64> = found
            .iter()
            .zip([1_000_000, 900_000, 500_000, 200_000])
            .map(|(s, ticks)| s.3 as f64 / 2_500.0 / f64::from(ticks))
            .collect();
        assert!(per_tick.iter().all(|rate| (rate / per_tick[0] - 1.0).abs() < 0.001), "{place:?} {per_tick:?}");
        seen.push(per_tick[0]);
    }
    assert!(seen.iter().all(|rate| (rate / seen[0] - 1.0).abs() < 0.01), "{seen:?}");
}
