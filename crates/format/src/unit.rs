//! Units of numbers. Columns and samples state their unit; it is never guessed from names. `weftline_analysis::units` formats numbers.

/// What a number measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Unit {
    /// A number without a unit, or no number.
    #[default]
    Number,
    /// How many.
    Count,
    /// A number that names something: a process, a rank, a bucket.
    Id,
    /// Nanoseconds.
    Nanoseconds,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// 1,024 bytes, as `/proc/meminfo` counts.
    Kibibytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Times per second.
    PerSecond,
    /// A part of one.
    Share,
    /// Hundredths.
    Percent,
    /// Joules.
    Joules,
    /// Millionths of a joule, as energy meters count.
    Microjoules,
    /// Watts.
    Watts,
    /// Degrees Celsius.
    Celsius,
    /// Megahertz.
    Megahertz,
}

impl Unit {
    /// Its name, for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Number => "number",
            Unit::Count => "count",
            Unit::Id => "id",
            Unit::Nanoseconds => "ns",
            Unit::Seconds => "s",
            Unit::Bytes => "bytes",
            Unit::Kibibytes => "KiB",
            Unit::BytesPerSecond => "bytes/s",
            Unit::PerSecond => "1/s",
            Unit::Share => "share",
            Unit::Percent => "percent",
            Unit::Joules => "J",
            Unit::Microjoules => "uJ",
            Unit::Watts => "W",
            Unit::Celsius => "degC",
            Unit::Megahertz => "MHz",
        }
    }
}
