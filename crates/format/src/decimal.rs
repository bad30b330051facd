//! Decimal numbers to whole nanoseconds, digit by digit.
//!
//! Today's time in microseconds has sixteen digits before the point, and a float keeps none after it. So this module
//! reads the digits themselves: `1794764744755824.123` µs is 1794764744755824123 ns, exactly.

/// Digits, and where the point is: `digits × 10^exponent`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decimal {
    negative: bool,
    digits: u128,
    exponent: i32,
}

/// A number in units of 10⁻⁹: nanoseconds to their billionth part, so that sums of two times are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fixed(i128);

const ONE: i128 = 1_000_000_000;
/// Nineteen digits before the point and nine behind it are all that can count; more would not fit the arithmetic.
const MAX_DIGITS: u32 = 28;

impl Decimal {
    /// Reads `-12.5e3`; nothing when the text is something else.
    pub(crate) fn parse(text: &[u8]) -> Option<Decimal> {
        let (negative, mut rest) = match text {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        let mut number = Decimal { negative, digits: 0, exponent: 0 };
        let mut taken = 0;
        let mut any = false;
        let mut fraction = false;
        while let [byte, tail @ ..] = rest {
            match byte {
                b'0'..=b'9' => {
                    any = true;
                    if taken < MAX_DIGITS {
                        number.digits = number.digits * 10 + u128::from(byte - b'0');
                        taken += u32::from(number.digits != 0);
                        number.exponent -= i32::from(fraction);
                    } else {
                        number.exponent += i32::from(!fraction);
                    }
                }
                b'.' if !fraction => fraction = true,
                b'e' | b'E' if any => {
                    let power: i32 = std::str::from_utf8(tail).ok()?.parse().ok()?;
                    number.exponent = number.exponent.checked_add(power)?;
                    return Some(number);
                }
                _ => return None,
            }
            rest = tail;
        }
        any.then_some(number)
    }

    /// The number times `unit`; nothing when it is too large. What is below 10⁻⁹ is cut off towards minus infinity.
    pub(crate) fn scaled(self, unit: i128) -> Option<Fixed> {
        let digits = i128::try_from(self.digits).ok()?;
        let signed = if self.negative { -digits } else { digits };
        if signed == 0 {
            return Some(Fixed(0));
        }
        let power = self.exponent.checked_add(9)?;
        if power >= 0 {
            let factor = 10i128.checked_pow(power as u32)?;
            signed.checked_mul(unit)?.checked_mul(factor).map(Fixed)
        } else {
            // Multiply first where that fits: units are powers of ten, so a digit may yet count.
            let product = signed.checked_mul(unit)?;
            let cut = 10i128.checked_pow(power.unsigned_abs());
            Some(Fixed(cut.map_or(if product < 0 { -1 } else { 0 }, |cut| product.div_euclid(cut))))
        }
    }
}

impl Fixed {
    /// A whole number.
    pub(crate) fn whole(v: i64) -> Fixed {
        Fixed(i128::from(v) * ONE)
    }

    pub(crate) fn is_whole(self) -> bool {
        self.0 % ONE == 0
    }

    /// The whole number at or below it, where it fits.
    pub(crate) fn floor(self) -> Option<i64> {
        i64::try_from(self.0.div_euclid(ONE)).ok()
    }

    pub(crate) fn plus(self, other: Fixed) -> Option<Fixed> {
        self.0.checked_add(other.0).map(Fixed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, unit: i128, expected: Option<i64>) {
        let found = Decimal::parse(text.as_bytes()).and_then(|d| d.scaled(unit)).and_then(Fixed::floor);
        assert_eq!(found, expected, "{text} × {unit}");
    }

    #[test]
    fn digits_are_exact() {
        check("12.345", 1000, Some(12_345));
        check("12.3456", 1000, Some(12_345));
        check("-0.0001", 1000, Some(-1));
        check("1794764744755824.123", 1000, Some(1_794_764_744_755_824_123));
        check("1679127184455376.0", 1000, Some(1_679_127_184_455_376_000));
        check("1.794764744755824123e18", 1, Some(1_794_764_744_755_824_123));
        check("1.5e3", 1000, Some(1_500_000));
        check("0e999999", 1000, Some(0));
        check("6.9e-323", 1000, Some(0));
        check("1e-2147483648", 1000, Some(0));
        check("-1e-300", 1000, Some(-1));
        check("1e300", 1000, None);
        check("9223372036854775807", 1, Some(i64::MAX));
        check("9223372036854775808", 1, None);
        check("-9223372036854775808", 1, Some(i64::MIN));
        check("0.000000000000000000000000000000000000000000000000001", 1000, Some(0));
        check(&format!("{}.5", "0".repeat(60)), 1000, Some(500));
        check(&"9".repeat(60), 1, None);
        for wrong in ["", "-", ".", "e5", "1e", "1.2.3", "1x", "0x10", "+1", " 1"] {
            check(wrong, 1, None);
        }
    }
}
