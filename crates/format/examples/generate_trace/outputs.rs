//! The forms that a generated job is written in, and what is known of it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use rayon::prelude::*;

use super::dftracer::Lines;
use super::run::Run;
use super::workload::{Call, Detail, Workload};

/// Text of a gzip member of the form `multi`.
const MEMBER_TEXT: usize = 1 << 20;
/// Text that is compressed at a time.
const BATCH_TEXT: usize = 16 * MEMBER_TEXT;

/// Where each form goes.
#[derive(Debug, Default)]
pub(crate) struct Forms {
    pub(crate) single: Option<PathBuf>,
    pub(crate) multi: Option<PathBuf>,
    pub(crate) plain: Option<PathBuf>,
    pub(crate) run: Option<PathBuf>,
}

/// What a correct analysis finds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) events: u64,
    /// Lines that are not events, in DFTracer's text.
    pub(crate) definitions: u64,
    pub(crate) text_bytes: u64,
    /// Events, and bytes of the data calls, by category and name.
    pub(crate) calls: BTreeMap<(&'static str, &'static str), (u64, i64)>,
    /// Size of each form in bytes.
    pub(crate) sizes: BTreeMap<&'static str, u64>,
}

impl Summary {
    fn add(&mut self, call: &Call) {
        self.events += 1;
        let sum = self.calls.entry((call.cat, call.name)).or_default();
        sum.0 += 1;
        if let Detail::Data { ret, .. } = call.detail {
            sum.1 += ret;
        }
    }

    pub(crate) fn as_json(&self) -> String {
        let calls: Vec<_> = (self.calls.iter())
            .map(|((cat, name), (count, bytes))| serde_json::json!({"cat": cat, "name": name, "count": count, "bytes": bytes}))
            .collect();
        serde_json::json!({
            "events": self.events,
            "definitions": self.definitions,
            "text_bytes": self.text_bytes,
            "sizes": self.sizes,
            "calls": calls,
        })
        .to_string()
    }
}

/// The files with DFTracer's text.
struct Texts {
    single: Option<GzEncoder<File>>,
    multi: Option<File>,
    plain: Option<File>,
}

impl Texts {
    fn create(forms: &Forms) -> io::Result<Texts> {
        let create = |path: &Option<PathBuf>| path.as_deref().map(create_file).transpose();
        let single = create(&forms.single)?.map(|file| GzEncoder::new(file, Compression::new(6)));
        Ok(Texts { single, multi: create(&forms.multi)?, plain: create(&forms.plain)? })
    }

    /// Writes whole lines to every file.
    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        let Texts { single, multi, plain } = self;
        let (first, second) = rayon::join(
            || single.as_mut().map_or(Ok(()), |single| single.write_all(text)),
            || multi.as_mut().map_or(Ok(()), |multi| write_members(text, multi)),
        );
        first.and(second)?;
        plain.as_mut().map_or(Ok(()), |plain| plain.write_all(text))
    }

    fn finish(self) -> io::Result<()> {
        self.single.map_or(Ok(()), |single| single.finish().map(|_| ()))
    }
}

fn create_file(path: &Path) -> io::Result<File> {
    File::create(path).map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))
}

/// Cuts text at the first line end after each MiB and writes each piece as a gzip file of its own.
fn write_members(text: &[u8], out: &mut impl Write) -> io::Result<()> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let least = rest.len().min(MEMBER_TEXT);
        let end = memchr::memchr(b'\n', &rest[least..]).map_or(rest.len(), |at| least + at + 1);
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    let members: Vec<_> = (pieces.par_iter())
        .map(|piece| {
            let mut encoder = GzEncoder::new(Vec::with_capacity(piece.len() / 6), Compression::new(6));
            encoder.write_all(piece)?;
            encoder.finish()
        })
        .collect::<io::Result<_>>()?;
    members.iter().try_for_each(|member| out.write_all(member))
}

/// Writes the job in all wanted forms.
pub(crate) fn generate(events: u64, seconds: u32, sharded: bool, forms: &Forms) -> io::Result<Summary> {
    let mut workload = Workload::new(events, seconds, sharded);
    let (mut lines, mut texts) = (Lines::new(), Texts::create(forms)?);
    let mut run = forms.run.as_deref().map(Run::create).transpose()?;
    let mut summary = Summary::default();
    let mut calls = Vec::new();
    while workload.next_step(&mut calls) {
        for call in &calls {
            summary.add(call);
            lines.call(call);
            if let Some(run) = &mut run {
                run.call(call)?;
            }
        }
        if lines.text().len() >= BATCH_TEXT {
            summary.text_bytes += lines.text().len() as u64;
            texts.write(lines.text())?;
            lines.clear();
        }
    }
    summary.text_bytes += lines.text().len() as u64;
    texts.write(lines.text())?;
    texts.finish()?;
    summary.definitions = lines.definitions;
    for (form, path) in [("single", &forms.single), ("multi", &forms.multi), ("plain", &forms.plain)] {
        if let Some(path) = path {
            summary.sizes.insert(form, fs::metadata(path)?.len());
        }
    }
    if let Some(run) = run {
        summary.sizes.insert("run", run.finish()?);
    }
    Ok(summary)
}
