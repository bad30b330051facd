//! Lines as they stand in a file, byte by byte.

use super::*;
use crate::event::{Event, Phase};

fn check(write: impl FnOnce(&mut LineBuf), expected: &str) {
    let mut lines = LineBuf::new();
    write(&mut lines);
    let text = String::from_utf8(lines.into_bytes()).expect("JSON is UTF-8");
    assert_eq!(text.strip_suffix('\n'), Some(expected));
}

#[test]
fn every_kind_of_line() {
    const AT: i64 = 1_794_764_744_755_824_123;
    check(
        |l| l.complete("a", "c", 1, 2, 5_000, 7_000).finish(),
        r#"{"name":"a","cat":"c","ph":"X","pid":1,"tid":2,"ts":5,"dur":2}"#,
    );
    check(
        |l| l.complete("a", "c", 1, 2, -1, 1).finish(),
        r#"{"name":"a","cat":"c","ph":"X","pid":1,"tid":2,"ts":-1,"ns":999001,"dur":1}"#,
    );
    check(
        |l| l.complete("a", "c", u32::MAX, u32::MAX, i64::MIN, i64::MAX).arg_u64("u", u64::MAX).finish(),
        concat!(
            r#"{"name":"a","cat":"c","ph":"X","pid":4294967295,"tid":4294967295,"ts":-9223372036854776,"#,
            r#""ns":192807,"dur":18446744073709551,"args":{"u":18446744073709551615}}"#
        ),
    );
    let rest = r#","pid":1,"tid":2,"ts":1794764744755824,"ns":123000}"#;
    check(|l| l.instant("a", "c", 1, 2, AT).finish(), &format!(r#"{{"name":"a","cat":"c","ph":"i"{rest}"#));
    check(|l| l.begin("a", "c", 1, 2, AT).finish(), &format!(r#"{{"name":"a","cat":"c","ph":"B"{rest}"#));
    check(|l| l.end("a", "c", 1, 2, AT).finish(), &format!(r#"{{"name":"a","cat":"c","ph":"E"{rest}"#));
    check(|l| l.metadata_at("a", "c", 1, 2, AT).finish(), &format!(r#"{{"name":"a","cat":"c","ph":"M"{rest}"#));
    check(
        |l| {
            l.counter("a", "c", 1, 2, 0).arg_f64("f", 0.5).arg_f64("n", f64::NAN).arg_f64("i", f64::INFINITY).finish();
        },
        r#"{"name":"a","cat":"c","ph":"C","pid":1,"tid":2,"ts":0,"args":{"f":0.5,"n":"NaN","i":"Infinity"}}"#,
    );
    let with_id = |ph: &str, more: &str| {
        format!(r#"{{"name":"a","cat":"c","ph":"{ph}","pid":1,"tid":2,"id":"0x1f"{more},"ts":0}}"#)
    };
    check(|l| l.async_begin("a", "c", 1, 2, 0, 31).finish(), &with_id("b", ""));
    check(|l| l.async_instant("a", "c", 1, 2, 0, 31).finish(), &with_id("n", ""));
    check(|l| l.async_end("a", "c", 1, 2, 0, 31).finish(), &with_id("e", ""));
    check(|l| l.flow_start("a", "c", 1, 2, 0, 31).finish(), &with_id("s", ""));
    check(|l| l.flow_step("a", "c", 1, 2, 0, 31).finish(), &with_id("t", ""));
    check(|l| l.flow_end("a", "c", 1, 2, 0, 31).finish(), &with_id("f", r#","bp":"e""#));
    check(
        |l| l.define_path(1, 2, 0xab, b"/a\"\xff"),
        r#"{"name":"FH","cat":"dftracer","ph":"M","pid":1,"tid":2,"args":{"name":"/a\"\udcff","value":"00000000000000ab"}}"#,
    );
    check(
        |l| {
            l.metadata("\n", "\t", 0, 0)
                .arg_str("\\", b"NaN")
                .arg_strs("l", [&b"a"[..], b"\""])
                .arg_bool("b", true)
                .finish();
        },
        r#"{"name":"\n","cat":"\t","ph":"M","pid":0,"tid":0,"args":{"\\":"\u004eaN","l":["a","\""],"b":true}}"#,
    );
}

#[test]
fn lines_do_not_mix() {
    let mut lines = LineBuf::with_capacity(8);
    lines.open_array();
    lines.instant("a", "", 1, 2, 0).arg_i64("x", -1).finish();
    let kept = lines.len();
    lines.instant("b", "", 3, 4, 0).arg_i64("x", 1);
    lines.truncate(kept);
    lines.instant("c", "", 1, 4, 0).finish();
    lines.lines(b"{}\n");
    let expected = concat!(
        "[\n",
        "{\"name\":\"a\",\"cat\":\"\",\"ph\":\"i\",\"pid\":1,\"tid\":2,\"ts\":0,\"args\":{\"x\":-1}}\n",
        "{\"name\":\"c\",\"cat\":\"\",\"ph\":\"i\",\"pid\":1,\"tid\":4,\"ts\":0}\n{}\n"
    );
    assert_eq!(String::from_utf8_lossy(lines.as_bytes()), expected);
    lines.clear();
    assert!(lines.is_empty());
}

#[test]
fn whole_events() {
    let bare = Event::new(Phase::Instant, "a", "", 1, 2);
    check(|l| l.write_event(&bare), r#"{"name":"a","ph":"i","pid":1,"tid":2}"#);
    let full = Event {
        start_ns: Some(1_001),
        dur_ns: Some(1_000),
        id: Some("7".into()),
        args: vec![("j".into(), Value::Json("[1,\n2]".into()))],
        extra: vec![("type".into(), Value::Int(3)), ("pid".into(), "main".into()), ("ns".into(), Value::Int(-5))],
        ..Event::new(Phase::Complete, "a", "c", 0, 2)
    };
    check(
        |l| l.write_event(&full),
        r#"{"name":"a","cat":"c","ph":"X","tid":2,"id":7,"ts":1,"ns":1001,"dur":1,"type":3,"pid":"main","args":{"j":[1, 2]}}"#,
    );
    let lone = Event { dur_ns: Some(-1_005), id: Some("07".into()), ..bare };
    check(|l| l.write_event(&lone), r#"{"name":"a","ph":"i","pid":1,"tid":2,"id":"07","dur":-1.005}"#);
}
