//! Every format has an example among the tests' data, which is found to be of that format and gives events.

use std::path::{Path, PathBuf};

use weftline_format::progress::Silent;
use weftline_import::import::{Options, Target, import};
use weftline_import::input::Head;
use weftline_import::registry::{FORMATS, detect};

/// A format that tells about clocks alone.
const WITHOUT_EVENTS: &str = "bpftrace-time";

#[test]
fn examples_are_read() {
    for format in FORMATS {
        let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(format.example);
        assert!(path.exists(), "{} is not there", path.display());
        // A folder is an example of a format that is one of several files.
        if let Ok(bytes) = std::fs::read(&path) {
            let found = detect(&Head { name: format.example, bytes: &bytes });
            assert_eq!(found.map(|(found, _)| found.kind), Some(format.kind), "{}", format.example);
        }
        let scratch = tempfile::tempdir().expect("a directory");
        let done = import(&[path], Target::New(&scratch.path().join("run")), &Options::default(), &Silent);
        match done {
            Ok(done) => {
                assert!(done.record.events() > 0, "{}", format.example);
                assert!(done.record.sources.iter().all(|source| source.kind == format.kind), "{:?}", done.record);
            }
            Err(error) => assert_eq!(format.kind, WITHOUT_EVENTS, "{}: {error}", format.example),
        }
    }
}
