//! The meaning of an answer: no more texts, or texts again.
//!
//! The English words are Twilio's (<https://help.twilio.com/articles/223134027>); the others are those of our pages' languages.

const STOP: [&str; 20] = [
    "stop",
    "stopall",
    "unsubscribe",
    "cancel",
    "end",
    "quit",
    "revoke",
    "optout",
    // Spanish
    "alto",
    "pare",
    "parar",
    "cancelar",
    "detener",
    "baja",
    // French
    "arret",
    "arreter",
    "desabonner",
    // Haitian Creole
    "sispann",
    "kanpe",
    "fini",
];

const START: [&str; 9] =
    ["start", "unstop", "yes", "iniciar", "empezar", "demarrer", "commencer", "komanse", "rekomanse"];

/// Whether a whole text means stop (true) or start (false).
pub(super) fn wish(body: &str) -> Option<bool> {
    let word: String = body.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).map(plain).collect();
    if STOP.contains(&word.as_str()) {
        return Some(true);
    }
    START.contains(&word.as_str()).then_some(false)
}

/// Removes the accents of our pages' languages, which people leave out on a phone.
fn plain(c: char) -> char {
    match c {
        'á' | 'à' | 'â' => 'a',
        'é' | 'è' | 'ê' => 'e',
        'í' | 'î' => 'i',
        'ó' | 'ò' | 'ô' => 'o',
        'ú' | 'ù' | 'û' => 'u',
        'ç' => 'c',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_keywords_stop_or_start_messages() {
        for (body, meant) in [
            ("STOP", Some(true)),
            (" Stop.\n", Some(true)),
            ("stop all", Some(true)),
            ("ARRÊT", Some(true)),
            ("Désabonner", Some(true)),
            ("alto!", Some(true)),
            ("Sispann", Some(true)),
            ("Start", Some(false)),
            ("Kòmanse", Some(false)),
            ("please do not stop helping", None),
            ("stopping", None),
            ("", None),
        ] {
            assert_eq!(wish(body), meant, "{body:?}");
        }
    }
}
