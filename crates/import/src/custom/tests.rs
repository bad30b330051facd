//! Tests of described formats: lines in, events out; descriptions with mistakes.

use super::*;
use crate::config::{Config, Zone};
use crate::sink::Memory;

fn config(text: &str) -> Config {
    Config::parse("weft.toml", text.as_bytes()).expect("a good file")
}

fn run(format: &Custom, bytes: &[u8]) -> (Memory, Result<()>) {
    let mut memory = Memory::default();
    let known = Survey { zone_seconds: Some(3600), first_day: Some(20_775), ..Survey::default() };
    let read = format.read(&mut Input::new("x", &mut &*bytes), &known, &mut memory);
    (memory, read)
}

fn check(toml: &str, text: &str, events: &[&str], skipped: &[(&str, u64)]) {
    let config = config(toml);
    let (memory, read) = run(&config.formats[0], text.as_bytes());
    read.expect("memory");
    assert_eq!(memory.events, events);
    let found: Vec<_> = memory.skipped.iter().map(|(reason, skipped)| (reason.as_str(), skipped.count)).collect();
    assert_eq!(found, skipped);
}

const TEXT: &str = r#"
[[format]]
name = "app"
match = { name = "*.applog", lines = '^\d+ \w+ took' }
kind = "text"
regex = '^(?<at>\d+) (?<what>\w+) took (?<us>[\d.]+) us(?: on (?<file>\S+))?(?: n=(?<n>\S+))?'
comment = '#'
[format.fields]
time = { field = "at", unit = "ms" }
duration = { field = "us", unit = "us" }
name = "what"
category = { value = "POSIX" }
path = "file"
pid = { value = 7 }
"#;
const LINES: &str = "# hello\n1000 read took 1.5 us on /a n=5\n1001 write took 2 us n=007\nnoise\n\n99999999999999999999 x took 1 us\n1002 x to";

#[test]
fn lines_of_text() {
    let events = [
        "span read POSIX 7/7 1000000000..1000001500 fhash=/a n=5",
        "span write POSIX 7/7 1001000000..1001002000 n=007",
    ];
    let skipped = [
        ("comment", 1),
        ("line that the expression does not fit", 1),
        ("record without a time that fits", 1),
        ("torn line", 1),
    ];
    check(TEXT, LINES, &events, &skipped);
}

const CSV: &str = r#"
[[format]]
name = "csv"
kind = "csv"
delimiter = ";"
clock = "local"
[format.fields]
end = { field = "done", pattern = "%d.%m.%Y %H:%M:%S,%f" }
duration = { field = "took", unit = "s" }
name = "name"
host = "host"
"#;
const ROWS: &str = "\u{feff}done;took;name;host;note\r\n18.11.2026 10:00:01,5;0.25;\"a;\"\"b\"\"\";h1;\"two\nlines\"\n18.11.2026 10:00:02,0;;x;h2;1.5\n\n\
                    31.02.2026 10:00:02,0;1;x;h2;\nfew\n18.11.2026 10:00:03,0;1;y;h2;;more\n\"open";

#[test]
fn delimited_text() {
    let events = [
        "h1|async a;\"b\" csv 1/1 1794992401250000000..1794992401500000000 note=two\nlines",
        "h2|instant x csv 1/1 1794992402000000000 note=1.5",
        "h2|async y csv 1/1 1794992402000000000..1794992403000000000 6=more",
    ];
    check(CSV, ROWS, &events, &[("quoted field without an end", 1), ("record without a time that fits", 2)]);
    // Columns by number, counters, a tab.
    let numbers = "[[format]]\nname = 'n'\nkind = 'csv'\nheader = false\ndelimiter = 'tab'\nclock = 'relative'\n[format.fields]\n\
                   time = { field = 1, unit = 's' }\ntid = 2\nname = { value = 'load' }\ncounters = ['3', '4']";
    let events =
        ["counter load n 1/8 1500000000..1500000000 3=2 4=0.5", "counter load n 1/1 2000000000..2000000000 3=7"];
    check(numbers, "1.5\t8\t2\t0.5\n2\tmain\t7\tx\n3\t1\tx\n", &events, &[("record without a number to count", 1)]);
    let named = numbers.replace("header = false", "columns = ['t', 'th', 'a', 'b']").replace("1, unit", "'t', unit");
    check(
        &named.replace("tid = 2", "tid = 'th'").replace("'3', '4'", "'a'"),
        "1\t2\t3",
        &["counter load n 1/2 1000000000..1000000000 a=3"],
        &[],
    );
    let (_, read) = run(&config(CSV).formats[0], b"a;b\n1;2\n");
    let error = read.expect_err("another header").to_string();
    assert_eq!(error, "x, at byte 0: format \"csv\" needs a column \"done\"; there are a, b");
}

const JSONL: &str = r#"
[[format]]
name = "spans"
match = { name = "spans-??.jsonl" }
kind = "jsonl"
[format.fields]
time = { field = "/when/start", pattern = "rfc3339" }
end = { field = "stop", pattern = "%Y-%m-%dT%T.%f%z" }
pid = "pid"
tid = "thread"
name = "/ops/0/na~1me"
"#;
const OBJECTS: &str = r#"{"when":{"start":"2026-11-18T10:00:00.5+01:00"},"stop":"2026-11-18T09:00:01.0Z","pid":5,"thread":6,"ops":[{"na/me":"x"}],"ok":true,"n":1.5}
{"when":{"start":"2026-11-18T10:00:00Z"},"pid":"12","thread":140234567890123,"a\"b\n":null,"c\"":[1]}
{"when":{"start":"2026-11-18T10:00:00Z"},"pid":"none"}
[1]
{"when":3}
"#;

#[test]
fn json_lines() {
    let events = [
        "span x spans 5/6 1794992400500000000..1794992401000000000 when={\"start\":\"2026-11-18T10:00:00.5+01:00\"} \
         ops=[{\"na/me\":\"x\"}] ok=true n=1.5",
        "instant spans spans 12/12 1794996000000000000 tid=140234567890123 when={\"start\":\"2026-11-18T10:00:00Z\"} c\"=[1]",
    ];
    let skipped =
        [("not a JSON object", 1), ("record whose process is no number", 1), ("record without a time that fits", 1)];
    check(JSONL, OBJECTS, &events, &skipped);
    // Fractions as they were written; times without a day; only some arguments.
    let plain = "[[format]]\nname = 'p'\nkind = 'jsonl'\n[format.fields]\ntime = { field = 't', unit = 's' }\narguments = ['a']";
    check(plain, "{\"t\":1794992400.123456,\"a\":1,\"b\":2}", &["instant p p 1/1 1794992400123456000 a=1"], &[]);
    let wall = plain.replace("unit = 's'", "pattern = '%I:%M:%S %p'");
    let events = ["instant p p 1/1 1795042740000000000", "instant p p 1/1 1795042860000000000"];
    check(&wall, "{\"t\":\"11:59:00 PM\"}\n{\"t\":\"12:01:00 am\"}", &events, &[]);
    let syslog = plain.replace("unit = 's'", "pattern = '%a %b %e %T'");
    check(&syslog, "{\"t\":\"Wed Nov  8 10:00:00\"}", &["instant p p 1/1 1794128400000000000"], &[]);
}

#[test]
fn files_are_found_by_name_and_lines() {
    let config = config(&format!("{TEXT}{JSONL}{CSV}"));
    let found = |name: &str, text: &str| {
        let head = Head { name, bytes: text.as_bytes() };
        crate::registry::choose(&head, Some(&config)).map(|chosen| chosen.kind().to_owned())
    };
    assert_eq!(found("x.applog", LINES).as_deref(), Some("app"));
    assert_eq!(found("x.log", LINES), None);
    assert_eq!(found("x.applog", "other\n"), None);
    assert_eq!(found("spans-01.jsonl", "").as_deref(), Some("spans"));
    assert_eq!(found("spans-1.jsonl", ""), None);
    assert_eq!(found("y", "1700000000.5 sync() = 0\n").as_deref(), Some("strace"));
    assert_eq!(
        crate::registry::by_name("csv", Some(&config)).map(|chosen| chosen.kind().to_owned()).ok().as_deref(),
        Some("csv")
    );
    assert!(crate::registry::by_name("csv", None).is_err());
    for (glob, name, fits) in [
        ("*", "", true),
        ("a*b*c", "aXbYbZc", true),
        ("a*b*c", "aXbYbZ", false),
        ("?", "", false),
        ("*.log", "x.log.gz", false),
        ("", "", true),
    ] {
        assert_eq!(fits_glob(glob.as_bytes(), name.as_bytes()), fits, "{glob} {name}");
    }
    // Many stars take no longer.
    assert!(!fits_glob("*a".repeat(2000).as_bytes(), &vec![b'a'; 1999]));
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let says = |text: &str, words: &str| {
        let error = Config::parse("weft.toml", text.as_bytes()).expect_err(words).to_string();
        assert_eq!(error, format!("weft.toml, line {words}"));
    };
    let format = "[[format]]\nname = 'a'\nkind = 'text'\nregex = '(?<t>.*)'\n[format.fields]\ntime = { field = 't', unit = 's' }\n";
    config(format);
    let with = |from: &str, to: &str| format.replace(from, to);
    says(&with("(?<t>.*)", "(?<t>.*"), "4: this regular expression is wrong: unclosed group");
    says(
        &with("(?<t>.*)", "(?<t>(\\\\w{1000}){1000})"),
        "4: this regular expression is too large: use fewer or smaller repetitions",
    );
    says(&with("field = 't'", "field = 'u'"), "1: there is no field \"u\"; there are t");
    says(&with("unit = 's'", "unit = 'h'"), "6: unknown variant `h`, expected one of `ns`, `us`, `ms`, `s`");
    says(
        &with("unit = 's'", "pattern = '%Q'"),
        "1: %Q is unknown: %Y %y %m %b %d %H %I %p %M %S %f %z %s %a %Z %F %T %% are known",
    );
    says(&with("unit = 's'", "pattern = '%Y'"), "1: a pattern of a time needs %H, %I or %s");
    says(
        &with(", unit = 's'", ""),
        "1: a time needs either unit (ns, us, ms, s) or pattern (\"rfc3339\", \"%Y-%m-%d %H:%M:%S.%f\")",
    );
    says(&with("kind = 'text'", "kind = 'xml'"), "3: unknown variant `xml`, expected one of `text`, `csv`, `jsonl`");
    says(&with("kind = 'text'", "kind = 'csv'"), "1: regex does not belong to a format of this kind: remove it");
    says(
        &with("name = 'a'", "name = 'A b'"),
        "1: the name \"A b\" of a format has to be of small letters, digits and -",
    );
    says(&with("name = 'a'", "name = 'strace'"), "1: there is a format \"strace\" already: give it another name");
    says(
        &with("time =", "when ="),
        "6: unknown field `when`, expected one of `time`, `end`, `duration`, `pid`, `tid`, `name`, `category`, `host`, `path`, `arguments`, `counters`",
    );
    says(&with("time = { field = 't', unit = 's' }", ""), "1: fields need time, or end with duration");
    says(
        &with("kind = 'text'", "kind = 'text'\nclock = 'boots'"),
        "4: unknown variant `boots`, expected one of `boot`, `monotonic`, `realtime`, `local`, `relative`",
    );
    says(
        &with("unit = 's'", "pattern = 'rfc3339'").replace("kind", "clock = 'local'\nkind"),
        "1: these times tell their zone and are UTC: remove clock",
    );
    says(
        &format!("{format}pid = [1]"),
        "7: invalid type: sequence, expected the name of a field, the number of a column, or { value = … }",
    );
    says(&format!("{format}pid = 0"), "7: columns are counted from 1");
    let second = with("name = 'a'", "name = 'b'").replace(", unit = 's'", "");
    says(
        &format!("{format}\n{second}"),
        "8: a time needs either unit (ns, us, ms, s) or pattern (\"rfc3339\", \"%Y-%m-%d %H:%M:%S.%f\")",
    );
    says(&format!("{format}{format}"), "7: there is a format \"a\" already: give it another name");
    says(&format!("{format}[[format]]\nname = 'x'\nkind = 'jsonl'"), "7: missing field `fields`");
    says("[discs]\ntz = 'CET'", "2: a time zone is a distance to UTC such as \"+01:00\", or \"UTC\"");
    says("[[format]]\nname = 'x'\nkind = 'jsonl'", "1: missing field `fields`");
    says("a = 1", "1: unknown field `a`, expected `discs` or `format`");
    let error = Config::parse("weft.toml", b"[discs]\nx = \xff").expect_err("bytes").to_string();
    assert_eq!(error, "weft.toml, line 2: this is no UTF-8 text");
    assert!(Config::parse("weft.toml", b"[discs\n").expect_err("open").to_string().starts_with("weft.toml, line 1: "));
}

#[test]
fn what_is_known_better() {
    let read = config(
        "[discs]\nworkload = 'unet3d'\ntz = '-03:30'\nroles = { 4711 = 'master', 12 = 'loader 7' }\nphases = { block = 'training' }",
    );
    assert_eq!(read.discs.tz, Some(Zone { seconds: -12_600 }));
    assert_eq!(read.discs.roles["4711"], "master");
    assert_eq!((read.discs.workload.as_deref(), read.discs.phases["block"].as_str()), (Some("unet3d"), "training"));
    for (text, expected) in [
        ("Z", Some(0)),
        ("+01", Some(3600)),
        ("+0530", Some(19_800)),
        ("UTC", Some(0)),
        ("1", None),
        ("+1:00", None),
        ("", None),
    ] {
        assert_eq!(text.parse::<Zone>().ok().map(|zone| zone.seconds), expected, "{text}");
    }
}

#[test]
fn cut_changed_and_long() {
    for (toml, text) in [(TEXT, LINES), (CSV, ROWS), (JSONL, OBJECTS)] {
        let config = config(toml);
        let format = &config.formats[0];
        for length in 0..text.len() {
            let _ = run(format, &text.as_bytes()[..length]);
            let _ = Config::parse("x", &toml.as_bytes()[..length.min(toml.len())]);
        }
        for at in 0..text.len() {
            for byte in *b"\"{}[],:;.%9 \n\xff" {
                let mut changed = text.as_bytes().to_vec();
                changed[at] = byte;
                let _ = run(format, &changed);
            }
        }
        let long = [vec![b'x'; 10 << 20], b"\n".to_vec(), text.as_bytes().to_vec()].concat();
        let (memory, _) = run(format, &long);
        assert_eq!(memory.skipped["line longer than 8 MiB"].count, 1);
        // A quote that never ends takes neither all memory nor all time.
        let (memory, _) = run(format, &[text.as_bytes(), b"\n\"", "x\n".repeat(200_000).as_bytes()].concat());
        assert!(memory.skipped.values().map(|skipped| skipped.count).sum::<u64>() >= 200_000 || toml == CSV);
    }
}

#[test]
fn years_of_days() {
    for (day, year) in
        [(0, 1970), (364, 1970), (365, 1971), (20_775, 2026), (20_818, 2026), (20_819, 2027), (11_016, 2000)]
    {
        assert_eq!(year_of(day), year, "{day}");
    }
}
