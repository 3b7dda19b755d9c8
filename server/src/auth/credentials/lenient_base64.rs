//! base64 as upstream reads it, with Go's `encoding/base64`: unused bits of the last character and line breaks are
//! ignored. Values that upstream stored, accepted as settings or issued must be readable here too.

use base64::Engine as _;
use base64::alphabet::{self, Alphabet};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const fn lenient(alphabet: &Alphabet, padding: DecodePaddingMode) -> GeneralPurpose {
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(padding).with_decode_allow_trailing_bits(true);
    GeneralPurpose::new(alphabet, config)
}

const STANDARD: GeneralPurpose = lenient(&alphabet::STANDARD, DecodePaddingMode::RequireCanonical);
const STANDARD_NO_PAD: GeneralPurpose = lenient(&alphabet::STANDARD, DecodePaddingMode::RequireNone);
const URL_SAFE_NO_PAD: GeneralPurpose = lenient(&alphabet::URL_SAFE, DecodePaddingMode::RequireNone);

/// Go's `StdEncoding`; `None` if `text` is not base64.
pub fn standard(text: &str) -> Option<Vec<u8>> {
    decode(&STANDARD, text)
}

/// Go's `RawStdEncoding`; `None` if `text` is not base64.
pub fn standard_no_pad(text: &str) -> Option<Vec<u8>> {
    decode(&STANDARD_NO_PAD, text)
}

/// Go's `RawURLEncoding`; `None` if `text` is not base64.
pub fn url_safe_no_pad(text: &str) -> Option<Vec<u8>> {
    decode(&URL_SAFE_NO_PAD, text)
}

fn decode(engine: &GeneralPurpose, text: &str) -> Option<Vec<u8>> {
    if text.contains(['\r', '\n']) {
        return engine.decode(text.replace(['\r', '\n'], "")).ok();
    }
    engine.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_stray_bits_and_line_breaks_are_ignored() {
        // "Zg" is f; the last four bits of "Zh" to "Zv" are unused.
        for text in ["Zg", "Zh", "Zv", "Z\r\ng", "Zg\n"] {
            assert_eq!(url_safe_no_pad(text).as_deref(), Some(&b"f"[..]), "{text}");
            assert_eq!(standard_no_pad(text).as_deref(), Some(&b"f"[..]), "{text}");
            assert_eq!(standard(&format!("{text}==")).as_deref(), Some(&b"f"[..]), "{text}");
        }
        for text in ["Z", "Zg=", "Z g", "Zg.", "Zw=="] {
            assert_eq!(url_safe_no_pad(text), None, "{text}");
            assert_eq!(standard_no_pad(text), None, "{text}");
        }
        assert_eq!((standard("Zg"), standard("-_-_"), url_safe_no_pad("+/+/")), (None, None, None));
    }
}
