//! Parses booleans as users write them.

/// Whether a word says yes or no; nothing when it says neither.
pub(crate) fn truth(word: &str) -> Option<bool> {
    let is = |known: &str| word.trim().eq_ignore_ascii_case(known);
    if ["1", "true", "yes", "on"].into_iter().any(is) {
        Some(true)
    } else if ["0", "false", "no", "off"].into_iter().any(is) {
        Some(false)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::truth;

    #[test]
    fn words_say_yes_or_no() {
        for (words, expected) in [
            (["1", "true", "TRUE", "Yes", " on "], Some(true)),
            (["0", "false", "False", "NO", "off"], Some(false)),
            (["", "2", "yess", "enable", "-1"], None),
        ] {
            for word in words {
                assert_eq!(truth(word), expected, "{word:?}");
            }
        }
    }
}
