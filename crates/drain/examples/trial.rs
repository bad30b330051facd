//! A trial.
use std::process::Command;
use weftline_drain::*;
fn cpu() -> u64 {
    weftline_recorder::sys::clock(libc::CLOCK_PROCESS_CPUTIME_ID) / 1000
}
fn main() {
    let c0 = cpu();
    let mut args = std::env::args_os().skip(1);
    let run = std::path::PathBuf::from(args.next().unwrap());
    if run.as_os_str() == "--recover" {
        let r = recover(std::path::Path::new(&args.next().unwrap()), &RecoverOptions::default()).unwrap();
        println!("{r:?}");
        return;
    }
    std::fs::create_dir_all(&run).unwrap();
    let live = Live::create(&run, &LiveOptions { run_id: "t".into(), ..Default::default() }).unwrap();
    let c1 = cpu();
    let mut drain = Drain::new(live, &run, DrainOptions::default()).unwrap();
    let c2 = cpu();
    let mut child = Command::new(args.next().unwrap())
        .args(args)
        .env("WEFT_LIVE", drain.directory())
        .env("LD_PRELOAD", "/tmp/target-h4/release/libweft_preload.so")
        .spawn()
        .unwrap();
    let c3 = cpu();
    let start = std::time::Instant::now();
    while child.try_wait().unwrap().is_none() {
        let d = drain.poll();
        std::thread::sleep(d);
    }
    let c4 = cpu();
    let wall = start.elapsed();
    eprintln!("tree {:?}", tree_io());
    eprintln!("{:?}", drain.take_messages());
    let c5 = cpu();
    let out = drain.finish().unwrap();
    let c6 = cpu();
    eprintln!("before {c0} create {} new {} spawn {} loop {} finish {}", c1 - c0, c2 - c1, c3 - c2, c4 - c3, c6 - c5);
    eprintln!("wall {wall:?} drain cpu {} us; survivors {:?}", out.record.drain_cpu_ns / 1000, out.survivors);
    for p in &out.record.processes {
        eprintln!(
            "{} {} {:?} events {} drops {:?} io {:?} traced {:?} habits {:?} exit {:?} untraced {:?} reaped {:?}",
            p.pid, p.exe, p.file, p.events, p.drops, p.io, p.traced, p.habits, p.exit, p.untraced, p.reaped_io
        );
    }
    for c in out.record.calls.iter().take(8) {
        eprintln!("  {c:?}");
    }
    for c in out.record.files.iter().take(5) {
        eprintln!("  {c:?}");
    }
}
