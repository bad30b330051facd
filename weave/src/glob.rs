//! `*` and `?` in names of functions and files. Nothing else is special: brackets and braces are part of names in C++.

/// Does the whole of `text` match? `*` stands for any characters, `?` for one.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut read) = (0, 0);
    // The last `*`, and where what it stands for ends.
    let mut star: Option<(usize, usize)> = None;
    while read < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(&letter) if letter == '?' || letter == text[read] => {
                at += 1;
                read += 1;
            }
            _ => {
                let Some((place, end)) = star else { return false };
                star = Some((place, end + 1));
                at = place + 1;
                read = end + 1;
            }
        }
    }
    pattern[at..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_and_question_marks() {
        let check = |pattern, text, expected| assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        check("inflate", "inflate", true);
        check("inflate", "inflateInit", false);
        check("inflate*", "inflateInit", true);
        check("*", "", true);
        check("", "", true);
        check("", "a", false);
        check("?", "", false);
        check("z::*::operator[]", "z::a::b::operator[]", true);
        check("*(anonymous namespace)::*", "(anonymous namespace)::f", true);
        check("a*b*c", "aXbXbXc", true);
        check("a*b*c", "aXbXbX", false);
        check("f?o", "fäo", true);
        check(&"*a".repeat(200), &"a".repeat(199), false);
    }
}
