//! Collectors that were killed and left their pid file, and machines with more processes than descriptors.

use super::*;

/// Pid files of a run.
fn pid_files(run: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(run.join("run.d")).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|end| end == "pid")).collect()
}

/// Starts a collector in the background and kills it so that it cannot clean up; its pid.
fn killed_daemon(scratch: &Scratch, more: &[&str], run: &Path) -> u32 {
    let mut arguments = vec!["--daemon", "--json", "--interval", "50ms"];
    arguments.extend(more);
    let outcome = job(scratch, &arguments, Some(run)).run();
    assert_eq!(outcome.status, 0, "{}", said(&outcome));
    let reported: serde_json::Value = serde_json::from_slice(&outcome.stdout).expect("JSON");
    let pid = reported["pid"].as_u64().expect("a pid") as u32;
    wait_for_ticks(run, 2);
    signal(pid, Signal::KILL);
    // A thread that is still ending holds the lock of the host, even when the first one is a zombie.
    let threads = || fs::read_dir(format!("/proc/{pid}/task")).map_or(0, |tasks| tasks.flatten().count());
    let began = Instant::now();
    while start_of(&pid.to_string()).is_some() || threads() > 1 {
        assert!(began.elapsed() < Duration::from_secs(60), "it is still there");
        std::thread::sleep(Duration::from_millis(2));
    }
    pid
}

/// What a killed daemon leaves is noticed and disturbs nobody: not the next one, which samples the host at once, and not `--stop`.
#[test]
fn a_killed_daemon_leaves_a_stale_pid_file() {
    let scratch = Scratch::new("collect-stale");
    let (run, other) = (scratch.join("run"), scratch.join("other"));
    let own = scratch.join("own.pid");
    let named = ["--pid-file", own.to_str().expect("UTF-8")];
    for (more, run) in [(&[][..], &run), (&named[..], &other)] {
        let pid = killed_daemon(&scratch, more, run);
        let files = || if more.is_empty() { pid_files(run) } else { vec![own.clone()] };
        assert!(files().len() == 1 && files()[0].exists(), "{more:?}");
        assert!(hidden(run).iter().any(|name| name.ends_with(".sampler")), "the lock of the host stays as a file");
        let sentence = format!("weft: the collector {pid} was killed; removed its stale pid file ");
        // Started again: one sentence, and the host is sampled although the dead one's file is there.
        let mut arguments = vec!["--daemon", "--interval", "50ms"];
        arguments.extend(more);
        let again = job(&scratch, &arguments, Some(run)).run();
        let words = said(&again);
        assert!(again.status == 0 && words.starts_with(&sentence), "{more:?}: {words}");
        assert_eq!(words.lines().count(), 2, "{words}");
        assert!(words.contains("is sampling the host") && files().len() == 1, "{words}");
        let mut arguments = vec!["--stop"];
        arguments.extend(more);
        let stopped = job(&scratch, &arguments, Some(run)).run();
        assert!(stopped.status == 0 && said(&stopped).contains("has stopped"), "{}", said(&stopped));
        assert!(pid_files(run).is_empty() && !own.exists(), "nothing is left of both");
        assert_eq!(check(run, &scratch)["complete"], true);
        assert_eq!(hidden(run), [] as [&str; 0]);
        let host: Vec<bool> = SupervisorRecord::read_all(run)
            .0
            .iter()
            .map(|record| record.samples.as_ref().is_some_and(|samples| samples.what.contains("the host")))
            .collect();
        assert_eq!(host, [true, true], "both sampled the host");
        // Killed again, then stopped: said, removed, and told by the exit code.
        let pid = killed_daemon(&scratch, more, run);
        let late = job(&scratch, &arguments, Some(run)).run();
        let words = said(&late);
        assert_eq!((late.status, words.lines().count()), (3, 1), "{words}");
        assert!(words.contains(&format!("the collector {pid} was killed")), "{words}");
        assert!(files().iter().all(|file| !file.exists()));
        assert_eq!(job(&scratch, &arguments, Some(run)).run().status, 1, "and then there is none");
    }
    // A number that another process has now, or had in another boot, is nobody's.
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("readable");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("readable").trim().to_owned();
    let start = start_of("self").expect("ours");
    for (start, boot) in [(start + 1, boot.trim()), (start, "another-boot")] {
        fs::write(&own, format!("{}\n{start}\n{host}\n{boot}\n", std::process::id())).expect("written");
        let outcome = job(&scratch, &["--stop", named[0], named[1]], Some(&other)).run();
        assert!(outcome.status == 3 && !own.exists(), "{}", said(&outcome));
    }
    // This process is alive, so its file is kept and nothing is begun.
    let alive = format!("{}\n{start}\n{host}\n{boot}", std::process::id());
    for (text, words) in
        [(alive.as_str(), "already samples here"), ("dear diary\n", "is not a pid file of weft collect")]
    {
        fs::write(&own, text).expect("written");
        let fresh = scratch.join("fresh");
        let outcome = job(&scratch, &["--duration", "200ms", named[0], named[1]], Some(&fresh)).run();
        assert!(outcome.status == 1 && said(&outcome).contains(words), "{}", said(&outcome));
        assert_eq!(fs::read_to_string(&own).expect("kept"), text);
        assert!(SupervisorRecord::read_all(&fresh).0.is_empty() && hidden(&fresh).is_empty(), "no samples were begun");
    }
}

/// How many of some processes a collector has open.
fn held(collector: u32, pids: &[u32]) -> usize {
    let names: Vec<std::path::PathBuf> = pids.iter().map(|pid| format!("/proc/{pid}").into()).collect();
    let open = fs::read_dir(format!("/proc/{collector}/fd")).expect("it runs").flatten();
    open.filter_map(|entry| fs::read_link(entry.path()).ok()).filter(|target| names.contains(target)).count()
}

fn wait_until_held(collector: u32, pids: &[u32]) {
    let began = Instant::now();
    while held(collector, pids) < pids.len() {
        assert!(began.elapsed() < Duration::from_secs(60), "{} of {pids:?} are followed", held(collector, pids));
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// More processes than the limit of open files has room for: those that fit are followed, the others are named once and counted, and come
/// in when there is room. It goes on meanwhile, at no more cost than otherwise.
#[test]
fn more_processes_than_descriptors() {
    let scratch = Scratch::new("collect-crowd");
    let run = scratch.join("run");
    let count = 40;
    // The soft limit alone is raised: all are followed. Behind it, the hard one counts.
    for (limits, enough) in [("ulimit -S -n 64", true), ("ulimit -n 64", false)] {
        let run = run.with_extension(if enough { "soft" } else { "hard" });
        let mut crowd: Vec<std::process::Child> = (0..count)
            .map(|_| {
                std::process::Command::new("sleep").arg(format!("60.{}", std::process::id())).spawn().expect("sleep")
            })
            .collect();
        let pattern = format!("^sleep 60.{}$", std::process::id());
        let words = [product().to_str().expect("UTF-8"), "collect", "--interval", "50ms", "--match", &pattern, "-o"];
        let mut command: Vec<OsString> =
            ["bash", "-c", &format!("{limits}; exec \"$@\""), "bash"].iter().chain(&words).map(Into::into).collect();
        command.push((&run).into());
        let job = Job::new(command, &scratch.dir("work"));
        let _ = fs::remove_file(job.beside("stderr"));
        let running = job.start();
        let pids: Vec<u32> = crowd.iter().map(std::process::Child::id).collect();
        if enough {
            wait_for("weft: sampling", &job.beside("stderr"));
            wait_until_held(running.pid(), &pids);
        } else {
            wait_for("the limit of 64 open files is reached", &job.beside("stderr"));
        }
        let (before, began) = (cpu_ns(running.pid()), Instant::now());
        wait_for_ticks(&run, 10);
        // On a busy machine it can only be less.
        let (used, passed) = (cpu_ns(running.pid()) - before, began.elapsed().as_nanos() as u64);
        // All but two end and make room.
        let survivors = crowd.split_off(count - 2);
        let end = |children: Vec<std::process::Child>| {
            for mut child in children {
                child.kill().expect("killed");
                child.wait().expect("waited");
            }
        };
        end(crowd);
        wait_until_held(running.pid(), &pids[count - 2..]);
        wait_for_ticks(&run, 3);
        signal(running.pid(), Signal::TERM);
        let outcome = running.finish();
        end(survivors);
        let words = said(&outcome);
        assert_eq!(outcome.status, 0, "{words}");
        assert!(used < passed / 2, "{used} ns of CPU in {passed}: it spins");
        let record = SupervisorRecord::read_all(&run).0.remove(0).samples.expect("samples");
        assert_eq!(record.processes + record.not_followed, count as u64, "{record:?}");
        let reported = words.matches("the limit of 64 open files is reached").count();
        assert_eq!((reported, record.not_followed == 0), if enough { (0, true) } else { (1, false) }, "{words}");
        let trace = reader::read_run(&run).expect("readable");
        assert_eq!(trace.damage.flaws, []);
        // The host is sampled first at each tick, and the last time at the end: whoever is sampled on has a sample behind the beginning of
        // that interval.
        let of_host = trace.events.iter().filter(|event| event.name == "memory" && event.cat == "sys");
        let last = of_host.max_by_key(|event| event.end_ns()).expect("samples");
        // One that ends while it is let in is introduced but has no sample.
        let samples = |event: &&Event| event.name == "process" && event.phase == Phase::Counter;
        let of = |pid: u32| trace.events.iter().filter(samples).filter(move |event| event.pid == i64::from(pid));
        let followed = pids.iter().filter(|pid| of(**pid).next().is_some()).count();
        assert_eq!(followed as u64, record.processes);
        // Whoever lives at the end is sampled to the end, also those that there was no room for at first.
        for pid in &pids[count - 2..] {
            let latest = of(*pid).filter_map(|event| event.end_ns()).max();
            assert!(latest > last.start_ns, "{pid} is not sampled although there is room: {words}");
        }
        if !enough {
            assert_eq!(check(&run, &scratch)["not_followed"], record.not_followed);
            let latest = of(pids[count - 1]).max_by_key(|event| event.end_ns()).expect("sampled");
            assert!(last.end_ns() > latest.start_ns, "the host is sampled on: {last:?}, {latest:?}");
        }
    }
    // Nothing fits: refused in one sentence.
    let mark = format!("61.{}", std::process::id());
    let pattern = format!("^sleep {mark}$");
    let words = [product().to_str().expect("UTF-8"), "collect", "--match", &pattern, "-o"];
    let mut command: Vec<OsString> =
        ["bash", "-c", "ulimit -n 34; exec \"$@\"", "bash"].iter().chain(&words).map(Into::into).collect();
    command.push(scratch.join("none").into());
    let mut sleeper = std::process::Command::new("sleep").arg(&mark).spawn().expect("sleep");
    let outcome = Job::new(command, &scratch.dir("work")).run();
    sleeper.kill().expect("killed");
    sleeper.wait().expect("waited");
    assert!(outcome.status == 1 && said(&outcome).contains("open files is too low"), "{}", said(&outcome));
}
