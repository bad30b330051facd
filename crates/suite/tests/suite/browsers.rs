//! Browsers with their sandboxes on, as an ordinary user starts them: namespaces, seccomp filters, zygotes, children with thread storage of
//! their own. One browser is tested with each change, the other each week.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weftline_format::manifest::SupervisorRecord;
use weftline_testkit::Scratch;
use weftline_testkit::case::excerpt;
use weftline_testkit::product::product;
use weftline_testkit::run::{Job, Outcome};

/// Whom the browser runs as: `nobody`.
const AS_USER: [&str; 5] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];

/// A page that a browser has shown only if its script ran.
const PAGE: &str = "<!doctype html><title>t</title><p id=x></p><script>x.textContent = 6 * 7</script>";

/// A place where that user can read the product and write a run.
struct Stage {
    scratch: Scratch,
    work: PathBuf,
    weft: PathBuf,
}

impl Stage {
    fn new(name: &str) -> Stage {
        let scratch = Scratch::new(name);
        let (tools, work) = (scratch.dir("tools"), scratch.dir("work"));
        for name in ["weft", "libweft_preload.so"] {
            fs::copy(product().with_file_name(name), tools.join(name)).expect("the product can be copied");
        }
        fs::write(work.join("page.html"), PAGE).expect("the working directory can be written");
        for place in [scratch.path(), &tools, &work] {
            fs::set_permissions(place, fs::Permissions::from_mode(0o777)).expect("own directory");
        }
        Stage { weft: tools.join("weft"), work, scratch }
    }

    fn run(&self, command: impl IntoIterator<Item = OsString>) -> Outcome {
        let mut job = Job::new(AS_USER.map(OsString::from).into_iter().chain(command), &self.work);
        job.environment.push(("HOME".into(), Some(self.work.clone().into_os_string())));
        job.limit = Duration::from_secs(120);
        job.run()
    }

    /// Runs the browser untraced and traced; `shown` looks whether it did its work. Nothing may be lost but calls of children that
    /// hooks cannot follow.
    fn check(&self, browser: &dyn Fn() -> Vec<OsString>, shown: &dyn Fn(&Outcome) -> bool) {
        let run = self.work.join("run");
        let weft = [self.weft.clone().into(), "run".into(), "-q".into(), "-o".into(), run.clone().into(), "--".into()];
        for (how, before) in [("untraced", Vec::new()), ("traced", weft.to_vec())] {
            let outcome = self.run(before.into_iter().chain(browser()));
            let place = self.scratch.path().display();
            assert_eq!(outcome.status, 0, "{how}, in {place}: {}", excerpt(&outcome.stderr));
            assert!(shown(&outcome), "{how}, in {place}: {}", excerpt(&outcome.stdout));
        }
        let (records, unreadable) = SupervisorRecord::read_all(&run);
        assert!(unreadable.is_empty(), "{unreadable:?}");
        let processes: Vec<_> = records.iter().flat_map(|record| &record.processes).collect();
        assert!(processes.len() > 3, "a browser has several processes: {processes:?}");
        let drops: Vec<&String> = processes.iter().flat_map(|process| process.drops.keys()).collect();
        assert!(drops.iter().all(|reason| *reason == "own-storage-child"), "{drops:?}");
    }
}

/// A directory that is not there yet, for each start.
fn fresh(place: &Path) -> PathBuf {
    if place.exists() {
        fs::remove_dir_all(place).expect("own directory");
    }
    place.to_owned()
}

#[test]
fn chromium_with_its_sandbox() {
    let stage = Stage::new("chromium");
    let page = format!("file://{}", stage.work.join("page.html").display());
    let chromium = || {
        let profile = format!("--user-data-dir={}", fresh(&stage.work.join("profile")).display());
        let quiet =
            ["--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];
        let words =
            ["chromium"].iter().chain(&quiet).chain(&["--disable-component-update", "--disable-sync", "--dump-dom"]);
        words.map(OsString::from).chain([profile.into(), page.clone().into()]).collect()
    };
    let shown = |outcome: &Outcome| String::from_utf8_lossy(&outcome.stdout).contains("<p id=\"x\">42</p>");
    stage.check(&chromium, &shown);
}

#[test]
fn weekly_firefox_with_its_sandbox() {
    let stage = Stage::new("firefox");
    let page = format!("file://{}", stage.work.join("page.html").display());
    let picture = stage.work.join("picture.png");
    let firefox = || {
        let profile = fresh(&stage.work.join("profile"));
        fs::create_dir(&profile)
            .and_then(|()| fs::set_permissions(&profile, fs::Permissions::from_mode(0o777)))
            .expect("made");
        let _ = fs::remove_file(&picture);
        ["firefox-esr", "--headless", "--no-remote", "--profile"]
            .map(OsString::from)
            .into_iter()
            .chain([profile.into(), "--screenshot".into(), picture.clone().into(), page.clone().into()])
            .collect()
    };
    let shown = |_: &Outcome| fs::read(&picture).is_ok_and(|bytes| bytes.starts_with(b"\x89PNG") && bytes.len() > 500);
    stage.check(&firefox, &shown);
}
