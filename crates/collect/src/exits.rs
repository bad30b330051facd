//! The kernel's own records of processes that end (taskstats, by generic netlink).
//!
//! If the parent waits for a process at once, the process is gone before a last sample. The kernel sends its CPU time to subscribers
//! of these records: root of the machine itself (CAP_NET_ADMIN, and neither in a container's pid nor network namespace). Other
//! users do without, and the collector states the unseen time.
//!
//! A record is queued before the kernel reports the end of its process, so it is available when the collector sees the end. All processes of the machine
//! have one; the collector reads them at every tick, so there is room for some thousand ends in between. If a record is lost,
//! the unseen time of that process is stated.
//!
//! CPU time is `cpu_run_virtual_total`: the scheduler's count, in nanoseconds. It lacks at most a scheduler tick and the
//! kernel's work of destroying the process, which comes after the record. Bytes are per thread and in kibibytes, so they are not used.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with, sockopt,
};

use crate::read;
use crate::roots::Roots;

/// The family that knows the numbers of the others, its one command, and the attributes of question and answer.
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// The command of a listener, and its attributes: lists of processors.
const TASKSTATS_GET: u8 = 1;
const REGISTER: u16 = 3;
const DEREGISTER: u16 = 4;
/// Attributes of a record: an id and statistics, together those of a thread or of a whole process.
const THREAD_ID: u16 = 1;
const PROCESS_ID: u16 = 2;
const STATISTICS: u16 = 3;
const OF_THREAD: u16 = 4;
const OF_PROCESS: u16 = 5;
/// Places in `struct taskstats`, which only ever grows at its end.
const FLAGS: usize = 8;
const CPU_RUN_VIRTUAL: usize = 72;
/// `ac_flag` of a thread that was the last of its process (since Linux 5.19; before, such records are left alone).
const LAST_THREAD: u8 = 0x20;

/// Types, flags and sizes of netlink messages.
mod netlink {
    pub(super) const IS_ERROR: u16 = 2;
    pub(super) const REQUEST: u16 = 1;
    pub(super) const ACKNOWLEDGE: u16 = 4;
    pub(super) const HEADER: usize = 16;
    pub(super) const GENERIC_HEADER: usize = 4;
}

/// Buffer for records that have not been read yet; one needs about two kilobytes.
const QUEUE: usize = 2 << 20;

/// Hears of processes that end.
#[derive(Debug)]
pub(crate) struct Exits {
    socket: OwnedFd,
    family: u16,
    processors: Vec<u8>,
    buffer: Vec<u8>,
}

/// A process that has ended, and the CPU time of all its threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) pid: u32,
    pub(crate) cpu_ns: u64,
}

impl Exits {
    /// Asks for records; nothing where the kernel has none or does not give them to us.
    pub(crate) fn listen(roots: &Roots) -> Option<Exits> {
        if !roots.own_pids() {
            return None;
        }
        let mut processors = read::text(roots.sys.join("devices/system/cpu/possible"))?.into_bytes();
        processors.push(0);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(GENERIC)).ok()?;
        bind(&socket, &SocketAddrNetlink::new(0, 0)).ok()?;
        // With less room, more records are lost on a busy machine.
        let _ = sockopt::set_socket_recv_buffer_size_force(&socket, QUEUE);
        let mut exits = Exits { socket, family: 0, processors, buffer: vec![0; 16 << 10] };
        exits.ask(&message(CONTROL, netlink::REQUEST, GET_FAMILY, FAMILY_NAME, b"TASKSTATS\0"))?;
        exits.family = exits.answer(&mut |kind, body| {
            let id = attributes(body).find(|(attribute, _)| *attribute == FAMILY_ID && kind == CONTROL);
            id.and_then(|(_, value)| Some(u16::from_ne_bytes(value.get(..2)?.try_into().ok()?)))
        })?;
        let register =
            message(exits.family, netlink::REQUEST | netlink::ACKNOWLEDGE, TASKSTATS_GET, REGISTER, &exits.processors);
        exits.ask(&register)?;
        // Records may come before the acknowledgement; their processes are not followed yet.
        exits.answer(&mut |kind, _| (kind == netlink::IS_ERROR).then_some(()))?;
        Some(exits)
    }

    fn ask(&self, question: &[u8]) -> Option<()> {
        send(&self.socket, question, SendFlags::empty()).ok().map(drop)
    }

    /// The first message that means something to `read`: its kind, and what is behind its headers. Nothing when the kernel refused.
    fn answer<T>(&mut self, read: &mut dyn FnMut(u16, &[u8]) -> Option<T>) -> Option<T> {
        // The kernel answers within the call that asks, so all is there.
        loop {
            let length = match recv(&self.socket, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((length, _)) => length,
                Err(Errno::INTR) => continue,
                Err(_) => return None,
            };
            for (kind, body) in messages(&self.buffer[..length]) {
                // An error of nothing is an acknowledgement.
                if kind == netlink::IS_ERROR && body.get(..4).is_none_or(|code| code != [0; 4]) {
                    return None;
                }
                if let Some(found) = read(kind, body.get(netlink::GENERIC_HEADER..).unwrap_or_default()) {
                    return Some(found);
                }
            }
        }
    }

    /// Takes the records that have come.
    pub(crate) fn take(&mut self, each: &mut dyn FnMut(Exit)) {
        loop {
            match recv(&self.socket, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((length, _)) => {
                    for (kind, body) in messages(&self.buffer[..length]) {
                        if kind == self.family
                            && let Some(exit) = body.get(netlink::GENERIC_HEADER..).and_then(exit_in)
                        {
                            each(exit);
                        }
                    }
                }
                // Told once when records were lost; those in the queue are whole.
                Err(Errno::INTR | Errno::NOBUFS) => {}
                Err(_) => return,
            }
        }
    }
}

impl Drop for Exits {
    fn drop(&mut self) {
        // The kernel would notice at the next ends; until then it would make useless records.
        let _ = self.ask(&message(self.family, netlink::REQUEST, TASKSTATS_GET, DEREGISTER, &self.processors));
    }
}

/// A request with one attribute.
fn message(family: u16, flags: u16, command: u8, attribute: u16, value: &[u8]) -> Vec<u8> {
    let attribute_length = 4 + value.len();
    let length = netlink::HEADER + netlink::GENERIC_HEADER + attribute_length.next_multiple_of(4);
    let mut bytes = Vec::with_capacity(length);
    bytes.extend((length as u32).to_ne_bytes());
    bytes.extend(family.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    // Sequence and port: the kernel needs neither.
    bytes.extend([0; 8]);
    bytes.extend([command, 1, 0, 0]);
    bytes.extend((attribute_length as u16).to_ne_bytes());
    bytes.extend(attribute.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(length, 0);
    bytes
}

/// Splits off the first part, by the length in its header; lengths are rounded up to four bytes.
fn split<'b>(bytes: &mut &'b [u8], length: usize, head: usize) -> Option<&'b [u8]> {
    let body = bytes.get(head..length)?;
    *bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some(body)
}

/// Messages of a datagram: their kinds, and what is behind their headers.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
        let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
        Some((kind, split(&mut bytes, length, netlink::HEADER)?))
    })
}

/// Attributes: their types and values.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?);
        Some((kind, split(&mut bytes, length, 4)?))
    })
}

/// The end of a process, if a message has one: for a process with several threads it is a part of its own beside its last thread's.
fn exit_in(body: &[u8]) -> Option<Exit> {
    let find = |wanted: u16| attributes(body).find(|(kind, _)| *kind == wanted).map(|(_, part)| part);
    let (part, id, whole) = match find(OF_PROCESS) {
        Some(part) => (part, PROCESS_ID, true),
        None => (find(OF_THREAD)?, THREAD_ID, false),
    };
    let field = |wanted: u16| attributes(part).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
    let pid = u32::from_ne_bytes(field(id)?.get(..4)?.try_into().ok()?);
    let statistics = field(STATISTICS)?;
    if !whole && statistics.get(FLAGS)? & LAST_THREAD == 0 {
        return None;
    }
    let cpu_ns = u64::from_ne_bytes(statistics.get(CPU_RUN_VIRTUAL..CPU_RUN_VIRTUAL + 8)?.try_into().ok()?);
    // A kernel without CONFIG_TASK_DELAY_ACCT says zero of everybody.
    (cpu_ns > 0).then_some(Exit { pid, cpu_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend((4 + value.len() as u16).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn part(kind: u16, id: u16, pid: u32, flags: u8, cpu_ns: u64) -> Vec<u8> {
        let mut statistics = vec![0u8; 560];
        statistics[FLAGS] = flags;
        statistics[CPU_RUN_VIRTUAL..CPU_RUN_VIRTUAL + 8].copy_from_slice(&cpu_ns.to_ne_bytes());
        attribute(kind, &[attribute(id, &pid.to_ne_bytes()), attribute(STATISTICS, &statistics)].concat())
    }

    #[test]
    fn records_of_the_last_thread_and_of_whole_processes() {
        let thread = |flags, cpu_ns| part(OF_THREAD, THREAD_ID, 7, flags, cpu_ns);
        let whole = part(OF_PROCESS, PROCESS_ID, 5, 0, 300);
        for (body, expected) in [
            (thread(LAST_THREAD, 100), Some((7, 100))),
            (thread(LAST_THREAD | 0x10, 100), Some((7, 100))),
            (thread(0, 100), None),
            (thread(LAST_THREAD, 0), None),
            ([thread(LAST_THREAD, 100), whole.clone()].concat(), Some((5, 300))),
            (whole, Some((5, 300))),
            (Vec::new(), None),
        ] {
            assert_eq!(exit_in(&body).map(|exit| (exit.pid, exit.cpu_ns)), expected);
        }
    }

    /// Whatever is cut off or wrong, nothing is made of it and nothing hangs.
    #[test]
    fn broken_messages_mean_nothing() {
        let body = part(OF_THREAD, THREAD_ID, 7, LAST_THREAD, 100);
        for length in 0..body.len() {
            assert_eq!(exit_in(&body[..length]), None, "{length}");
        }
        for byte in 0..body.len() {
            let mut wrong = body.clone();
            wrong[byte] ^= 0xff;
            exit_in(&wrong);
        }
        let whole = message(31, netlink::REQUEST, TASKSTATS_GET, REGISTER, b"0-1\0");
        assert_eq!(messages(&whole).count(), 1);
        for length in 0..whole.len() {
            assert_eq!(messages(&whole[..length]).count(), 0, "{length}");
        }
        // Lengths of nothing must not be read for ever.
        assert_eq!(messages(&[0; 64]).count() + attributes(&[0; 64]).count(), 0);
    }

    #[test]
    fn other_namespaces_are_not_asked() {
        assert!(Exits::listen(&Roots::under("/nowhere")).is_none());
    }
}
