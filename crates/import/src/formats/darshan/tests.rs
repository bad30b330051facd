//! Logs that the tests write themselves, of all versions, both byte orders and all packings. `tools/darshan/compare.py` compares real ones, and those
//! that [`logs_for_other_readers`] writes, with PyDarshan.

use super::bytes::{Order, Packing};
use super::writer::{Log, START};
use super::*;
use crate::sink::Memory;

const ORDERS: [Order; 2] = [Order::Little, Order::Big];
const PACKINGS: [Packing; 3] = [Packing::Zlib, Packing::Bzip2, Packing::None];
const MINORS: [u32; 5] = [0, 10, 20, 21, 41];

fn given(bytes: &[u8], name: &str) -> (Memory, Result<()>) {
    let mut reader = bytes;
    let mut memory = Memory::default();
    let done = read(&mut Input::new(name, &mut reader), &Survey::default(), &mut memory);
    (memory, done)
}

/// `expected`: events, without the facts about job, units and files. Times are from the job's start.
fn check(log: &Log, expected: &[&str], skipped: &[(&str, u64)]) -> Memory {
    let (memory, done) = given(&log.bytes(), "a.darshan");
    done.expect("a log");
    let events: Vec<String> =
        memory.events.iter().filter(|text| !text.starts_with("metadata")).map(|text| relative(text)).collect();
    assert_eq!(events, expected, "{:?} {:?} {}", log.order, log.packing, log.minor);
    let found: Vec<_> = memory.skipped.iter().map(|(reason, skipped)| (reason.as_str(), skipped.count)).collect();
    assert_eq!(found, skipped);
    memory
}

/// With times from the job's start, in nanoseconds.
fn relative(text: &str) -> String {
    let start = START.to_string();
    let words = text.split(' ').map(|word| {
        let moments = word.split("..").map(|moment| match moment.strip_prefix(&start) {
            Some(rest) if rest.len() == 9 => rest.trim_start_matches('0').to_owned() + "n",
            _ => match moment.parse::<i64>() {
                Ok(ns) if ns > START => format!("{}n", ns - START * 1_000_000_000),
                _ => moment.to_owned(),
            },
        });
        moments.collect::<Vec<_>>().join("..")
    });
    words.collect::<Vec<_>>().join(" ")
}

const POSIX: &[(&str, f64)] = &[
    ("OPENS", 3.0),
    ("READS", 2.0),
    ("WRITES", 1.0),
    ("SEEKS", 4.0),
    ("FSYNCS", 1.0),
    ("BYTES_READ", 8192.0),
    ("BYTES_WRITTEN", 100.0),
    ("OPEN_START_TIMESTAMP", 0.5),
    ("READ_START_TIMESTAMP", 1.0),
    ("WRITE_START_TIMESTAMP", 2.0),
    ("READ_END_TIMESTAMP", 1.5),
    ("WRITE_END_TIMESTAMP", 2.5),
    ("CLOSE_END_TIMESTAMP", 3.0),
    ("READ_TIME", 0.25),
    ("WRITE_TIME", 0.125),
    ("META_TIME", 0.0625),
];

const OPEN: &str =
    "total open POSIX PID/0 500000000n..3000000000n fhash=/scratch/out dft_cnt=3 dur_sum=62500000 size_sum=0";
const SEEK: &str = "total lseek POSIX PID/0 500000000n..3000000000n fhash=/scratch/out dft_cnt=4 dur_sum=0 size_sum=0";
const READ: &str =
    "total read POSIX PID/0 1000000000n..1500000000n fhash=/scratch/out dft_cnt=2 dur_sum=250000000 size_sum=8192";
const WRITE: &str = "total write POSIX PID/0 2000000000n..2500000000n fhash=/scratch/out dft_cnt=1 dur_sum=125000000 \
    size_sum=100 dur_min=125000000 dur_max=125000000 size_min=100 size_max=100";
const FSYNC: &str = "total fsync POSIX PID/0 2000000000n..2500000000n fhash=/scratch/out dft_cnt=1 dur_sum=0 size_sum=0 \
    dur_min=0 dur_max=0 size_min=0 size_max=0";

#[test]
fn counters_become_totals_in_every_form() {
    for order in ORDERS {
        for packing in PACKINGS {
            for minor in [0, 10, 20, 21] {
                let version = [1, 2, 3, 4][MINORS.iter().position(|known| *known == minor).expect("known")];
                let log = Log::new(order, packing, minor);
                let record = log.record("POSIX", version, (11, 2), POSIX);
                let log = log.with("POSIX", version, &[record]);
                let texts = [OPEN, SEEK, READ, WRITE, FSYNC].map(|text| text.replace("PID", "3"));
                let mut expected = vec!["span job darshan 5/5 n..10000000000n"];
                expected.extend(texts.iter().map(String::as_str));
                let memory = check(&log, &expected, &[]);
                assert_eq!(memory.processes, ["5 ior (all ranks)", "3 ior (rank 2)"]);
                let clock = memory.used.expect("a clock");
                assert_eq!((clock.kind, clock.error_ns), (ClockKind::TraceRelative, Some(1_000_000_000)));
            }
        }
    }
}

#[test]
fn the_job_is_told_without_secrets() {
    let log = Log::new(Order::Big, Packing::Bzip2, 41).with("STDIO", 2, &[]).partly();
    let memory = check(
        &log,
        &["span job darshan 5/5 500n..9000000250n"],
        &[("records that Darshan had no memory for (module STDIO)", 1)],
    );
    assert_eq!(memory.used.expect("a clock").error_ns, None);
    let about = memory.events.iter().find(|text| text.starts_with("metadata job")).expect("the job");
    for part in [
        "jobid=77 uid=1000 nprocs=4 start_ns=1700000000000000500 end_ns=1700000009000000250",
        " exe=/bin/ior -a --password=",
        " log_version=3.41 compression=bzip2 modules=STDIO 2 ",
        r#"mounts=[["lustre","/scratch"],["ext4","/"]]"#,
        " partial=STDIO 2",
        " lib_ver=3.4.6 h=romio_no_indep_rw=true",
    ] {
        assert!(about.contains(part), "{part:?} is not in {about}");
    }
    assert!(!about.contains("geheim"));
}

/// Calls that DXT has are no totals, whether their file is shared or not; what it does not have is.
#[test]
fn segments_are_taken_from_totals() {
    for order in ORDERS {
        for shared in [false, true] {
            let log = Log::new(order, Packing::Zlib, 21);
            let rank = if shared { -1 } else { 1 };
            let counters = log.record("POSIX", 4, (11, rank), POSIX);
            let segments = log.segments((11, 1), &[(0, 100, 2.0, 2.125)], &[(4096, 4096, 1.0, 1.125)]);
            let log = log.with("POSIX", 4, &[counters]).with("DXT_POSIX", 1, &[segments]);
            let pid = if shared { "5" } else { "2" };
            let [open, seek, fsync] = [OPEN, SEEK, FSYNC].map(|text| text.replace("PID", pid));
            let left = format!(
                "total read POSIX {pid}/0 1000000000n..1500000000n fhash=/scratch/out dft_cnt=1 dur_sum=125000000 \
                 size_sum=4096 dur_min=125000000 dur_max=125000000 size_min=4096 size_max=4096"
            );
            let expected = [
                "span job darshan 5/5 n..10000000000n",
                &open,
                &seek,
                &fsync,
                "span write POSIX 2/2 2000000000n..2125000000n fhash=/scratch/out ret=100 offset=0",
                "span read POSIX 2/2 1000000000n..1125000000n fhash=/scratch/out ret=4096 offset=4096",
                &left,
            ];
            check(&log, &expected, &[]);
        }
    }
}

/// A log of every module, in one of its versions.
fn whole(order: Order, packing: Packing, minor: u32, newest: bool) -> Log {
    let mut log = Log::new(order, packing, minor);
    let version = |versions: [u32; 2]| versions[usize::from(newest)];
    let mut counters = vec![
        ("POSIX", version([2, 4])),
        ("STDIO", version([1, 2])),
        ("MPI-IO", version([2, 3])),
        ("H5F", version([2, 3])),
    ];
    if minor >= 20 {
        counters.push(("H5D", version([1, 2])));
    }
    if minor >= 41 {
        counters.extend([("PNETCDF_FILE", 3), ("PNETCDF_VAR", 1)]);
    } else {
        counters.push(("PNETCDF", version([1, 2])));
    }
    for (module, version) in counters {
        let records = [log.filled(module, version, (13, -1)), log.filled(module, version, (12, 3))];
        log = log.with(module, version, &records);
    }
    let lustre = match newest {
        false => log.lustre(1, (11, -1), &[248, 1, 3, 1 << 20, 2], &[5, 7]),
        true => log.lustre(2, (11, -1), &[1 << 20, 3, 1, 0, 0, -1, 2], &[5, 7, 9]),
    };
    let segments = |log: &Log| log.segments((11, 1), &[(7, 10, 0.5, 0.75)], &[(0, 20, 1.0, 1.5), (20, 1, 2.0, 2.0)]);
    let heatmap = log.heatmap((14, 3), 0.1, &[0, 5, 0], &[0, 6, 7]);
    let (posix, mpiio) = (segments(&log), segments(&log));
    log.with("LUSTRE", version([1, 2]), &[lustre])
        .with("DXT_POSIX", 1, &[posix])
        .with("DXT_MPIIO", version([1, 2]), &[mpiio])
        .with("HEATMAP", 1, &[heatmap])
}

#[test]
fn every_module_is_read() {
    let mut seen = Vec::new();
    for order in ORDERS {
        for packing in PACKINGS {
            for minor in MINORS {
                for newest in [false, true] {
                    let log = whole(order, packing, minor, newest);
                    let (memory, done) = given(&log.bytes(), "a.darshan");
                    done.expect("a log");
                    assert!(memory.skipped.is_empty(), "{:?}", memory.skipped);
                    // The same in every order and packing, but for its own name.
                    let events: Vec<String> =
                        memory.events.iter().map(|text| text.replace(packing.name(), "PACKING")).collect();
                    match seen.iter().find(|(known, _)| *known == (minor, newest)) {
                        Some((_, known)) => assert_eq!(&events, known),
                        None => seen.push(((minor, newest), events)),
                    }
                }
            }
        }
    }
    let newest = &seen.iter().find(|(key, _)| *key == (41, true)).expect("read").1;
    for (text, times) in [
        (
            "metadata POSIX darshan 5/5 1700000000000000500 fhash=/scratch/out:/set id=13 rank=-1 mount=/scratch fs=lustre ",
            1,
        ),
        ("metadata POSIX darshan 4/4 1700000000000000500 fhash=/etc/conf id=12 rank=3 mount=/ fs=ext4 ", 1),
        ("POSIX_OPENS=101 POSIX_FILENOS=102 POSIX_DUPS=103 POSIX_READS=105 ", 2),
        ("POSIX_F_VARIANCE_RANK_BYTES=207.5", 2),
        ("H5D_FILE_REC_ID=11 H5D_OPENS=101", 2),
        ("PNETCDF_VAR_SLOWEST_RANK_BYTES=250 PNETCDF_VAR_F_OPEN_START_TIMESTAMP=251.25 ", 2),
        ("LUSTRE_OST_IDS=[5,7,9]", 1),
        (r#""LUSTRE_POOL_NAME":"pool""#, 1),
        ("span write POSIX 2/2 1700000000500000500..1700000000750000500 fhash=/scratch/out ret=10 offset=7", 1),
        ("span read MPI-IO 2/2 1700000002000000500..1700000002000000500 fhash=/scratch/out size_sum=1 offset=20", 1),
        ("counter heatmap:POSIX heatmap 4/4 1700000000100000500..1700000000200000500 bytes_read=6 bytes_written=5", 1),
        ("counter heatmap:POSIX heatmap 4/4 1700000000200000500..1700000000300000500 bytes_read=7 bytes_written=0", 1),
    ] {
        assert_eq!(newest.iter().filter(|event| event.contains(text)).count(), times, "{text}: {newest:#?}");
    }
}

/// Leaves a log of each kind in `target/tmp/darshan-logs`, for tools/darshan/compare.py.
#[test]
fn logs_for_other_readers() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tmp/darshan-logs");
    std::fs::create_dir_all(&directory).expect("made");
    for order in ORDERS {
        for packing in PACKINGS {
            for minor in MINORS {
                for newest in [false, true] {
                    let name = format!("{order:?}-{}-3.{minor:02}-{newest}.darshan", packing.name());
                    let bytes = whole(order, packing, minor, newest).bytes();
                    let (memory, read) = given(&bytes, &name);
                    assert!(read.is_ok() && !memory.events.is_empty(), "{name}: {read:?}");
                    std::fs::write(directory.join(name), bytes).expect("written");
                }
            }
        }
    }
}

#[test]
fn what_is_not_known_is_counted() {
    let log = Log::new(Order::Little, Packing::Zlib, 41);
    let stray = log.record("STDIO", 2, (11, 4), &[("OPENS", 1.0)]);
    let unnamed = log.record("STDIO", 2, (99, 0), &[("OPENS", 1.0), ("META_TIME", f64::NAN)]);
    let log = log
        .with("STDIO", 2, &[stray, unnamed])
        .with("APMPI", 1, &[vec![1; 100]])
        .with("BG/Q", 1, &[vec![1; 10]])
        .with("HEATMAP", 2, &[vec![2; 10]])
        .with("H5F", 9, &[vec![2; 10]])
        .with("number 40", 1, &[vec![2; 10]]);
    let open = "total fopen STDIO 1/0 500n..9000000250n fhash=record 99 dft_cnt=1 dur_sum=0 size_sum=0 dur_min=0 dur_max=0 \
                size_min=0 size_max=0";
    let skipped = [
        ("module APMPI", 1),
        ("module BG/Q", 1),
        ("module H5F of version 9", 1),
        ("module HEATMAP of version 2", 1),
        ("module number 40", 1),
        ("rank that the job does not have", 1),
    ];
    check(&log, &["span job darshan 5/5 500n..9000000250n", open], &skipped);
}

#[test]
fn one_process_has_the_pid_of_its_log() {
    let mut log = Log::new(Order::Little, Packing::Zlib, 41);
    log.processes = 1;
    let record = log.record("POSIX", 4, (11, -1), &[("OPENS", 1.0)]);
    let bytes = log.with("POSIX", 4, &[record]).bytes();
    let (memory, done) = given(&bytes, "u_python3_id3116902-2110365_12-19-1_1.darshan");
    done.expect("a log");
    assert_eq!(memory.processes, ["2110365 ior (rank 0)"]);
    assert_eq!(given(&bytes, "u_id_id7_1.darshan").0.processes, ["1 ior (rank 0)"]);
}

/// Why a log is refused.
fn refused(bytes: &[u8], words: &str) {
    let error = given(bytes, "x").1.expect_err("damage").to_string();
    assert!(error.contains(words), "{error}");
}

#[test]
fn damage_is_told_in_a_sentence() {
    let log = whole(Order::Little, Packing::None, 41, true);
    let bytes = log.bytes();
    let with = |at: usize, new: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + new.len()].copy_from_slice(new);
        bytes
    };
    refused(b"", "too early");
    refused(&[0; 400], "magic number");
    refused(&with(0, b"2.05"), "version \"2.05\"");
    refused(&with(16, &[3]), "compression");
    refused(&with(40, &u64::MAX.to_le_bytes()), "too early");
    refused(&with(32, &7u64.to_le_bytes()), "begins within its header");
    refused(&with(1328 + 5 * 8, &0u64.to_le_bytes()), "a job of 0 processes");
    refused(&with(1328 + 8, &u64::MAX.to_le_bytes()[1..]), "beyond all years");
    // POSIX, within the names.
    let names = Order::Little.u64(&bytes, 32);
    refused(&with(48 + 16, &(names + 8).to_le_bytes()), "begins within another part");
    refused(&bytes[..bytes.len() - 1], "the file ends 1 bytes too early");
    let packed = whole(Order::Little, Packing::Zlib, 41, true).bytes();
    let heatmap = Order::Little.u64(&packed, 48 + 15 * 16) as usize;
    let mut torn = packed.clone();
    torn[heatmap..heatmap + 4].fill(0xff);
    refused(&torn, "HEATMAP: its packed data are damaged");
    let mut torn = packed;
    let length = torn.len();
    torn[length - 20..].fill(0xff);
    refused(&torn, "HEATMAP: its packed data");
}

#[test]
fn cut_or_changed_anywhere() {
    for packing in PACKINGS {
        let bytes = whole(Order::Big, packing, 21, true).bytes();
        for length in (0..bytes.len()).step_by(29) {
            let _ = given(&bytes[..length], "x");
        }
        let mut state = 12_345u64;
        for round in 0..600 {
            let mut changed = bytes.clone();
            for _ in 0..1 + round % 3 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // Most of the time in the header, whose numbers matter.
                let range = if round % 2 == 0 { 360 } else { changed.len() };
                let at = (state >> 33) as usize % range;
                changed[at] = (state >> 24) as u8;
            }
            let _ = given(&changed, "x");
        }
    }
}

/// The log that documents name. Made anew with `DARSHAN_FIXTURE=1`.
#[test]
fn the_fixture_is_what_the_writer_makes() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/job.darshan");
    let log = Log::new(Order::Little, Packing::Zlib, 41);
    let shared = log.record("POSIX", 4, (11, -1), POSIX);
    let own = log.record("STDIO", 2, (12, 0), &[("OPENS", 1.0), ("READS", 9.0), ("BYTES_READ", 900.0)]);
    let segments = log.segments((11, 1), &[(0, 100, 2.0, 2.125)], &[(4096, 4096, 1.0, 1.125)]);
    let heatmap = log.heatmap((14, 1), 1.0, &[0, 0, 100], &[0, 4096, 0]);
    let log = log.with("POSIX", 4, &[shared]).with("STDIO", 2, &[own]).with("DXT_POSIX", 1, &[segments]).with(
        "HEATMAP",
        1,
        &[heatmap],
    );
    let kept = std::fs::read(&path).expect("the fixture");
    let (kept, made) = (given(&kept, "job.darshan"), given(&log.bytes(), "job.darshan"));
    kept.1.and(made.1).expect("logs");
    assert_eq!(kept.0.events, made.0.events);
}

#[test]
fn detection() {
    let sure = |bytes: &[u8]| detect(&Head { name: "x", bytes });
    for order in ORDERS {
        assert_eq!(sure(&Log::new(order, Packing::Zlib, 10).bytes()), Confidence::Certain);
    }
    assert_eq!(sure(b"3.21\0\0\0\0"), Confidence::No);
    assert_eq!(sure(&[0; 100]), Confidence::No);
}
