//! Changes to JSON: some value of it becomes another one.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{number, open};
use crate::hostile::sandbox::Sandbox;
use crate::random::Random;

/// Changes one value of a file that is one JSON text; nothing when it is none any more. `pointer`: mostly its path.
pub(super) fn change(random: &mut Random, sandbox: &Sandbox, path: &Path, pointer: bool) -> Option<String> {
    open(path)?;
    let mut value: Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    // An earlier change may have left something that has no fields.
    let what = if pointer && value.is_object() && random.percent(50) {
        let to = text(random, sandbox);
        value["path"] = Value::from(to.clone());
        format!("path to {}", shown(&to))
    } else {
        change_value(random, sandbox, &mut value)
    };
    let mut written = serde_json::to_vec_pretty(&value).ok()?;
    let what = match random.below(12) {
        // Readers may stop at the first end, or take the second one's fields.
        0 => {
            written.extend_from_within(..);
            format!("{what}, twice")
        }
        1 => {
            written = nested(random);
            "nested lists".to_owned()
        }
        _ => what,
    };
    std::fs::write(path, written).ok()?;
    Some(what)
}

/// Changes one value in one line of a file of JSON lines.
pub(super) fn change_line(random: &mut Random, sandbox: &Sandbox, path: &Path) -> Option<String> {
    open(path)?;
    let bytes = std::fs::read(path).ok()?;
    let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let at = random.below(lines.len() as u64) as usize;
    let mut value: Value = serde_json::from_slice(&lines[at]).unwrap_or_else(|_| entry(random, sandbox));
    let what = change_value(random, sandbox, &mut value);
    lines[at] = serde_json::to_vec(&value).ok()?;
    if random.percent(10) {
        lines = vec![lines[at].clone(); 2000];
    }
    std::fs::write(path, lines.join(&b"\n"[..])).ok()?;
    Some(format!("line {at}: {what}"))
}

/// An image that a journal never had.
fn entry(random: &mut Random, sandbox: &Sandbox) -> Value {
    let file = text(random, sandbox);
    json!({"tag": format!("{:012x}", random.below(1 << 48)), "process": {"pid": number(random), "file": file, "events": number(random)}})
}

/// Changes some value below; what, in words.
pub(super) fn change_value(random: &mut Random, sandbox: &Sandbox, root: &mut Value) -> String {
    let mut places = Vec::new();
    list(root, String::new(), &mut places);
    let place = random.one_of(&places).clone();
    if random.percent(10)
        && let Some((parent, key)) = place.rsplit_once('/')
        && let Some(Value::Object(fields)) = root.pointer_mut(parent)
    {
        fields.remove(key);
        return format!("{place} removed");
    }
    let Some(value) = root.pointer_mut(&place) else { return "nothing".to_owned() };
    *value = match (&*value, random.below(10)) {
        (Value::String(_), 0..7) => Value::from(text(random, sandbox)),
        (Value::Number(_), 0..7) => wrong_number(random),
        (Value::Array(list), 0..3) if !list.is_empty() => {
            let one = random.one_of(list).clone();
            Value::Array(vec![one; 20_000 >> random.below(15)])
        }
        (_, 7) => Value::Null,
        (_, 8) => Value::Object(Map::new()),
        (_, 9) => Value::Array(vec![Value::Array(Vec::new()); 3]),
        _ => match random.below(3) {
            0 => Value::from(text(random, sandbox)),
            1 => wrong_number(random),
            _ => Value::Bool(random.percent(50)),
        },
    };
    let now = value.to_string();
    format!("{place} is {}", shown(&now))
}

fn wrong_number(random: &mut Random) -> Value {
    match random.below(8) {
        0 => Value::from(-1),
        1 => Value::from(i64::MIN),
        2 => Value::from(1e308),
        3 => Value::from(-0.5),
        _ => Value::from(number(random)),
    }
}

/// All values, by their JSON pointers.
fn list(value: &Value, place: String, places: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields {
                list(inner, format!("{place}/{}", key.replace('~', "~0").replace('/', "~1")), places);
            }
        }
        Value::Array(inner) => {
            for (index, inner) in inner.iter().enumerate() {
                list(inner, format!("{place}/{index}"), places);
            }
        }
        _ => {}
    }
    places.push(place);
}

/// Texts that name something, are not what they should be, or are long.
pub(super) fn text(random: &mut Random, sandbox: &Sandbox) -> String {
    let targets = sandbox.targets();
    let target = random.one_of(&targets).to_string_lossy().into_owned();
    match random.below(14) {
        0..5 => target,
        5 => format!("{target}/"),
        6 => format!("../{}", target.rsplit('/').next().unwrap_or_default()),
        7 => format!("../../decoy/{}", random.one_of(&["new", "thesis.tex", "deep"])),
        8 => "x".repeat(1 << random.below(21)),
        9 => ["", ".", "..", "/", "-rf", "a/b", "[", "**/**/**", "~"][random.below(9) as usize].to_owned(),
        10 => "nul \0 escape \x1b[2J right to left \u{202e} newline \n".to_owned(),
        // How names that are no text are held.
        11 => "\\udcff\\udc80".to_owned(),
        12 => format!("{}", number(random)),
        _ => "1970-01-01T00:00:00Z".to_owned(),
    }
}

fn nested(random: &mut Random) -> Vec<u8> {
    let depth = 1usize << (8 + random.below(12));
    [vec![b'['; depth], vec![b']'; depth]].concat()
}

fn shown(text: &str) -> String {
    let short: String = text.chars().take(120).collect();
    format!("{short:?}{}", if short.len() < text.len() { "…" } else { "" })
}
