//! A hostile program: records some calls, then attacks the shared memory that it records into, and ends with 7 whatever happens to it.
//!
//! `scribbler WAY SEED TRUTH DECOY`. TRUTH gets the number of calls (`pread`) that had returned before the attack; DECOY is a directory that
//! links may lead to. `hostile::attack` of the testkit lists the ways. In another user's run it fails if it could do what it
//! must not.

use std::arch::asm;
use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weftline_recorder::layout::{
    ArenaHeader, BASE_HEAP_AT, BASE_SEGMENTS_AT, Control, PIECE_SIZE, PROCESSES_AT, Piece, ProcessSlot,
    RECORDS_PER_SEGMENT, Record, SEGMENT_SIZE, SegmentHeader, options, piece_use, pool_state, process_state,
    segment_state,
};
use weftline_testkit::hostile::mutate::words::{PARTS, arena_field, control_field, other_than};
use weftline_testkit::random::Random;

const STATUS: u64 = 7;
/// How long an attack on memory goes on.
const LONG: Duration = Duration::from_millis(400);
/// When the program ends although the recorder in it, whose memory it broke, does not come back.
const LAST: u32 = 4;

/// Ends the process without a word to the recorder.
fn end() -> ! {
    // SAFETY: exit_group takes a number and does not come back.
    unsafe { asm!("syscall", in("rax") libc::SYS_exit_group, in("rdi") STATUS, options(noreturn)) }
}

extern "C" fn on_signal(_: libc::c_int) {
    end()
}

/// A mapping of this process: where it begins, its length, and the file.
struct Mapped {
    at: *mut u8,
    length: usize,
    path: PathBuf,
}

impl Mapped {
    /// Where a word of this size lies, if it lies inside.
    fn word(&self, at: usize, size: usize) -> Option<*mut u8> {
        // SAFETY: the sum stays inside the mapping.
        (at + size <= self.length).then(|| unsafe { self.at.add(at) })
    }

    fn get(&self, at: usize, size: usize) -> u64 {
        let mut bytes = [0; 8];
        if let Some(word) = self.word(at, size) {
            // SAFETY: `size` bytes of a mapping that this program may read.
            unsafe { word.copy_to(bytes.as_mut_ptr(), size) };
        }
        u64::from_le_bytes(bytes)
    }

    fn put(&self, at: usize, size: usize, value: u64) {
        if let Some(word) = self.word(at, size) {
            // SAFETY: `size` bytes of a mapping that this program may write. Others rely on what is there: that is the attack.
            unsafe { word.copy_from(value.to_le_bytes().as_ptr(), size) };
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [way, seed, truth, decoy] = &arguments[..] else { return Err("scribbler WAY SEED TRUTH DECOY".into()) };
    let mut random = Random::seeded(seed.parse()?);
    for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT, libc::SIGALRM, libc::SIGTRAP]
    {
        // SAFETY: the handler only ends the process.
        unsafe { libc::signal(signal, on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    }
    // SAFETY: takes a number.
    unsafe { libc::alarm(LAST) };
    let zeros = File::open("/dev/zero")?;
    let calls = 1000 + random.below(8000);
    for index in 0..calls {
        read_once(&zeros, index);
    }
    fs::write(truth, calls.to_string())?;
    let (arenas, controls) = mappings()?;
    let [arena, ..] = &arenas[..] else { return Err("not traced: no arena is mapped".into()) };
    let [control, ..] = &controls[..] else { return Err("not traced: no control page is mapped".into()) };
    attack(way, &mut random, arena, control, &zeros, Path::new(decoy))?;
    if random.percent(50) {
        end();
    }
    std::process::exit(STATUS as i32)
}

fn read_once(file: &File, offset: u64) {
    let mut byte = [0];
    // SAFETY: one byte of room. What the call gives is not the point; its record is.
    let _ = unsafe { libc::pread(file.as_raw_fd(), byte.as_mut_ptr().cast(), 1, offset as libc::off_t) };
}

/// The arenas and control pages that this process maps.
fn mappings() -> Result<(Vec<Mapped>, Vec<Mapped>), Box<dyn Error>> {
    let (mut arenas, mut controls) = (Vec::new(), Vec::new());
    for line in fs::read_to_string("/proc/self/maps")?.lines().filter(|line| line.contains("rw-s")) {
        let (Some((range, _)), Some(at)) = (line.split_once(' '), line.find('/')) else { continue };
        let Some((from, to)) = range.split_once('-') else { continue };
        let (from, to) = (usize::from_str_radix(from, 16)?, usize::from_str_radix(to, 16)?);
        let path = PathBuf::from(&line[at..]);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mapped = Mapped { at: from as *mut u8, length: to - from, path };
        let is_arena =
            name.strip_prefix('a').is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()));
        match &*name {
            "ctl" => controls.push(mapped),
            _ if is_arena => arenas.push(mapped),
            _ => {}
        }
    }
    Ok((arenas, controls))
}

fn attack(
    way: &str,
    random: &mut Random,
    arena: &Mapped,
    control: &Mapped,
    zeros: &File,
    decoy: &Path,
) -> Result<(), Box<dyn Error>> {
    let live = arena.path.parent().ok_or("an arena lies in a directory")?.to_owned();
    match way {
        "noise" => scribble(random, zeros, &mut |random| {
            let at = random.below(arena.length as u64 / 8) as usize * 8;
            arena.put(at, 8, random.number());
        }),
        "fields" => scribble(random, zeros, &mut |random| {
            let part = random.below(PARTS);
            let (_, at, size) = arena_field(random, part);
            let value = other_than(random, Some(arena.get(at, size)), size);
            arena.put(at, size, value);
        }),
        "processes" => scribble(random, zeros, &mut |random| processes(random, arena)),
        "segments" => scribble(random, zeros, &mut |random| segments(random, arena)),
        "names" => {
            names(arena);
            scribble(random, zeros, &mut |random| segments(random, arena));
        }
        "control" => scribble(random, zeros, &mut |random| {
            let (_, at, size) = control_field(random);
            let value = other_than(random, Some(control.get(at, size)), size);
            control.put(at, size, value);
        }),
        "cut" => {
            let file = OpenOptions::new().write(true).open(&arena.path)?;
            let length = if random.percent(50) { 0 } else { random.below(PIECE_SIZE as u64) };
            file.set_len(length)?;
            pause();
        }
        "delete" => {
            for name in names_in(&live) {
                let _ = fs::remove_file(live.join(name));
            }
            let _ = fs::remove_dir(&live);
            pause();
        }
        "links" => {
            for name in names_in(&live) {
                let path = live.join(name);
                let _ = fs::remove_file(&path);
                let target = random.one_of(&["thesis.tex", "new", "deep", "."]);
                let _ = symlink(decoy.join(target), &path);
            }
            pause();
        }
        "flood" => flood(control, arena, &live)?,
        "spy" => spy(arena, &live)?,
        "offer" => offer(arena, control)?,
        "hold" => hold(random, arena, control, &live)?,
        "ask" => ask(random, arena, control)?,
        _ => return Err(format!("unknown way {way}").into()),
    }
    Ok(())
}

/// Writes for some time, with a call that is recorded now and then.
fn scribble(random: &mut Random, zeros: &File, write: &mut dyn FnMut(&mut Random)) {
    let began = Instant::now();
    let mut calls = 0;
    while began.elapsed() < LONG {
        for _ in 0..1 + random.below(64) {
            write(random);
        }
        if random.percent(2) {
            read_once(zeros, calls);
            calls += 1;
        }
    }
}

/// Lets the supervisor look.
fn pause() {
    let began = Instant::now();
    while began.elapsed() < LONG {
        std::hint::spin_loop();
    }
}

/// Processes come and go, in and out of their slots, with the same generation or another.
fn processes(random: &mut Random, arena: &Mapped) {
    let slot = PROCESSES_AT + random.below(8) as usize * size_of::<ProcessSlot>();
    let at = |offset: usize| slot + offset;
    let states = [
        process_state::FREE,
        process_state::CLAIMED,
        process_state::LIVE,
        process_state::EXECUTING,
        process_state::ENDED,
    ];
    match random.below(6) {
        0 => arena.put(at(std::mem::offset_of!(ProcessSlot, generation)), 8, random.below(4)),
        1 => arena.put(
            at(std::mem::offset_of!(ProcessSlot, pid)),
            4,
            if random.percent(50) { u64::from(std::process::id()) } else { random.below(70_000) },
        ),
        2 => arena.put(at(std::mem::offset_of!(ProcessSlot, pid_namespace)), 8, random.below(2)),
        3 => arena.put(at(std::mem::offset_of!(ProcessSlot, nonce)), 8, random.number()),
        _ => arena.put(at(std::mem::offset_of!(ProcessSlot, state)), 4, u64::from(*random.one_of(&states))),
    }
    // Somebody new, every time.
    let generations = std::mem::offset_of!(ArenaHeader, generations);
    arena.put(generations, 8, arena.get(generations, 8).wrapping_add(1));
}

/// Segments are closed that are not, belong to others, and are longer than they can be.
fn segments(random: &mut Random, arena: &Mapped) {
    let index = random.below(4);
    let segment = BASE_SEGMENTS_AT + index as usize * SEGMENT_SIZE;
    let at = |offset: usize| segment + offset;
    let states = [segment_state::FREE, segment_state::ACTIVE, segment_state::CLOSED];
    match random.below(8) {
        0 => arena.put(at(std::mem::offset_of!(SegmentHeader, next)), 4, other_than(random, None, 4)),
        1 => arena.put(at(std::mem::offset_of!(SegmentHeader, slot)), 4, random.below(3)),
        2 => arena.put(at(std::mem::offset_of!(SegmentHeader, generation)), 8, random.below(4)),
        3 => arena.put(at(std::mem::offset_of!(SegmentHeader, taken_by)), 8, other_than(random, None, 8)),
        4 => arena.put(at(std::mem::offset_of!(SegmentHeader, sequence)), 8, other_than(random, None, 8)),
        5 => arena.put(at(std::mem::offset_of!(SegmentHeader, state)), 4, u64::from(*random.one_of(&states))),
        6 => {
            let record = random.below(u64::from(RECORDS_PER_SEGMENT)) as usize;
            let at = at(size_of::<SegmentHeader>() + record * size_of::<Record>());
            arena.put(at, 8, random.number());
        }
        _ => {
            let piece = std::mem::offset_of!(ArenaHeader, pieces);
            arena.put(piece + std::mem::offset_of!(Piece, closed), 8, random.number());
        }
    }
}

/// Every record has a name of its own, each as long as the arena, and all segments are closed.
fn names(arena: &Mapped) {
    let first = (BASE_HEAP_AT / 8) as u64;
    // An entry's length is its second word: every word of the heap is a long length.
    for at in (BASE_HEAP_AT..BASE_SEGMENTS_AT).step_by(4) {
        arena.put(at, 4, PIECE_SIZE as u64);
    }
    let slot = PROCESSES_AT;
    for offset in [
        std::mem::offset_of!(ProcessSlot, exe),
        std::mem::offset_of!(ProcessSlot, command),
        std::mem::offset_of!(ProcessSlot, cwd),
    ] {
        arena.put(slot + offset, 4, first);
    }
    for segment in 0..4 {
        let at = BASE_SEGMENTS_AT + segment * SEGMENT_SIZE;
        arena.put(at + std::mem::offset_of!(SegmentHeader, next), 4, u64::from(RECORDS_PER_SEGMENT));
        arena.put(at + std::mem::offset_of!(SegmentHeader, state), 4, u64::from(segment_state::CLOSED));
        arena.put(at + std::mem::offset_of!(SegmentHeader, slot), 4, 0);
        let generation = arena.get(PROCESSES_AT + std::mem::offset_of!(ProcessSlot, generation), 8);
        arena.put(at + std::mem::offset_of!(SegmentHeader, generation), 8, generation);
        for record in 0..RECORDS_PER_SEGMENT as usize {
            let at = at + size_of::<SegmentHeader>() + record * size_of::<Record>();
            arena.put(at + std::mem::offset_of!(Record, path), 4, first + record as u64);
            arena.put(at, 4, 1);
        }
    }
    let piece = std::mem::offset_of!(ArenaHeader, pieces);
    arena.put(piece + std::mem::offset_of!(Piece, used_for), 4, u64::from(piece_use::SEGMENTS));
    arena.put(piece + std::mem::offset_of!(Piece, free), 8, !0xF);
    arena.put(piece + std::mem::offset_of!(Piece, closed), 8, 0xF);
}

/// The files of a live directory; where it cannot be listed, what they may be called.
fn names_in(live: &Path) -> Vec<std::ffi::OsString> {
    match fs::read_dir(live) {
        Ok(entries) => entries.flatten().map(|entry| entry.file_name()).collect(),
        Err(_) => guesses().into_iter().map(Into::into).collect(),
    }
}

fn guesses() -> Vec<String> {
    let arenas = (0..600).flat_map(|number| [format!("a{number}"), format!("a{number}.1")]);
    let others = ["ctl", "lock", "clock", "settings", "journal", "run"].map(str::to_owned);
    arenas.chain(others).collect()
}

/// Arenas that look as if very many processes had made them, none of which takes room on the disk.
fn flood(control: &Mapped, arena: &Mapped, live: &Path) -> Result<(), Box<dyn Error>> {
    let mut head = vec![0; PROCESSES_AT + 4096];
    for (at, byte) in head.iter_mut().enumerate() {
        *byte = arena.get(at, 1) as u8;
    }
    let own = std::mem::offset_of!(Control, own_arenas);
    for number in 300..20_300 {
        let path = live.join(format!("a{number}"));
        let file = match OpenOptions::new().write(true).create_new(true).open(path) {
            // Another user's directory, or somebody was quicker: only the count can be raised.
            Err(error) if [ErrorKind::PermissionDenied, ErrorKind::AlreadyExists].contains(&error.kind()) => {
                control.put(own, 8, number);
                continue;
            }
            opened => opened?,
        };
        file.set_len(PIECE_SIZE as u64)?;
        if number % 10 == 0 {
            file.write_all_at(&head, 0)?;
        } else {
            file.write_all_at(&head[..64], 0)?;
        }
        control.put(own, 8, number);
    }
    pause();
    Ok(())
}

/// Looks for what is not this user's: files of the live directory that can be opened, and the directory itself. Twice, since arenas come and go.
fn spy(arena: &Mapped, live: &Path) -> Result<(), Box<dyn Error>> {
    // SAFETY: takes nothing and cannot fail.
    let user = unsafe { libc::geteuid() };
    let foreign = |file: &File| file.metadata().map_or(true, |data| data.uid() != user);
    for _ in 0..2 {
        if fs::read_dir(live).is_ok() || live.parent().is_some_and(|parent| fs::read_dir(parent).is_ok()) {
            return Err("breach: the directory can be listed".into());
        }
        for name in guesses().into_iter().filter(|name| name != "ctl") {
            let path = live.join(&name);
            let ways = [OpenOptions::new().read(true).open(&path), OpenOptions::new().write(true).open(&path)];
            if ways.into_iter().flatten().any(|file| foreign(&file)) {
                return Err(format!("breach: {name} can be opened").into());
            }
            let aside = live.join("aside");
            if fs::rename(&path, &aside).is_ok() || fs::remove_file(&path).is_ok() || symlink(&aside, &path).is_ok() {
                return Err(format!("breach: {name} can be replaced").into());
            }
        }
        pause();
    }
    // What is mapped is this user's too.
    if !fs::metadata(&arena.path).is_ok_and(|data| data.uid() == user) {
        return Err("breach: the arena is somebody else's".into());
    }
    Ok(())
}

/// Offers this program's own arena to others: whoever takes it tells what it does, and dies when the file is cut.
fn offer(arena: &Mapped, control: &Mapped) -> Result<(), Box<dyn Error>> {
    let name = arena.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let number: usize = name.strip_prefix('a').ok_or("an arena has a number")?.parse()?;
    let own = u64::from(std::process::id());
    let settings = std::mem::offset_of!(Control, options);
    let (pid, state) = (std::mem::offset_of!(ProcessSlot, pid), std::mem::offset_of!(ProcessSlot, state));
    let began = Instant::now();
    while began.elapsed() < 2 * LONG {
        control.put(settings, 4, control.get(settings, 4) & !u64::from(options::OTHER_USERS));
        control.put(std::mem::offset_of!(Control, owners) + number * 4, 4, 0);
        control.put(std::mem::offset_of!(Control, pool) + number * 8, 8, pool_state::READY);
        for slot in (0..16).map(|slot| PROCESSES_AT + slot * size_of::<ProcessSlot>()) {
            let (pid, state) = (arena.get(slot + pid, 4), arena.get(slot + state, 4));
            if pid != 0 && pid != own && state >= u64::from(process_state::LIVE) {
                return Err(format!("breach: process {pid} records into the arena").into());
            }
        }
    }
    Ok(())
}

/// Hinders whoever opens the files of this user: second names, modes, leases, lengths.
fn hold(random: &mut Random, arena: &Mapped, control: &Mapped, live: &Path) -> Result<(), Box<dyn Error>> {
    // SAFETY: ignoring a signal is always sound: whoever breaks a lease sends it.
    unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
    let pool = std::mem::offset_of!(Control, pool);
    let mut leased = Vec::new();
    for number in 0..256 {
        let path = live.join(format!("a{number}"));
        let Ok(file) = OpenOptions::new().read(true).write(true).open(&path) else { continue };
        // SAFETY: takes numbers. Where it fails, somebody has the file open.
        let _ = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) };
        if path != arena.path && random.percent(50) {
            // The supervisor opens it now.
            control.put(pool + number * 8, 8, 1 << 32 | u64::from(std::process::id()));
        }
        leased.push(file);
    }
    let file = OpenOptions::new().write(true).open(&arena.path)?;
    match random.below(3) {
        0 => {
            let second = live.parent().and_then(Path::parent).ok_or("a directory for all")?.join("weft-second-name");
            let _ = fs::hard_link(&arena.path, &second);
            pause();
            let _ = fs::remove_file(second);
        }
        1 => file.set_permissions(fs::Permissions::from_mode(0o000))?,
        // Without a byte of it: it must not fill the machine's memory.
        _ => file.set_len(3 << 30)?,
    }
    pause();
    Ok(())
}

/// Asks for growth without end and for arenas of everybody.
fn ask(random: &mut Random, arena: &Mapped, control: &Mapped) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    while began.elapsed() < 2 * LONG {
        arena.put(std::mem::offset_of!(ArenaHeader, asked), 4, u64::from(u32::MAX));
        control.put(std::mem::offset_of!(Control, room), 8, i64::MAX as u64 / 2);
        control.put(std::mem::offset_of!(Control, max_pieces), 4, 1024);
        let place = random.below(16) as usize * 8;
        let user = if random.percent(10) { u64::from(u32::MAX) } else { random.below(70_000) };
        control.put(std::mem::offset_of!(Control, wanted) + place, 8, 1 << 32 | user);
        if random.percent(1) {
            control.put(std::mem::offset_of!(Control, owners) + random.below(256) as usize * 4, 4, random.number());
        }
    }
    // No more than 128 pieces of 4 MiB, and what the first look had made.
    if fs::metadata(&arena.path).is_ok_and(|data| data.blocks() * 512 > 520 << 20) {
        return Err("breach: the arena has grown beyond its limit".into());
    }
    Ok(())
}
