//! Changes to shared memory: replaces the word of a field.

use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use weftline_recorder::layout::{
    ArenaHeader, BASE_HEAP_AT, BASE_INDEX_AT, BASE_SEGMENTS, BASE_SEGMENTS_AT, Control, MAX_PIECES, PIECE_SIZE,
    POOL_SLOTS, PROCESS_SLOTS, PROCESSES_AT, Piece, ProcessSlot, RECORDS_PER_SEGMENT, REFUSED, RUN_ID_MAX, Record,
    Refused, SEGMENT_SIZE, SegmentHeader, USERS,
};

use super::{number, open};
use crate::random::Random;

/// A field: its name, where it is, and how many bytes it has.
type Field = (&'static str, usize, usize);

macro_rules! fields {
    ($type:ty: $($name:ident $size:literal),* $(,)?) => {
        [$((stringify!($name), offset_of!($type, $name), $size)),*]
    };
}

/// Changes the control page.
pub(super) fn control(random: &mut Random, path: &Path) -> Option<String> {
    let file = open(path)?;
    let (name, at, size) = control_field(random);
    Some(put(random, &file, at, size, &name))
}

/// A field of the control page: its name, where it is, and how many bytes it has.
pub fn control_field(random: &mut Random) -> (String, usize, usize) {
    let fields = fields!(Control: magic 8, version 4, clock 4, options 4, max_pieces 4, heartbeat 8, wait_limit 8, own_arenas 8, losses 8, pool 8, run_id 8, room 8, refused 8, refusals 4, owners 8, wanted 8);
    let (name, at, size) = *random.one_of(&fields);
    let index = match name {
        "pool" => random.below(POOL_SLOTS as u64),
        "losses" => random.below(8),
        "owners" => random.below(POOL_SLOTS as u64 / 2),
        "wanted" => random.below(USERS as u64),
        "run_id" => random.below(RUN_ID_MAX as u64 / 8),
        "refused" => random.below((REFUSED * size_of::<Refused>()) as u64 / 8),
        _ => 0,
    } as usize;
    (format!("{name}[{index}]"), at + index * 8, size)
}

/// Changes an arena: one to eight fields.
pub(super) fn arena(random: &mut Random, path: &Path) -> Option<String> {
    let file = open(path)?;
    let changes = 1 + random.below(8);
    let what: Vec<String> = (0..changes)
        .map(|_| {
            let part = random.below(PARTS);
            let (name, at, size) = arena_field(random, part);
            put(random, &file, at, size, &name)
        })
        .collect();
    Some(what.join(", "))
}

/// Changes some word of a file of words.
pub(super) fn anywhere(random: &mut Random, path: &Path) -> Option<String> {
    let file = open(path)?;
    let words = file.metadata().ok()?.len() / 8;
    let at = random.below(words.max(1)) as usize * 8;
    Some(put(random, &file, at, 8, "word"))
}

/// Parts of an arena, for [`arena_field`]: header, pieces, processes, segments (twice), records, names.
pub const PARTS: u64 = 7;

/// A field of an arena, mostly one that is in use.
pub fn arena_field(random: &mut Random, part: u64) -> (String, usize, usize) {
    let few = |random: &mut Random, most: usize| {
        let limit = if random.percent(80) { 3.min(most) } else { most };
        random.below(limit as u64) as usize
    };
    let of = |random: &mut Random, what: &str, base: usize, fields: &[Field]| {
        let (name, at, size) = *random.one_of(fields);
        (format!("{what} {name}"), base + at, size)
    };
    match part {
        0 => of(
            random,
            "header",
            0,
            &fields!(ArenaHeader: magic 8, version 4, clock 4, number 8, segments_taken 8, generations 8, pieces_used 4, asked 4),
        ),
        1 => {
            let index = few(random, MAX_PIECES);
            let base = offset_of!(ArenaHeader, pieces) + index * size_of::<Piece>();
            of(random, &format!("piece {index}"), base, &fields!(Piece: used_for 4, heap_top 4, free 8, closed 8))
        }
        2 => {
            let index = few(random, PROCESS_SLOTS);
            let base = PROCESSES_AT + index * size_of::<ProcessSlot>();
            let fields = fields!(ProcessSlot: state 4, pid 4, ppid 4, pid_outside 4, generation 8, pid_namespace 8, nonce 8, born_ticks 8,
                born_mono 8, born_real 8, born_boot 8, ended_ticks 8, exe 4, command 4, cwd 4, parent_slot 4, rank 4, world_size 4,
                local_rank 4, launcher 4, exit_status 4, exec_verdict 4, exec_path 4, unseen_io 4, io_start 8, io_end 8, cpu_user 8,
                cpu_system 8, max_rss 8, losses 8, own_name 4, own_reads 8, main_cpu 8, main_queued 8);
            of(random, &format!("slot {index}"), base, &fields)
        }
        3 | 4 => {
            let index = few(random, BASE_SEGMENTS);
            let base = BASE_SEGMENTS_AT + index * SEGMENT_SIZE;
            let fields = fields!(SegmentHeader: state 4, next 4, slot 4, tid 4, generation 8, anchor_ticks 8, anchor_mono 8, taken_by 8, sequence 8, clock 4);
            of(random, &format!("segment {index}"), base, &fields)
        }
        5 => {
            let segment = few(random, BASE_SEGMENTS);
            let index = random.below(u64::from(RECORDS_PER_SEGMENT)) as usize;
            let base =
                BASE_SEGMENTS_AT + segment * SEGMENT_SIZE + size_of::<SegmentHeader>() + index * size_of::<Record>();
            let fields =
                fields!(Record: head 4, path 4, start 8, end 8, fd 4, detail 4, size 8, ret 8, offset 8, extra 8);
            of(random, &format!("record {segment}.{index}"), base, &fields)
        }
        // Names: the index, then the heap, whose entries begin with hash, length and base.
        _ => {
            let within = if random.percent(80) { BASE_HEAP_AT + 4096 } else { PIECE_SIZE };
            let at = BASE_INDEX_AT + random.below((within - BASE_INDEX_AT) as u64 / 4) as usize * 4;
            ("name".to_owned(), at, 4)
        }
    }
}

fn put(random: &mut Random, file: &File, at: usize, size: usize, name: &str) -> String {
    let mut before = [0; 8];
    let known = file.read_at(&mut before[..size], at as u64).is_ok_and(|read| read == size);
    let before = u64::from_le_bytes(before);
    let value = other_than(random, known.then_some(before), size);
    match file.write_all_at(&value.to_le_bytes()[..size], at as u64) {
        Ok(()) => format!("{name} at {at} from {before:#x} to {value:#x}"),
        Err(error) => format!("{name} at {at}: {error}"),
    }
}

/// Another value for a field. A neighbour of what was there passes more checks than a number out of nowhere.
pub fn other_than(random: &mut Random, before: Option<u64>, size: usize) -> u64 {
    match (random.below(4), before) {
        (0, Some(before)) => before.wrapping_add(1),
        (1, Some(before)) => before ^ 1 << random.below(size as u64 * 8),
        (2, _) => random.below(5),
        _ => number(random),
    }
}
