//! Numbers as a line of bars.

use weftline_analysis::table::Curve;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Numbers as a line of bars, at most `width` wide: neighbours are summed up where there are more. A zero is a space.
pub(crate) fn sparkline(values: &[f64], width: usize) -> String {
    draw(&means(|place| Some(values[place]), values.len(), width), 0.0)
}

/// A curve as a line of bars, at most `width` wide. What is not known is a space.
pub(crate) fn curve(curve: &Curve, width: usize) -> String {
    draw(&means(|place| curve.points[place], curve.points.len(), width), curve.full.unwrap_or(0.0))
}

/// At most `width` means of neighbours.
fn means(value: impl Fn(usize) -> Option<f64>, count: usize, width: usize) -> Vec<f64> {
    let columns = count.min(width);
    let mean = |column: usize| {
        let (from, to) = (column * count / columns, (column + 1) * count / columns);
        let known = (from..to).filter_map(&value);
        let (sum, known) = known.fold((0.0, 0u32), |(sum, known), value| (sum + value, known + 1));
        if known == 0 { 0.0 } else { sum / f64::from(known) }
    };
    (0..columns).map(mean).collect()
}

/// The highest bar is the highest number, or `full` where that is higher.
fn draw(heights: &[f64], full: f64) -> String {
    let most = heights.iter().copied().fold(full, f64::max);
    let bar = |height: &f64| match height {
        height if *height <= 0.0 => ' ',
        height => BARS[((height / most * 8.0).ceil() as usize).clamp(1, 8) - 1],
    };
    heights.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_bars() {
        assert_eq!(sparkline(&[0.0, 1.0, 4.0, 8.0], 10), " ▁▄█");
        assert_eq!(sparkline(&[8.0, 8.0, 0.0, 0.0], 2), "█ ");
        assert_eq!((sparkline(&[], 5), sparkline(&[1.0], 0)), (String::new(), String::new()));
        let half = Curve { points: vec![None, Some(50.0), Some(25.0), None], full: Some(100.0) };
        assert_eq!((curve(&half, 9), curve(&half, 2)), (" ▄▂ ".to_owned(), "▄▂".to_owned()));
        assert_eq!(curve(&Curve { full: None, ..half }, 9), " █▄ ");
    }
}
