//! Numbers as the two PerfFlowAspects write them: always with a point or an exponent, so that they stay reals.

/// As Python's `repr` writes a float: the shortest digits that give the same float.
pub(super) fn python(value: f64) -> String {
    if value == 0.0 || (1e-4..1e16).contains(&value.abs()) {
        let short = format!("{value:?}");
        // Of two texts that are equally short and equally near, Python takes the even one: times end in a quarter.
        let decimals = short.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let even = format!("{value:.decimals$}");
        return if even.parse() == Ok(value) { even } else { short };
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// As C's `%.17g`, with `.0` where that shows an integer.
pub(super) fn c(value: f64) -> String {
    let scientific = format!("{value:.16e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..17).contains(&exponent) {
        let fixed = format!("{value:.*}", (16 - exponent) as usize);
        let short = if fixed.contains('.') { fixed.trim_end_matches('0').trim_end_matches('.') } else { &fixed };
        if short.contains('.') { short.to_owned() } else { format!("{short}.0") }
    } else {
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        format!("{digits}e{exponent}")
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn reals_look_like_those_of_the_originals() {
        // The first rows are from files of the originals; `python3 -c 'print(repr(x), "%.17g" % x)'` gave the others.
        for (value, python, c) in [
            ("1794764702810185.25", "1794764702810185.2", "1794764702810185.2"),
            ("1794764702810185.75", "1794764702810185.8", "1794764702810185.8"),
            ("1794764794852915", "1794764794852915.0", "1794764794852915.0"),
            ("47.510982725790178", "47.51098272579018", "47.510982725790178"),
            ("0.013062469144900992", "0.013062469144900992", "0.013062469144900992"),
            ("18640.896", "18640.896", "18640.896000000001"),
            ("0", "0.0", "0.0"),
            ("57.5", "57.5", "57.5"),
            ("100", "100.0", "100.0"),
            ("0.0001", "0.0001", "0.0001"),
            ("5e-5", "5e-05", "5.0000000000000002e-5"),
            ("2.5e-7", "2.5e-07", "2.4999999999999999e-7"),
            ("1e22", "1e+22", "1e22"),
        ] {
            let value: f64 = value.parse().expect("a number");
            assert_eq!(super::python(value), python);
            assert_eq!(super::c(value), c);
        }
    }
}
