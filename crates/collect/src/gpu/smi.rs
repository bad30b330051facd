//! NVIDIA's GPUs by the text of `nvidia-smi`, for programs that cannot load its library (static builds, other C libraries).
//!
//! One call takes a second and more, so two of them run beside the collector and repeat every second (`--query-gpu … -l 1` and
//! `pmon`); each sample uses the newest line of each device and process. They end with the collector:
//! killed when it ends normally, by the closed pipe otherwise.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};

use rustix::fs::OFlags;

use super::DeviceSampler;
use crate::read::{fraction, number};
use crate::roots::Roots;
use crate::sample::{Interval, Sink, Subject, Value};

const QUERY: &str = "--query-gpu=index,utilization.gpu,utilization.memory,memory.used,memory.total,power.draw,temperature.gpu,clocks.sm";
/// The values behind the index, in the order of the query; memory is in MiB.
const QUERIED: [&str; 7] =
    ["busy_pct", "memory_busy_pct", "memory_used_bytes", "memory_total_bytes", "power_w", "temperature_c", "clock_mhz"];
/// Columns of `pmon` that are taken; which there are depends on the version. `fb` is in MiB.
const MONITORED: [(&str, &str); 5] = [
    ("sm", "busy_pct"),
    ("mem", "memory_busy_pct"),
    ("enc", "encoder_pct"),
    ("dec", "decoder_pct"),
    ("fb", "memory_used_bytes"),
];

/// A command that goes on printing.
#[derive(Debug)]
struct Printer {
    child: Child,
    out: ChildStdout,
    pending: Vec<u8>,
}

impl Printer {
    fn start(program: &Path, arguments: &[&str]) -> Option<Printer> {
        let mut command = std::process::Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let out = child.stdout.take()?;
        let flags = rustix::fs::fcntl_getfl(&out).ok()?;
        rustix::fs::fcntl_setfl(&out, flags | OFlags::NONBLOCK).ok()?;
        Some(Printer { child, out, pending: Vec::new() })
    }

    /// Whole lines that have come since the last call. Never waits.
    fn lines(&mut self) -> String {
        let mut piece = [0; 4096];
        // A command that prints without end does not hold up the collector.
        for _ in 0..256 {
            match self.out.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => self.pending.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let whole = memchr::memrchr(b'\n', &self.pending).map_or(0, |end| end + 1);
        let rest = self.pending.split_off(whole);
        let lines = std::mem::replace(&mut self.pending, rest);
        String::from_utf8_lossy(&lines).into_owned()
    }
}

impl Drop for Printer {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill, only to wait for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All GPUs that the command knows.
#[derive(Debug)]
pub(super) struct Command {
    devices: Printer,
    processes: Option<Printer>,
    monitor: Monitor,
}

impl Command {
    pub(super) fn start(roots: &Roots) -> Option<Command> {
        let program = match &roots.nvidia_smi {
            Some(path) => path.clone(),
            None => in_path("nvidia-smi")?,
        };
        let devices = Printer::start(&program, &[QUERY, "--format=csv,noheader,nounits", "-l", "1"])?;
        let processes = Printer::start(&program, &["pmon", "-s", "um", "-d", "1"]);
        Some(Command { devices, processes, monitor: Monitor::default() })
    }
}

impl DeviceSampler for Command {
    fn describe(&self) -> String {
        "NVIDIA GPUs by nvidia-smi".to_owned()
    }

    fn sample(&mut self, at: Interval, followed: &dyn Fn(u32) -> bool, sink: &mut dyn Sink) {
        for (index, values) in queried(&self.devices.lines()) {
            sink.counter(Subject::Host, "gpu", &format!("gpu{index}"), at, &values);
        }
        if let Some(processes) = &mut self.processes {
            for ((index, pid), values) in self.monitor.read(&processes.lines()) {
                if followed(pid) && !values.is_empty() {
                    sink.counter(Subject::Process(pid), "gpu", &format!("gpu{index}"), at, &values);
                }
            }
        }
    }
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|program| program.is_file())
}

type Values = Vec<(&'static str, Value)>;

/// Adds a value; `-`, `[N/A]` and `[Not Supported]` are none.
fn put(values: &mut Values, name: &'static str, word: &str) {
    let Some(value) = fraction(word.as_bytes()).filter(|value| *value >= 0.0) else { return };
    values.push(match name {
        _ if name.ends_with("_bytes") => (name, Value::Unsigned((value * 1_048_576.0) as u64)),
        _ if name.ends_with("_pct") || name == "power_w" => (name, Value::Float(value)),
        _ => (name, Value::Unsigned(value as u64)),
    });
}

/// The newest line of each device.
fn queried(text: &str) -> Vec<(u64, Values)> {
    let mut found: Vec<(u64, Values)> = Vec::new();
    for line in text.lines() {
        let mut words = line.split(',').map(str::trim);
        let Some(index) = words.next().and_then(|word| number(word.as_bytes())).filter(|index| *index < 1024) else {
            continue;
        };
        let mut values = Values::new();
        for (name, word) in QUERIED.into_iter().zip(words) {
            put(&mut values, name, word);
        }
        if !values.is_empty() {
            found.retain(|(known, _)| *known != index);
            found.push((index, values));
        }
    }
    found
}

/// Reads the table of `nvidia-smi pmon`: `#` lines name the columns, which differ between versions.
#[derive(Debug, Default)]
struct Monitor {
    columns: Vec<String>,
}

impl Monitor {
    /// The newest line of each process on each device.
    fn read(&mut self, text: &str) -> Vec<((u64, u32), Values)> {
        let mut found: Vec<((u64, u32), Values)> = Vec::new();
        for line in text.lines() {
            if let Some(heading) = line.trim_start().strip_prefix('#') {
                // The second heading has the units.
                if heading.split_whitespace().any(|word| word == "pid") {
                    self.columns = heading.split_whitespace().map(str::to_owned).collect();
                }
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let column = |name: &str| {
                let place = self.columns.iter().position(|column| column == name)?;
                words.get(place).copied()
            };
            let index = column("gpu").and_then(|word| number(word.as_bytes())).filter(|index| *index < 1024);
            let pid = column("pid").and_then(|word| word.parse::<u32>().ok());
            // A device without processes has dashes.
            let (Some(index), Some(pid)) = (index, pid) else { continue };
            let mut values = Values::new();
            for (title, name) in MONITORED {
                if let Some(word) = column(title) {
                    put(&mut values, name, word);
                }
            }
            found.retain(|(known, _)| *known != (index, pid));
            found.push(((index, pid), values));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_versions() {
        let old = "# gpu        pid  type    sm   mem   enc   dec   command\n# Idx          #   C/G     %     %     %     %   name\n    0       4711     C    93    41     -     -   python\n    1          -     -     -     -     -     -   -\n";
        let new = "# gpu         pid   type     sm    mem    enc    dec    jpg    ofa     fb   ccpm    command \n# Idx           #    C/G      %      %      %      %      %      %     MB     MB    name \n    0       4711     C     12      3      0      0      -      -   2048      0    python a b\n    0       4711     C     50      4      -      -      -      -   1024      0    python a b\n";
        let busy = |value| ("busy_pct", Value::Float(value));
        let memory = |value| ("memory_busy_pct", Value::Float(value));
        assert_eq!(Monitor::default().read(old), [((0, 4711), vec![busy(93.0), memory(41.0)])]);
        let mut monitor = Monitor::default();
        let used = ("memory_used_bytes", Value::Unsigned(1 << 30));
        assert_eq!(monitor.read(new), [((0, 4711), vec![busy(50.0), memory(4.0), used])]);
        // Headings are printed again every so often; lines before the next one still have names.
        assert_eq!(
            monitor.read("    0       4712     G      7      -      -      -      -      -      -      -    x\n"),
            [((0, 4712), vec![busy(7.0)])]
        );
    }

    #[test]
    fn nonsense_is_passed_over() {
        for text in ["", "#", "# pid", "# gpu pid sm\n", "# gpu pid sm\n0 99999999999 3\n-1 3 3\n", "0 1 2 3\n"] {
            assert_eq!(Monitor::default().read(text), [], "{text:?}");
        }
        for text in ["", ",,,", "x, 1", "0, [N/A], [Not Supported]\n", "0, -5\n", "99999, 1\n", "0, nan, inf\n"] {
            assert_eq!(queried(text), [], "{text:?}");
        }
        let values = queried("0, 55, 21, 1024, 40960, [N/A], 41, 1410\n0, 56, 21\n");
        assert_eq!(values, [(0, vec![("busy_pct", Value::Float(56.0)), ("memory_busy_pct", Value::Float(21.0))])]);
    }
}
