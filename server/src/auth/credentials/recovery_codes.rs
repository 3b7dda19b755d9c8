//! Recovery codes of second factors, and their hashes.
//!
//! Reference: supabase/auth `internal/crypto/recovery_codes.go`.

use rand::Rng as _;

/// Base32 of RFC 4648 in lower case: without digits that look like letters.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A new code: five bits for each character.
pub fn generate(length: usize) -> String {
    let mut rng = rand::rng();
    (0..length).map(|_| char::from(ALPHABET[rng.random_range(0..ALPHABET.len())])).collect()
}

/// A code as it was given out, whatever case and groups it was typed in.
pub fn normalize(typed: &str) -> String {
    typed
        .chars()
        .filter(|character| *character != '-' && !character.is_whitespace())
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_wanted_length_and_only_characters_of_the_alphabet() {
        for length in [13, 16, 32] {
            let code = generate(length);
            assert_eq!(code.len(), length, "{code}");
            assert!(code.bytes().all(|byte| ALPHABET.contains(&byte)), "{code}");
            assert_ne!(code, generate(length));
        }
    }

    #[test]
    fn case_hyphens_and_spaces_do_not_matter() {
        for typed in ["abcd2345", "ABCD-2345", " ab cd\t23-45\n", "\u{a0}abcd\u{2003}2345"] {
            assert_eq!(normalize(typed), "abcd2345", "{typed:?}");
        }
        assert_eq!(normalize(" - "), "");
    }
}
