//! What publishing does with files, without a recorder: whose they are, what they are called, and interruptions.

use weftline_format::line::LineBuf;

use weftline_format::member::{Deflater, seal};

use super::*;

/// A hidden directory beside the place of its files.
struct Place {
    directory: tempfile::TempDir,
    publication: Publication,
}

impl Place {
    fn new(style: Style) -> Place {
        let directory = tempfile::tempdir().expect("a temporary directory");
        // A beginner that is dead: this process would otherwise be it.
        let owner = Owner { pid: u32::MAX, ..Owner::here() };
        let publication =
            Publication { owner, command: vec!["python".into(), "app.py".into()], app: "app".into(), style };
        let place = Place { directory, publication };
        fs::create_dir(place.hidden()).expect("made");
        place.publication.write(&place.hidden()).expect("written");
        place
    }

    fn hidden(&self) -> PathBuf {
        self.directory.path().join(".log-app-7.weft")
    }

    /// The trace file of an image, as the drain leaves it.
    fn trace(&self, pid: u32, command: &[&str], events: &[(&str, &str)]) -> PathBuf {
        let mut lines = LineBuf::new();
        lines.open_array();
        let cmd = command.iter().map(|word| (*word).to_owned()).collect();
        Identity { pid, cmd, host: "vm".into(), ..Identity::default() }.write(&mut lines);
        lines.instant("start", "weft", pid, pid, 1000).finish();
        for (at, (name, category)) in events.iter().enumerate() {
            let start = 2000 + at as i64 * 1000;
            lines.complete(name, category, pid, pid, start, start + 500).finish();
        }
        let mut file = Vec::new();
        seal(lines.as_bytes(), 1 + events.len() as u32, 0, &mut file, &mut Deflater::new());
        let path = self.hidden().join(format!("vm-{pid}-{}.pfw.gz", events.len()));
        fs::write(&path, file).expect("written");
        path
    }

    fn finish(&self) -> Vec<String> {
        let published = finish_directory(&self.hidden(), How::default()).expect("published");
        assert_eq!(published.open, None);
        let names = published.files.iter().map(|file| file.file_name().expect("a name").to_string_lossy().into_owned());
        names.collect()
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.path()).expect("listed");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

fn dftracer(compression: bool) -> Style {
    Style::Dftracer { base: "log".into(), compression }
}

const APP: [&str; 2] = ["python", "app.py"];

#[test]
fn files_are_named_by_their_own_program() {
    let place = Place::new(dftracer(true));
    place.trace(7, &APP, &[("f", "app")]);
    place.trace(8, &["/bin/worker", "-x"], &[("f", "app")]);
    place.trace(9, &APP, &[]);
    assert_eq!(place.finish(), ["log-app-7.pfw.gz", "log-worker-8.pfw.gz"]);
    assert_eq!(place.files(), ["log-app-7.pfw.gz", "log-worker-8.pfw.gz"]);
}

#[test]
fn no_file_is_replaced() {
    let place = Place::new(dftracer(true));
    let taken = place.directory.path().join("log-app-7.pfw.gz");
    fs::write(&taken, "of another process with this pid").expect("written");
    place.trace(7, &APP, &[("f", "app")]);
    place.trace(7, &APP, &[("f", "app"), ("g", "app")]);
    assert_eq!(place.finish(), ["log-app-7-2.pfw.gz", "log-app-7-3.pfw.gz"]);
    assert_eq!(fs::read_to_string(taken).expect("read"), "of another process with this pid");
}

#[test]
fn files_are_the_same_as_plain_text() {
    for compression in [true, false] {
        let place = Place::new(dftracer(compression));
        place.trace(7, &APP, &[("read", "POSIX"), ("f", "app")]);
        let name = place.finish().remove(0);
        assert_eq!(name, if compression { "log-app-7.pfw.gz" } else { "log-app-7.pfw" });
        let trace = weftline_format::reader::read_file(&place.directory.path().join(name)).expect("read");
        assert!(trace.damage.is_empty(), "{:?}", trace.damage);
        let names: Vec<&str> = trace.events.iter().map(|event| event.name.as_str()).collect();
        assert_eq!(names, ["process_name", "start", "read", "f"]);
    }
}

#[test]
fn interrupted_work_is_not_done_twice() {
    // Linked, and killed before the original could go.
    let place = Place::new(dftracer(true));
    let trace = place.trace(7, &APP, &[("f", "app")]);
    fs::hard_link(&trace, place.directory.path().join("log-app-7.pfw.gz")).expect("linked");
    assert_eq!(place.finish(), ["log-app-7.pfw.gz"]);
    assert_eq!(place.files(), ["log-app-7.pfw.gz"]);

    // The same with a converted file.
    let place = Place::new(dftracer(false));
    let trace = place.trace(7, &APP, &[("f", "app")]);
    let converted = trace.with_extension("out");
    fs::write(&converted, "[\n").expect("written");
    fs::hard_link(&converted, place.directory.path().join("log-app-7.pfw")).expect("linked");
    assert_eq!(place.finish(), Vec::<String>::new());
    assert_eq!(place.files(), ["log-app-7.pfw"]);

    // Killed while it was converted.
    let place = Place::new(dftracer(false));
    let trace = place.trace(7, &APP, &[("f", "app")]);
    fs::write(trace.with_extension("out"), "ha").expect("written");
    assert_eq!(place.finish(), ["log-app-7.pfw"]);
    assert!(fs::read_to_string(place.directory.path().join("log-app-7.pfw")).expect("read").starts_with("[\n{"));
}

#[test]
fn interrupted_removals_are_ended_by_the_next_look() {
    let place = Place::new(dftracer(true));
    fs::rename(place.hidden(), place.directory.path().join(".log-app-7.weft.done")).expect("renamed");
    fs::create_dir(place.directory.path().join(".other-app-7.weft.done")).expect("made");
    assert_eq!(hidden_directories(place.directory.path(), b"log-").expect("looked"), Vec::<PathBuf>::new());
    assert_eq!(place.files(), [".other-app-7.weft.done"]);
}

#[test]
fn a_directory_that_another_process_works_on_is_left() {
    let place = Place::new(dftracer(true));
    place.trace(7, &APP, &[("f", "app")]);
    let other = lock(&place.hidden(), Duration::ZERO).expect("no error").expect("locked");
    let published = finish_directory(&place.hidden(), How::default()).expect("looked");
    assert_eq!((published.files.len(), published.open), (0, Some(WhyOpen::Locked)));
    drop(other);
    assert_eq!(place.finish(), ["log-app-7.pfw.gz"]);
}

#[test]
fn losses_are_told_before_their_record_goes() {
    let place = Place::new(dftracer(true));
    let drops = std::collections::BTreeMap::from([("arena full".to_owned(), 3)]);
    let process = weftline_format::manifest::ProcessRecord { pid: 7, drops, ..Default::default() };
    SupervisorRecord { processes: vec![process], ..SupervisorRecord::default() }
        .write(&place.hidden())
        .expect("written");
    let published = finish_directory(&place.hidden(), How::default()).expect("published");
    assert_eq!(published.messages, ["process 7: 3 events are not in its trace: arena full"]);
    assert!(place.files().is_empty());
}

#[test]
fn perfflow_files_are_made_of_what_was_told() {
    let style = Style::Perfflow {
        options: perfflow::Options::parse("log-filename-include=instance-path,pid").0,
        instance_path: "1.2".into(),
        flavour: Flavour::C,
    };
    let place = Place::new(style);
    place.trace(7, &APP, &[("f", "x.c"), ("read", "POSIX")]);
    place.trace(8, &APP, &[("read", "POSIX")]);
    assert_eq!(place.finish(), ["perfflow.array.{1.2}.7.pfw"]);
    assert_eq!(
        fs::read_to_string(place.directory.path().join("perfflow.array.{1.2}.7.pfw")).expect("read"),
        "[\n{\"name\": \"f\", \"cat\": \"x.c\", \"pid\": 7, \"tid\": 7, \"ts\": 2.0, \"ph\": \"X\", \"dur\": 0.0},\n"
    );
    assert_eq!(place.files(), ["perfflow.array.{1.2}.7.pfw"]);
}
