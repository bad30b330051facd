//! LUSTRE: how files lie on servers, as facts about them. HEATMAP: bytes over time, as counters.

use super::bytes::{Order, Region, nanoseconds};
use super::out::Out;
use crate::Result;
use crate::event::{Arg, Event, Shape};

const MOST_COMPONENTS: u64 = 1 << 16;
const MOST_STRIPES: u64 = 1 << 20;
const MOST_BINS: u64 = 1 << 20;
/// The category of counters of heatmaps.
const HEATMAP: &str = "heatmap";

const LUSTRE: [&str; 5] =
    ["LUSTRE_OSTS", "LUSTRE_MDTS", "LUSTRE_STRIPE_OFFSET", "LUSTRE_STRIPE_SIZE", "LUSTRE_STRIPE_WIDTH"];
const COMPONENT: [&str; 7] = [
    "LUSTRE_COMP_STRIPE_SIZE",
    "LUSTRE_COMP_STRIPE_COUNT",
    "LUSTRE_COMP_STRIPE_PATTERN",
    "LUSTRE_COMP_FLAGS",
    "LUSTRE_COMP_EXT_START",
    "LUSTRE_COMP_EXT_END",
    "LUSTRE_COMP_MIRROR_ID",
];

/// A count that is to be believed.
fn count(region: &Region<'_, '_>, number: i64, most: u64, what: &str) -> Result<u64> {
    let count = u64::try_from(number).ok().filter(|count| *count <= most);
    count.ok_or_else(|| region.invalid(&format!("{number} {what} are not believed")))
}

/// Numbers as a JSON list.
fn list(region: &mut Region<'_, '_>, order: Order, count: u64) -> Result<String> {
    let mut text = String::from("[");
    let mut number = [0; 8];
    for place in 0..count {
        region.fill(&mut number)?;
        text += if place > 0 { "," } else { "" };
        text += &order.i64(&number, 0).to_string();
    }
    text.push(']');
    Ok(text)
}

/// Reads the module LUSTRE: stripes of files in version 1, components of layouts in version 2.
pub(super) fn lustre(region: &mut Region<'_, '_>, version: u32, order: Order, out: &mut Out<'_>) -> Result<()> {
    let mut head = [0; 16];
    let mut made = Vec::new();
    while region.next(&mut head)? {
        let (id, rank) = (order.u64(&head, 0), order.i64(&head, 8));
        let (mut counters, mut components) = (Vec::new(), String::new());
        let osts = if version == 1 {
            let mut numbers = [0; 40];
            region.fill(&mut numbers)?;
            counters.extend(LUSTRE.iter().zip((0..5).map(|place| order.i64(&numbers, place * 8))));
            let width = count(region, order.i64(&numbers, 32), MOST_STRIPES, "stripes of a file")?;
            // A file without stripes has room for one.
            list(region, order, width.max(1))?
        } else {
            let mut numbers = [0; 16];
            region.fill(&mut numbers)?;
            let parts_count = count(region, order.i64(&numbers, 0), MOST_COMPONENTS, "components of a file")?;
            let stripes = count(region, order.i64(&numbers, 8), MOST_STRIPES, "stripes of a file")?;
            components = parts(region, order, parts_count)?;
            list(region, order, stripes)?
        };
        let Some(pid) = out.pid(rank) else {
            out.sink.skip("rank that the job does not have", region.offset());
            continue;
        };
        out.tell(rank, pid)?;
        let file = out.names.of(id, &mut made).to_vec();
        let mut args = vec![("fhash", Arg::Path(&file)), ("id", Arg::Unsigned(id)), ("rank", Arg::Int(rank))];
        args.extend(counters.iter().map(|(name, number)| (**name, Arg::Int(*number))));
        args.extend((!components.is_empty()).then_some(("LUSTRE_COMPS", Arg::Json(&components))));
        args.push(("LUSTRE_OST_IDS", Arg::Json(&osts)));
        out.about("LUSTRE", pid, &args)?;
    }
    Ok(())
}

/// Components, as a JSON list.
fn parts(region: &mut Region<'_, '_>, order: Order, count: u64) -> Result<String> {
    let mut components = Vec::new();
    let mut bytes = [0; 72];
    for _ in 0..count {
        region.fill(&mut bytes)?;
        let numbers = COMPONENT
            .iter()
            .enumerate()
            .map(|(place, name)| ((*name).to_owned(), serde_json::Value::from(order.i64(&bytes, place * 8))));
        let mut component: serde_json::Map<String, serde_json::Value> = numbers.collect();
        let pool = bytes[56..].split(|byte| *byte == 0).next().unwrap_or_default();
        component.insert("LUSTRE_POOL_NAME".to_owned(), String::from_utf8_lossy(pool).into_owned().into());
        components.push(serde_json::Value::Object(component));
    }
    Ok(serde_json::Value::Array(components).to_string())
}

/// Reads the module HEATMAP. Bins in which nothing was moved are no counters.
pub(super) fn heatmap(region: &mut Region<'_, '_>, order: Order, out: &mut Out<'_>) -> Result<()> {
    // File, rank, width, bins, and two addresses of the process that wrote it.
    let mut head = [0; 48];
    let (mut number, mut written) = ([0; 8], Vec::new());
    let mut made = Vec::new();
    while region.next(&mut head)? {
        let (id, rank) = (order.u64(&head, 0), order.i64(&head, 8));
        let width = order.f64(&head, 16);
        let bins = count(region, order.i64(&head, 24), MOST_BINS, "bins")?;
        written.clear();
        for _ in 0..bins {
            region.fill(&mut number)?;
            written.push(order.i64(&number, 0));
        }
        let width_ns = nanoseconds(width).filter(|width| *width > 0);
        let pid = out.pid(rank);
        let reason = match (pid, width_ns) {
            (None, _) => Some("rank that the job does not have"),
            (_, None) => Some("heatmap without a width"),
            _ => None,
        };
        if let Some(reason) = reason {
            out.sink.skip(reason, region.offset());
        }
        let name = String::from_utf8_lossy(out.names.of(id, &mut made)).into_owned();
        let wanted = pid.zip(width_ns).filter(|_| reason.is_none());
        if let Some((pid, _)) = wanted {
            out.tell(rank, pid)?;
            let args = [
                ("map", Arg::Text(name.as_bytes())),
                ("id", Arg::Unsigned(id)),
                ("rank", Arg::Int(rank)),
                ("HEATMAP_F_BIN_WIDTH_SECONDS", Arg::Float(width)),
                ("bins", Arg::Unsigned(bins)),
            ];
            out.about("HEATMAP", pid, &args)?;
        }
        for (place, wrote) in (0..).zip(&written) {
            region.fill(&mut number)?;
            let read = order.i64(&number, 0);
            let Some((pid, width_ns)) = wanted.filter(|_| *wrote != 0 || read != 0) else { continue };
            let edge = |place: i64| out.clock.to_utc(width_ns.saturating_mul(place));
            let (start_ns, end_ns) = (edge(place), edge(place + 1));
            let args = [("bytes_read", Arg::Int(read)), ("bytes_written", Arg::Int(*wrote))];
            let shape = Shape::Counter { end_ns };
            out.sink.event(&Event { shape, name: &name, cat: HEATMAP, pid, tid: pid, start_ns, args: &args })?;
        }
    }
    Ok(())
}
