//! The round trip to another machine.
//!
//! ICMP needs a privilege, so this measures a TCP handshake: the time until a connection is made or refused, since either answer is a
//! round trip. The shortest of three counts. If a peer drops such packets, there is no result, and the reason is reported.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use serde::Serialize;

/// Where no port is given: the port that firewalls between machines of a cluster least often drop.
const PORT: u16 = 22;
const TRIES: usize = 3;
const PATIENCE: Duration = Duration::from_secs(1);

/// A machine whose distance was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Peer {
    /// As it was given.
    pub name: String,
    /// The address that the name stands for.
    pub address: Option<String>,
    /// The shortest round trip.
    pub round_trip_ns: Option<u64>,
    /// The interface that packets to it leave by; of IPv4 only.
    pub interface: Option<String>,
    /// Why there is no round trip.
    pub error: Option<String>,
}

pub(super) fn measure(name: &str, routes: &str) -> Peer {
    let mut peer = Peer { name: name.to_owned(), address: None, round_trip_ns: None, interface: None, error: None };
    let address = match resolve(name) {
        Ok(address) => address,
        Err(error) => {
            peer.error = Some(error);
            return peer;
        }
    };
    peer.address = Some(address.to_string());
    if let IpAddr::V4(v4) = address.ip() {
        peer.interface = if v4.is_loopback() { Some("lo".to_owned()) } else { route(routes, Some(v4)) };
    }
    for _ in 0..TRIES {
        let begin = Instant::now();
        let answer = TcpStream::connect_timeout(&address, PATIENCE);
        let took = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        match answer {
            Err(error) if error.kind() != ErrorKind::ConnectionRefused => {
                peer.error = Some(error.to_string());
                // Waiting three times for a silent peer gives no more information.
                break;
            }
            _ => peer.round_trip_ns = Some(peer.round_trip_ns.unwrap_or(u64::MAX).min(took)),
        }
    }
    peer
}

fn resolve(name: &str) -> Result<SocketAddr, String> {
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, PORT));
    }
    let found = if name.contains(':') { name.to_socket_addrs() } else { (name, PORT).to_socket_addrs() };
    found.map_err(|error| error.to_string())?.next().ok_or_else(|| "the name has no address".to_owned())
}

/// The interface of the most particular route of `/proc/net/route` to an address; without one, of the default route.
pub(super) fn route(routes: &str, to: Option<Ipv4Addr>) -> Option<String> {
    // The file has addresses as the machine's own integers in network order.
    let to = to.map_or(0, |address| u32::from_ne_bytes(address.octets()));
    let mut best: Option<((u32, std::cmp::Reverse<u64>), &str)> = None;
    for line in routes.lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, destination, _, flags, _, _, metric, mask, ..] = words[..] else { continue };
        let hex = |word: &str| u32::from_str_radix(word, 16).ok();
        let (Some(destination), Some(flags), Some(mask)) = (hex(destination), hex(flags), hex(mask)) else { continue };
        let up = flags & 1 != 0;
        if !up || to & mask != destination {
            continue;
        }
        let rank = (mask.count_ones(), std::cmp::Reverse(metric.parse().unwrap_or(0)));
        if best.as_ref().is_none_or(|(known, _)| rank > *known) {
            best = Some((rank, name));
        }
    }
    best.map(|(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTES: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        eth0\t00000000\t0100A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
        wlan0\t00000000\t0100A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
        eth0\t0000A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n\
        ib0\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n\
        down0\t0001000A\t00000000\t0000\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
        cut\t0\n";

    #[test]
    #[cfg(target_endian = "little")]
    fn routes() {
        for (to, expected) in [
            (None, "eth0"),
            (Some([192, 168, 0, 7]), "eth0"),
            (Some([10, 1, 0, 5]), "ib0"),
            (Some([8, 8, 8, 8]), "eth0"),
        ] {
            assert_eq!(route(ROUTES, to.map(Ipv4Addr::from)).as_deref(), Some(expected), "{to:?}");
        }
        assert_eq!(route("", None), None);
    }

    #[test]
    fn peers() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let open = listener.local_addr().expect("its address").to_string();
        let made = measure(&open, "");
        assert!(made.round_trip_ns.is_some_and(|ns| ns > 0 && ns < 1_000_000_000), "{made:?}");
        assert_eq!(made.interface.as_deref(), Some("lo"));
        drop(listener);
        let refused = measure(&open, "");
        assert!(refused.round_trip_ns.is_some(), "a refusal is an answer: {refused:?}");
        for nowhere in ["", "no such host.invalid:1", "127.0.0.1:99999"] {
            let none = measure(nowhere, "");
            assert!(none.round_trip_ns.is_none() && none.error.is_some(), "{none:?}");
        }
    }
}
