//! The order of names in generated files: JavaScript's `localeCompare`, which the generator of Supabase sorts by.

use std::cmp::Ordering;

/// Punctuation before digits before letters; letter case only decides between names that are equal without it,
/// lower case first.
pub fn by_name(a: &str, b: &str) -> Ordering {
    let primary = a.chars().map(weight).cmp(b.chars().map(weight));
    primary
        .then_with(|| a.chars().map(char::is_uppercase).cmp(b.chars().map(char::is_uppercase)))
        .then_with(|| a.cmp(b))
}

/// Group, place in the group.
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
    fn names_stand_as_locale_compare_puts_them() {
        // Node: ["user-id", …].sort((a, b) => a.localeCompare(b))
        let mut names = ["users", "user_id", "User", "user", "user2", "user-id", "usera", "a b", "a_b", "$x", "Z", "a"];
        names.sort_by(|a, b| by_name(a, b));
        assert_eq!(
            names,
            ["$x", "a", "a b", "a_b", "user", "User", "user_id", "user-id", "user2", "usera", "users", "Z"]
        );
    }
}
