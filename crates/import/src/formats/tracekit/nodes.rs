//! JSON documents: what nodes and links are. Nodes become the metadata that `weft collect` writes of its host.

use weftline_format::identity::CATEGORY;

use super::{Folder, MOST_DOCUMENT, Role};
use crate::Result;
use crate::event::{Arg, Event, Shape};
use crate::input::Input;
use crate::json::{Fields, Scalar};
use crate::sink::Sink;

/// The objects of a document: an array's, or the one that it is. What is no such document has none.
pub(super) fn items(document: &[u8]) -> Vec<Fields<'_>> {
    let list = serde_json::from_slice(document).ok();
    list.or_else(|| Some(vec![Fields::parse(document)?])).unwrap_or_default()
}

/// Reads what is behind a first line.
pub(super) fn rest_of_document(input: &mut Input<'_>, first: &[u8]) -> Result<Vec<u8>> {
    let (mut whole, mut line) = (first.to_vec(), Vec::new());
    while (whole.len() as u64) < MOST_DOCUMENT && input.next_line(&mut line)?.is_some() {
        whole.push(b'\n');
        whole.extend_from_slice(&line);
    }
    Ok(whole)
}

/// The node of a folder: `node_meta.json` tells it for sure, and `nodes.json` where it has one alone.
pub(super) fn survey(document: &[u8], folder: &mut Folder) {
    let items = items(document);
    let [fields] = &items[..] else { return };
    match (fields.text("node"), fields.text("node_id")) {
        (Some(node), _) => folder.node = Some(node.to_owned()),
        (None, Some(node)) if folder.node.is_none() => folder.node = Some(node.to_owned()),
        _ => {}
    }
}

pub(super) fn read(role: Role, document: &[u8], reads: bool, folder: &Folder, sink: &mut dyn Sink) -> Result<()> {
    let start_ns = super::epoch_clock(sink).to_utc(folder.first_ns.unwrap_or(0));
    for fields in items(document) {
        if !reads {
            sink.skip("told by another file of the folder", 0);
            continue;
        }
        let (name, host) = match role {
            Role::Nodes => ("node", fields.text("node").or(fields.text("node_id"))),
            Role::LinkFacts => ("link", fields.text("u").or(folder.node.as_deref())),
            _ => ("module", folder.node.as_deref()),
        };
        if let Some(host) = host {
            sink.host(host)?;
        }
        let frequency = fields.int("cpu_freq_mhz").filter(|mhz| (1..1_000_000).contains(mhz));
        let frequency = frequency.map(|mhz| format!("{{\"hz\":{},\"source\":\"tracekit\"}}", mhz * 1_000_000));
        let mut args: Vec<(&str, Arg<'_>)> = Vec::new();
        for (key, value) in &fields.0 {
            match (key.as_ref(), value) {
                ("cpu_cores", Scalar::Int(cores)) => args.push(("cores", Arg::Int(*cores))),
                // MemTotal in units of 1024 · 1024 bytes.
                ("mem_mb", Scalar::Int(mib)) => args.push(("memory_bytes", Arg::Int(mib.saturating_mul(1 << 20)))),
                ("cpu_freq_mhz", _) if role == Role::Nodes => {
                    args.extend(frequency.as_deref().map(|json| ("cpu_frequency", Arg::Json(json))));
                }
                (key, value) => args.extend(value.arg().map(|arg| (key, arg))),
            }
        }
        let (shape, pid) = (Shape::Metadata, 0);
        sink.event(&Event { shape, name, cat: CATEGORY, pid, tid: pid, start_ns, args: &args })?;
    }
    Ok(())
}
