//! Settings from environments and files.

use std::collections::HashMap;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::*;

/// The options and warnings of an environment given as `NAME=value` words, beside the YAML text of a file.
fn read(environment: &str, yaml: Option<&str>) -> (Options, Vec<String>) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut variables: HashMap<String, OsString> = environment
        .split_whitespace()
        .map(|word| word.split_once('=').expect("NAME=value"))
        .map(|(name, value)| (format!("DFTRACER_{name}"), OsString::from(value)))
        .collect();
    if let Some(text) = yaml {
        std::fs::write(directory.path().join("conf.yaml"), text).expect("written");
        // Relative to the working directory.
        variables.insert("DFTRACER_CONFIGURATION".into(), "conf.yaml".into());
    }
    let (mut options, warnings) = Options::read(&|name| variables.get(name).cloned(), directory.path());
    // The directory's own name is random.
    for path in options.data_dirs.iter_mut().flatten() {
        if let Ok(below) = path.strip_prefix(directory.path()) {
            *path = Path::new("/here").join(below);
        }
    }
    (options, warnings)
}

fn check(environment: &str, yaml: Option<&str>, expected: &Options) {
    let (options, warnings) = read(environment, yaml);
    assert_eq!(options, *expected, "{environment} {yaml:?}");
    assert!(warnings.is_empty(), "{warnings:?}");
}

fn dirs(list: &[&str]) -> Option<Vec<PathBuf>> {
    Some(list.iter().map(PathBuf::from).collect())
}

#[test]
fn variables_count() {
    let d = Options::default;
    check("", None, &d());
    for yes in ["1", "true", "YES", "on"] {
        check(&format!("ENABLE={yes}"), None, &Options { enable: true, ..d() });
    }
    check("ENABLE=1 INIT=PRELOAD", None, &Options { enable: true, init: Init::Preload, ..d() });
    check("INIT=hybrid", None, &Options { init: Init::Hybrid, ..d() });
    check("LOG_FILE=/x/log_file", None, &Options { log_file: "/x/log_file".into(), ..d() });
    check("LOG_FILE=/x/t.pfw", None, &Options { log_file: "/x/t".into(), ..d() });
    check("TRACE_COMPRESSION=0", None, &Options { compression: false, ..d() });
    check("DISABLE_IO=1 DISABLE_STDIO=0", None, &Options { io: false, ..d() });
    check("DISABLE_POSIX=yes", None, &Options { posix: false, ..d() });
    check("DISABLE_TIDS=1", None, &Options { tids: false, ..d() });
    check("DISABLE_TIDS=0", None, &d());
    check("INC_METADATA=1 BIND_SIGNALS=1", None, &Options { metadata: true, bind_signals: true, ..d() });
    check(
        "WRITE_BUFFER_SIZE=0 TIME_METRIC=ns",
        None,
        &Options { write_buffer_size: 0, time_metric: "NS".into(), ..d() },
    );
    check("NO_SUCH_THING=1 PAPI_EVENTS=x", None, &d());
}

#[test]
fn data_directories_are_a_list() {
    let with = |data_dirs| Options { data_dirs, ..Options::default() };
    check("DATA_DIR=all", None, &with(None));
    check("DATA_DIR=/a:all", None, &with(None));
    check("DATA_DIR=:", None, &with(None));
    check("DATA_DIR=/dev/shm/:/p/x", None, &with(dirs(&["/dev/shm", "/p/x"])));
    check("DATA_DIR=data:./a//b/:../c", None, &{
        let (options, _) = read("DATA_DIR=../c", None);
        let up = options.data_dirs.expect("one")[0].clone();
        assert!(up.is_absolute() && up.ends_with("c") && !up.starts_with("/here"), "{up:?}");
        with(Some(vec!["/here/data".into(), "/here/a/b".into(), up]))
    });
}

#[test]
fn both_root_keys_of_the_file_are_read() {
    for root in ["tracer", "profiler"] {
        let text = format!(
            "enable: true\n{root}:\n  init: PRELOAD\n  log_file: /x/t\n  data_dirs: [/a, /b]\n  compression: false\n"
        );
        let expected = Options {
            enable: true,
            init: Init::Preload,
            log_file: "/x/t".into(),
            data_dirs: dirs(&["/a", "/b"]),
            compression: false,
            ..Options::default()
        };
        check("", Some(&text), &expected);
    }
    check(
        "",
        Some("tracer: {log_file: a}\nprofiler: {log_file: b, init: HYBRID}\n"),
        &Options { log_file: "a".into(), init: Init::Hybrid, ..Options::default() },
    );
}

#[test]
fn features_need_no_switch_of_their_own() {
    check(
        "",
        Some("features:\n  tid: false\n  io: {enable: true, posix: true, stdio: false}\n"),
        &Options { tids: false, stdio: false, ..Options::default() },
    );
}

#[test]
fn the_environment_goes_before_the_file() {
    let file = Some("enable: true\ntracer: {log_file: file}\nfeatures: {io: {enable: false}}\n");
    check("ENABLE=0 LOG_FILE=env DISABLE_IO=0", file, &Options { log_file: "env".into(), ..Options::default() });
    check("ENABLE=1", Some("enable: false\n"), &Options { enable: true, ..Options::default() });
}

#[test]
fn what_is_not_understood_is_told_and_has_its_default() {
    let check = |environment: &str, yaml: Option<&str>, words: &[&str]| {
        let (options, warnings) = read(environment, yaml);
        assert_eq!(options, Options::default(), "{environment}");
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        for word in words {
            assert!(warnings[0].contains(word), "{warnings:?}: {word}");
        }
    };
    check("ENABLE=maybe", None, &["DFTRACER_ENABLE=maybe", "1 or 0"]);
    check("INIT=LATER", None, &["DFTRACER_INIT=LATER", "FUNCTION"]);
    check("WRITE_BUFFER_SIZE=4M", None, &["number"]);
    check("CONFIGURATION=/no/such.yaml", None, &["/no/such.yaml", "No such file"]);
    check("", Some("enable: [tru"), &["conf.yaml", "not YAML"]);
    check("", Some("enable: perhaps\n"), &["enable in", "conf.yaml=perhaps"]);
}

#[test]
fn patterns_compare_whole_components() {
    let set = |list: &[&str]| -> GlobSet {
        let mut builder = GlobSetBuilder::new();
        let options = Options { data_dirs: dirs(list), ..Options::default() };
        for pattern in options.patterns() {
            // As the drain compiles them.
            builder.add(GlobBuilder::new(&pattern).literal_separator(true).build().expect(&pattern));
        }
        builder.build().expect("a set")
    };
    let check =
        |list: &[&str], path: &str, expected: bool| assert_eq!(set(list).is_match(path), expected, "{list:?} {path}");
    check(&["/scratch/data"], "/scratch/data", true);
    check(&["/scratch/data"], "/scratch/data/a/b.npz", true);
    check(&["/scratch/data"], "/scratch/data/.hidden/x", true);
    check(&["/scratch/data"], "/scratch/data2/b", false);
    check(&["/scratch/data", "/scratch/data/sub"], "/scratch/data/x", true);
    check(&["/scratch/data", "/scratch/data/sub"], "/scratch/data/sub/x", true);
    check(&["/"], "/etc/passwd", true);
    check(&["/x/a[1]*{b,c}!?\\"], "/x/a[1]*{b,c}!?\\/f", true);
    check(&["/x/a[1]"], "/x/a1/f", false);
    assert!(Options::default().patterns().is_empty());
}

#[test]
fn a_directory_is_known_by_its_real_name_too() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let place = place.path().canonicalize().expect("its real name");
    std::fs::create_dir(place.join("real")).expect("made");
    std::os::unix::fs::symlink("real", place.join("link")).expect("linked");
    let options = Options { data_dirs: Some(vec![place.join("link")]), ..Options::default() };
    let shown = |name: &str| place.join(name).display().to_string();
    let expected = [shown("link"), shown("link") + "/**", shown("real"), shown("real") + "/**"];
    assert_eq!(options.patterns(), expected.map(|path| path.replace(',', "\\,")));
}

#[test]
fn a_prefix_is_a_directory_and_a_beginning() {
    for (prefix, directory, base) in
        [("./trace", "./", "trace"), ("/x/log", "/x/", "log"), ("/x/traces/", "/x/traces/", ""), ("log", ".", "log")]
    {
        let options = Options { log_file: prefix.into(), ..Options::default() };
        assert_eq!(options.place(), (Path::new(directory), OsStr::new(base)), "{prefix}");
    }
}

#[test]
fn files_are_named_by_application_and_process() {
    let name = |number, compression| file_name(OsStr::new("log_file"), "app", 17, number, compression);
    assert_eq!(name(1, true), "log_file-app-17.pfw.gz");
    assert_eq!(name(1, false), "log_file-app-17.pfw");
    assert_eq!(name(3, true), "log_file-app-17-3.pfw.gz");
}

#[test]
fn every_variable_of_the_table_is_named_once() {
    let mut names: Vec<&str> = VARIABLES.iter().map(|row| row.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    assert!(VARIABLES.iter().all(|row| row.name.starts_with("DFTRACER_") && row.effect.ends_with('.')));
}
