//! Who is out of line: processes or hosts whose time differs much from that of the others.

/// A straggler takes at least this many times the median …
pub const RATIO: f64 = 1.5;
/// … and lies at least this many deviations above the mean.
pub const SCORE: f64 = 2.0;

/// One of those that are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Peer {
    /// Which.
    pub name: String,
    /// Of a process: its program.
    pub program: Option<String>,
    /// Of a process: its pid.
    pub pid: Option<i64>,
    /// Its time, ns.
    pub time: i128,
}

/// One that is out of line.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlier {
    /// `process` or `host`.
    pub kind: &'static str,
    /// Which.
    pub name: String,
    /// Of a process: its program.
    pub program: Option<String>,
    /// Of a process: its pid.
    pub pid: Option<i64>,
    /// Its time, ns.
    pub time: i128,
    /// The median over all, ns.
    pub median: f64,
    /// How many times the median.
    pub ratio: f64,
    /// How many deviations (of the population) above the mean.
    pub score: f64,
}

/// Those that are out of line by at least `least` ns, the furthest first. Among fewer than three nobody is.
pub fn outliers(kind: &'static str, peers: &[Peer], least: i128) -> Vec<Outlier> {
    if peers.len() < 3 {
        return Vec::new();
    }
    let mut sorted: Vec<f64> = peers.iter().map(|peer| peer.time as f64).collect();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0;
    let mean = sorted.iter().sum::<f64>() / count as f64;
    let deviation = (sorted.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / count as f64).sqrt();
    let mut found: Vec<Outlier> = peers
        .iter()
        .map(|peer| Outlier {
            kind,
            name: peer.name.clone(),
            program: peer.program.clone(),
            pid: peer.pid,
            time: peer.time,
            median,
            ratio: peer.time as f64 / median,
            score: (peer.time as f64 - mean) / deviation,
        })
        .filter(|one| one.time as f64 - median >= least as f64)
        .filter(|one| one.ratio.is_finite() && one.ratio >= RATIO && one.score >= SCORE)
        .collect();
    found.sort_by(|left, right| right.ratio.total_cmp(&left.ratio).then_with(|| left.name.cmp(&right.name)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_process_among_many() {
        let check = |times: &[i128], least: i128, expected: &[&str]| {
            let peer =
                |(place, time): (usize, &i128)| Peer { name: place.to_string(), program: None, pid: None, time: *time };
            let peers: Vec<_> = times.iter().enumerate().map(peer).collect();
            let found: Vec<String> = outliers("process", &peers, least).into_iter().map(|one| one.name).collect();
            assert_eq!(found, expected, "{times:?}");
        };
        check(&[10, 11, 10, 9, 10, 10, 30], 0, &["6"]);
        check(&[10, 11, 10, 9, 10, 10, 30], 20, &["6"]);
        check(&[10, 11, 10, 9, 10, 10, 30], 21, &[]);
        check(&[10, 11, 10, 9, 10, 10, 12], 0, &[]);
        check(&[10, 100], 0, &[]);
        check(&[0, 0, 0, 0, 0, 0], 0, &[]);
    }
}
