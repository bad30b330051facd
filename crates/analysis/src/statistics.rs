//! Means and deviations from exact sums.

/// Nanoseconds as seconds.
pub fn seconds(ns: i128) -> f64 {
    ns as f64 / 1e9
}

/// A mean.
pub fn mean(sum: f64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum / count as f64)
}

/// `count * squares - sum²`: exact, as long as it fits.
fn spread(count: u64, sum: i128, squares: u128) -> f64 {
    let exact = (|| {
        let left = squares.checked_mul(u128::from(count))?;
        let right = sum.unsigned_abs().checked_mul(sum.unsigned_abs())?;
        Some(left.saturating_sub(right) as f64)
    })();
    exact.unwrap_or_else(|| (squares as f64 * count as f64 - (sum as f64).powi(2)).max(0.0))
}

/// The deviation of a whole population, from the sum of its values and that of their squares.
pub fn population_deviation(count: u64, sum: i128, squares: u128) -> Option<f64> {
    (count > 0).then(|| spread(count, sum, squares).sqrt() / count as f64)
}

/// Extremes, mean and deviation of a sample; there is no deviation of less than two values.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sample {
    /// Values.
    pub count: u64,
    /// Their sum.
    pub sum: i128,
    squares: u128,
    /// The smallest.
    pub min: i128,
    /// The largest.
    pub max: i128,
}

impl Sample {
    /// Takes up a value.
    pub fn add(&mut self, value: i128) {
        (self.min, self.max) =
            if self.count == 0 { (value, value) } else { (self.min.min(value), self.max.max(value)) };
        self.count += 1;
        self.sum += value;
        self.squares = self.squares.saturating_add(value.unsigned_abs().saturating_mul(value.unsigned_abs()));
    }

    /// Their mean.
    pub fn mean(&self) -> Option<f64> {
        mean(self.sum as f64, self.count)
    }

    /// Their deviation, as of a sample.
    pub fn deviation(&self) -> Option<f64> {
        let count = self.count as f64;
        (self.count > 1).then(|| (spread(self.count, self.sum, self.squares) / (count * (count - 1.0))).sqrt())
    }
}

/// A share; there is none of nothing.
pub fn ratio(part: f64, whole: f64) -> Option<f64> {
    let ratio = part / whole;
    ratio.is_finite().then_some(ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_are_those_of_the_definition() {
        let values = [3i128, 5, 9, 9, 1_000_000_000_007];
        let mut sample = Sample::default();
        values.iter().for_each(|value| sample.add(*value));
        let mean = values.iter().sum::<i128>() as f64 / 5.0;
        let squares: f64 = values.iter().map(|value| (*value as f64 - mean).powi(2)).sum();
        let close = |left: Option<f64>, right: f64| {
            let left = left.expect("a number");
            assert!((left - right).abs() <= 1e-12 * right.abs(), "{left} {right}");
        };
        close(sample.mean(), mean);
        close(sample.deviation(), (squares / 4.0).sqrt());
        close(population_deviation(5, sample.sum, sample.squares), (squares / 5.0).sqrt());
        assert_eq!((sample.min, sample.max), (3, 1_000_000_000_007));
        assert_eq!(Sample::default().deviation(), None);
    }
}
