//! The order of names in generated files: JavaScript's `localeCompare`, which Supabase's generator sorts by.

use std::cmp::Ordering;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Punctuation before digits before letters. Accents decide only between names that are otherwise equal, and case only after them, lower
/// case first.
pub fn by_name(a: &str, b: &str) -> Ordering {
    let ((letters, accents), (other_letters, other_accents)) = (self::letters(a), self::letters(b));
    let primary = letters.iter().map(|c| weight(*c)).cmp(other_letters.iter().map(|c| weight(*c)));
    primary
        .then_with(|| accents.cmp(&other_accents))
        .then_with(|| letters.iter().map(|c| c.is_uppercase()).cmp(other_letters.iter().map(|c| c.is_uppercase())))
        .then_with(|| a.cmp(b))
}

/// The letters of a name, and the accents of each.
fn letters(name: &str) -> (Vec<char>, Vec<String>) {
    let (mut letters, mut accents): (Vec<char>, Vec<String>) = (Vec::new(), Vec::new());
    for c in name.nfd() {
        match accents.last_mut() {
            Some(of_last) if is_combining_mark(c) => of_last.push(c),
            _ => {
                letters.push(c);
                accents.push(String::new());
            }
        }
    }
    (letters, accents)
}

/// Group, and position within the group.
fn weight(c: char) -> (u8, u32) {
    /// ASCII punctuation in the order of the Unicode root collation.
    const PUNCTUATION: &str = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";
    match c {
        c if c.is_whitespace() => (0, u32::from(c)),
        c if c.is_ascii_punctuation() => (1, PUNCTUATION.find(c).map_or(u32::from(c), |n| n as u32)),
        c if c.is_ascii_digit() => (2, u32::from(c)),
        c => (3, c.to_lowercase().next().map_or(0, u32::from)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_as_by_locale_compare() {
        // Node: ["user-id", …].sort((a, b) => a.localeCompare(b))
        let mut names = ["users", "user_id", "User", "user", "user2", "user-id", "usera", "a b", "a_b", "$x", "Z", "a"];
        names.sort_by(|a, b| by_name(a, b));
        assert_eq!(
            names,
            ["$x", "a", "a b", "a_b", "user", "User", "user_id", "user-id", "user2", "usera", "users", "Z"]
        );
    }

    #[test]
    fn accents_decide_between_names_that_are_otherwise_equal() {
        let mut names = ["äb", "zebra", "éa", "Äpfel", "apfelz", "eb", "äpfel", "ä_b", "Ea", "apfel", "a_b", "ea"];
        names.sort_by(|a, b| by_name(a, b));
        assert_eq!(names, ["a_b", "ä_b", "äb", "apfel", "äpfel", "Äpfel", "apfelz", "ea", "Ea", "éa", "eb", "zebra"]);
    }
}
