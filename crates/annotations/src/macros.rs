//! The macros: each place becomes a `static` with its name and keys, and one safe call.
//!
//! The names of these statics are visible to the program's own expressions, so they are names that no program uses.

/// A span from here to the end of the enclosing block.
///
/// `span!("name")`, `span!("name", key = value, …)`, `span!(cat: "io", "name", …)`. Values implement [`Value`](crate::Value);
/// `key = ?value` tells any value by its `Debug`, `key = %value` by its `Display`; `key`, `?key` and `%key` stand for `key = key` and so
/// on. Bind it: `let _span = span!(…);`.
#[macro_export]
macro_rules! span {
    (cat: $cat:expr, $name:expr $(, $($fields:tt)*)?) => {
        $crate::__site!(enter, $cat, $name $(, $($fields)*)?)
    };
    ($name:expr $(, $($fields:tt)*)?) => { $crate::span!(cat: "app", $name $(, $($fields)*)?) };
}

/// Something that happened now: `instant!("cache miss", key = %path)`.
#[macro_export]
macro_rules! instant {
    (cat: $cat:expr, $name:expr $(, $($fields:tt)*)?) => {
        $crate::__site!(instant, $cat, $name $(, $($fields)*)?)
    };
    ($name:expr $(, $($fields:tt)*)?) => { $crate::instant!(cat: "app", $name $(, $($fields)*)?) };
}

/// Values as they are now: `counter!("queue", length = queue.len())`.
#[macro_export]
macro_rules! counter {
    (cat: $cat:expr, $name:expr $(, $($fields:tt)*)?) => {
        $crate::__site!(counter, $cat, $name $(, $($fields)*)?)
    };
    ($name:expr $(, $($fields:tt)*)?) => { $crate::counter!(cat: "app", $name $(, $($fields)*)?) };
}

/// Metadata of the process: `meta!("model", name = "unet3d", layers = 23)`.
#[macro_export]
macro_rules! meta {
    (cat: $cat:expr, $name:expr $(, $($fields:tt)*)?) => {
        $crate::__site!(meta, $cat, $name $(, $($fields)*)?)
    };
    ($name:expr $(, $($fields:tt)*)?) => { $crate::meta!(cat: "app", $name $(, $($fields)*)?) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __site {
    (enter, $cat:expr, $name:expr $(, $($fields:tt)*)?) => {{
        static __WEFTLINE_SITE: $crate::expansion::Site = $crate::expansion::Site::new($name, $cat);
        $crate::Span::enter(&__WEFTLINE_SITE, |_table, _args| { $crate::__fields!(_table, _args, $($($fields)*)?); })
    }};
    ($what:ident, $cat:expr, $name:expr $(, $($fields:tt)*)?) => {{
        static __WEFTLINE_SITE: $crate::expansion::Site = $crate::expansion::Site::new($name, $cat);
        $crate::expansion::$what(&__WEFTLINE_SITE, |_table, _args| { $crate::__fields!(_table, _args, $($($fields)*)?); });
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __fields {
    ($table:ident, $args:ident $(,)?) => {};
    ($table:ident, $args:ident, ? $key:ident $(, $($rest:tt)*)?) => {
        $crate::__fields!($table, $args, $key = ? $key $(, $($rest)*)?);
    };
    ($table:ident, $args:ident, % $key:ident $(, $($rest:tt)*)?) => {
        $crate::__fields!($table, $args, $key = % $key $(, $($rest)*)?);
    };
    ($table:ident, $args:ident, $key:ident = ? $value:expr $(, $($rest:tt)*)?) => {
        $crate::__field!($table, $args, stringify!($key), $crate::expansion::Debugged(&$value));
        $crate::__fields!($table, $args, $($($rest)*)?);
    };
    ($table:ident, $args:ident, $key:ident = % $value:expr $(, $($rest:tt)*)?) => {
        $crate::__field!($table, $args, stringify!($key), $crate::expansion::Displayed(&$value));
        $crate::__fields!($table, $args, $($($rest)*)?);
    };
    ($table:ident, $args:ident, $key:ident = $value:expr $(, $($rest:tt)*)?) => {
        $crate::__field!($table, $args, stringify!($key), $value);
        $crate::__fields!($table, $args, $($($rest)*)?);
    };
    ($table:ident, $args:ident, $key:ident $(, $($rest:tt)*)?) => {
        $crate::__field!($table, $args, stringify!($key), $key);
        $crate::__fields!($table, $args, $($($rest)*)?);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __field {
    ($table:ident, $args:ident, $key:expr, $value:expr) => {{
        static __WEFTLINE_KEY: $crate::expansion::Text = $crate::expansion::Text::new($key);
        $args.add($table, &__WEFTLINE_KEY, &$value);
    }};
}
