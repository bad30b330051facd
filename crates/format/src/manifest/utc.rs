//! Formats times in UTC. The manifest needs two formats and no calendar library.

/// `2026-11-15T18:30:12.000000001Z`
pub fn rfc3339(ns: i64) -> String {
    let [year, month, day, hour, minute, second] = parts(ns);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:09}Z", ns.rem_euclid(1_000_000_000))
}

/// `20261115T183012Z`, for names of directories: it sorts by time and needs no quoting.
pub fn compact(ns: i64) -> String {
    let [year, month, day, hour, minute, second] = parts(ns);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// `2026-11-15 18:30Z`, for lists.
pub fn minute(ns: i64) -> String {
    let [year, month, day, hour, minute, _] = parts(ns);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}Z")
}

/// Year, month, day, hour, minute, second.
fn parts(ns: i64) -> [i64; 6] {
    let seconds = ns.div_euclid(1_000_000_000);
    let (days, in_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years that start in March, so that the leap day is the last: 400 of them are an era of 146,097 days.
    let from_era = days + 719_468;
    let (era, day) = (from_era.div_euclid(146_097), from_era.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year + i64::from(month <= 2);
    [year, month, day_of_month, in_day / 3_600, in_day / 60 % 60, in_day % 60]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values by `date -u -d @SECONDS`.
    #[test]
    fn times_are_spelled() {
        for (seconds, expected) in [
            (0, "19700101T000000Z"),
            (-1, "19691231T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (1_709_164_799, "20240228T235959Z"),
            (1_709_251_199, "20240229T235959Z"),
            (1_794_767_412, "20261115T183012Z"),
            (4_107_542_400, "21000301T000000Z"),
        ] {
            assert_eq!(compact(seconds * 1_000_000_000), expected);
        }
        assert_eq!(rfc3339(1_794_767_412_000_000_001), "2026-11-15T18:30:12.000000001Z");
        assert_eq!(rfc3339(-1), "1969-12-31T23:59:59.999999999Z");
    }
}
