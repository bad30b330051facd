//! What a machine is: cores, memory, processor and its frequency, system, interfaces, distance to a peer.

mod frequency;
mod peer;

use std::path::Path;

use serde::Serialize;

use crate::read::{names, number, text};
use crate::roots::Roots;

pub use frequency::Frequency;
pub use peer::Peer;

/// What a machine is. Absent is what it does not tell.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NodeInfo {
    /// Its name.
    pub host: Option<String>,
    /// This boot of it.
    pub boot_id: Option<String>,
    /// Processors that are online.
    pub cores: u32,
    /// Cores of silicon, where several processors share one.
    pub physical_cores: Option<u32>,
    /// Sockets.
    pub sockets: Option<u32>,
    /// Memory.
    pub memory_bytes: Option<u64>,
    /// Swap.
    pub swap_bytes: Option<u64>,
    /// What the processor calls itself.
    pub cpu_model: Option<String>,
    /// Its frequency, and how that is known.
    pub cpu_frequency: Option<Frequency>,
    /// Instruction set.
    pub architecture: &'static str,
    /// Whether it is a virtual machine; none where the processor does not say.
    pub is_virtual: Option<bool>,
    /// Maker and product, as the firmware has them.
    pub product: Option<String>,
    /// Operating system.
    pub os: Option<String>,
    /// Kernel.
    pub kernel: Option<String>,
    /// Network interfaces but the loopback.
    pub interfaces: Vec<Interface>,
    /// The interface that packets leave by when nothing says otherwise.
    pub default_interface: Option<String>,
    /// The machine whose distance was asked for.
    pub peer: Option<Peer>,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// `up`, `down`, `unknown`.
    pub state: Option<String>,
    /// Its speed; none where the driver does not know, as with many virtual ones.
    pub bits_per_second: Option<u64>,
    /// Largest packet.
    pub mtu: Option<u64>,
}

/// Reads what the machine is. With a peer (`HOST:PORT`, or `HOST`) it also connects to it, which may take up to three seconds.
pub fn info(roots: &Roots, peer: Option<&str>) -> NodeInfo {
    let kernel = roots.proc.join("sys/kernel");
    let info = text(roots.proc.join("cpuinfo")).unwrap_or_default();
    let memory = text(roots.proc.join("meminfo")).unwrap_or_default();
    let amount = |key: &str| {
        let kilobytes =
            memory.lines().find_map(|line| number(line.strip_prefix(key)?.split_whitespace().next()?.as_bytes()));
        kilobytes.map(|kilobytes| kilobytes.saturating_mul(1024))
    };
    let flags = value(&info, "flags");
    let dmi = roots.sys.join("class/dmi/id");
    let product: Vec<String> = ["sys_vendor", "product_name"].iter().filter_map(|file| text(dmi.join(file))).collect();
    let routes = text(roots.proc.join("net/route")).unwrap_or_default();
    NodeInfo {
        host: text(kernel.join("hostname")),
        boot_id: text(kernel.join("random/boot_id")),
        cores: cores(roots, &info),
        physical_cores: distinct(&info, &["physical id", "core id"]),
        sockets: distinct(&info, &["physical id"]),
        memory_bytes: amount("MemTotal:"),
        swap_bytes: amount("SwapTotal:"),
        cpu_model: value(&info, "model name")
            .or_else(|| value(&info, "Model"))
            .or_else(|| value(&info, "cpu"))
            .map(str::to_owned),
        cpu_frequency: frequency::find(roots, &info),
        architecture: std::env::consts::ARCH,
        is_virtual: flags.map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")),
        product: (!product.is_empty()).then(|| product.join(" ")),
        os: system(&roots.os_release),
        kernel: text(kernel.join("osrelease")),
        interfaces: interfaces(roots),
        default_interface: peer::route(&routes, None),
        peer: peer.map(|peer| peer::measure(peer, &routes)),
    }
}

/// The first value of a key of `/proc/cpuinfo`.
fn value<'a>(info: &'a str, key: &str) -> Option<&'a str> {
    info.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim_end() == key && !value.trim().is_empty()).then(|| value.trim())
    })
}

fn cores(roots: &Roots, info: &str) -> u32 {
    let online = text(roots.sys.join("devices/system/cpu/online")).and_then(|list| length(&list));
    let listed =
        || info.lines().filter(|line| line.split(':').next().is_some_and(|key| key.trim_end() == "processor")).count();
    online.unwrap_or_else(|| u32::try_from(listed()).unwrap_or(u32::MAX))
}

/// How many numbers a list such as `0-3,8` has.
fn length(list: &str) -> Option<u32> {
    let mut sum = 0u32;
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        sum = sum.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
    }
    Some(sum)
}

/// How many different combinations of some keys the processors of `/proc/cpuinfo` have.
fn distinct(info: &str, keys: &[&str]) -> Option<u32> {
    let mut found: Vec<Vec<&str>> = Vec::new();
    for processor in info.split("\n\n") {
        let values: Option<Vec<&str>> = keys.iter().map(|key| value(processor, key)).collect();
        if let Some(values) = values
            && !found.contains(&values)
        {
            found.push(values);
        }
    }
    u32::try_from(found.len()).ok().filter(|count| *count > 0)
}

fn system(os_release: &Path) -> Option<String> {
    let release = text(os_release)?;
    let find = |key: &str| release.lines().find_map(|line| Some(line.strip_prefix(key)?.trim_matches('"').to_owned()));
    find("PRETTY_NAME=").or_else(|| find("NAME="))
}

fn interfaces(roots: &Roots) -> Vec<Interface> {
    let class = roots.sys.join("class/net");
    let of = |name: String| {
        let file = |file: &str| text(class.join(&name).join(file));
        // Unknown is -1, or an error of reading; some drivers say zero.
        let megabits = file("speed").and_then(|speed| number(speed.as_bytes())).filter(|speed| *speed > 0);
        Interface {
            state: file("operstate"),
            bits_per_second: megabits.map(|speed| speed.saturating_mul(1_000_000)),
            mtu: file("mtu").and_then(|mtu| number(mtu.as_bytes())),
            name,
        }
    };
    // `bonding_masters` is a file among them.
    let real = |name: &String| name != "lo" && class.join(name).is_dir();
    names(&class).into_iter().filter(real).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors() {
        for (list, expected) in [
            ("0", Some(1)),
            ("0-3", Some(4)),
            ("0-3,8,10-11", Some(7)),
            ("", None),
            ("3-1", None),
            ("0-4294967295", None),
            ("a", None),
        ] {
            assert_eq!(length(list), expected, "{list}");
        }
    }
}
