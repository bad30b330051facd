//! A trial.
use std::process::Command;
use weftline_drain::*;
fn main() {
    let mut args = std::env::args_os().skip(1);
    let run = std::path::PathBuf::from(args.next().unwrap());
    std::fs::create_dir_all(&run).unwrap();
    let live = Live::create(&run, &LiveOptions { run_id: "t".into(), ..Default::default() }).unwrap();
    let mut drain = Drain::new(live, &run, DrainOptions::default()).unwrap();
    let mut child = Command::new(args.next().unwrap())
        .args(args)
        .env("WEFT_LIVE", drain.directory())
        .env("LD_PRELOAD", "/work/main/target/release/libweft_preload.so")
        .spawn()
        .unwrap();
    let start = std::time::Instant::now();
    while child.try_wait().unwrap().is_none() {
        let d = drain.poll();
        std::thread::sleep(d);
    }
    let wall = start.elapsed();
    eprintln!("tree {:?}", tree_io());
    eprintln!("{:?}", drain.take_messages());
    let out = drain.finish().unwrap();
    eprintln!("wall {wall:?} drain cpu {} us; survivors {:?}", out.record.drain_cpu_ns / 1000, out.survivors);
    for p in &out.record.processes {
        eprintln!("{} {} {:?} events {} drops {:?} io {:?} traced {:?} habits {:?} exit {:?} untraced {:?} reaped {:?}", p.pid, p.exe, p.file, p.events, p.drops, p.io, p.traced, p.habits, p.exit, p.untraced, p.reaped_io);
    }
    for c in out.record.calls.iter().take(8) {
        eprintln!("  {c:?}");
    }
    for c in out.record.files.iter().take(5) {
        eprintln!("  {c:?}");
    }
}
