//! Time-based one-time passwords. Reference: RFC 6238, RFC 4226; the `otpauth` URI and the picture of it as
//! supabase/auth makes them (`internal/api/mfa.go`).

use data_encoding::BASE32_NOPAD;
use hmac::{Hmac, Mac as _};
use qrcode::render::svg;
use qrcode::{EcLevel, QrCode};
use rand::RngCore as _;
use sha1::Sha1;
use subtle::ConstantTimeEq as _;

/// Seconds a code lives.
const PERIOD: u64 = 30;
/// Codes of this many periods before and after are accepted too.
const SKEW: u64 = 1;

/// A new secret: 20 bytes as base32 without padding.
pub fn generate_secret() -> String {
    let mut bytes = [0_u8; 20];
    rand::rng().fill_bytes(&mut bytes);
    BASE32_NOPAD.encode(&bytes)
}

/// The URI that authenticator applications read.
pub fn uri(issuer: &str, account: &str, secret: &str) -> String {
    let label = format!("{}:{}", escape_path(issuer), escape_path(account));
    // API users see the order of the parameters: alphabetical.
    format!(
        "otpauth://totp/{label}?algorithm=SHA1&digits=6&issuer={}&period={PERIOD}&secret={secret}",
        escape(issuer, b"-_.~$&+:=@")
    )
}

/// Escapes a path; the issuer parameter is escaped like a path segment.
fn escape_path(text: &str) -> String {
    escape(text, b"-_.~$&+,/:;=@")
}

fn escape(text: &str, kept: &[u8]) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || kept.contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}

/// A picture of `uri` as SVG text; `None` if it is too long for a QR code.
pub fn qr_code(uri: &str) -> Option<String> {
    let code = QrCode::with_error_correction_level(uri, EcLevel::H)
        .or_else(|_| QrCode::with_error_correction_level(uri, EcLevel::L))
        .ok()?;
    // Named colours, because clients put the text unescaped into `data:image/svg+xml;utf-8,`, where a `#` would begin a
    // fragment.
    let mut picture = code.render::<svg::Color<'_>>();
    let picture = picture.module_dimensions(3, 3).dark_color(svg::Color("black")).light_color(svg::Color("white"));
    Some(picture.build())
}

/// The step of time whose code `code` is, if it is one of the steps around `now` (unix seconds).
pub fn matching_step(secret: &str, code: &str, now: u64) -> Option<u64> {
    let key = BASE32_NOPAD.decode(secret.trim().trim_end_matches('=').to_ascii_uppercase().as_bytes()).ok()?;
    let code = code.trim();
    let step = now / PERIOD;
    (step.saturating_sub(SKEW)..=step + SKEW)
        .rfind(|step| code_of(&key, *step).is_some_and(|right| bool::from(right.as_bytes().ct_eq(code.as_bytes()))))
}

fn code_of(key: &[u8], step: u64) -> Option<String> {
    let mut mac = Hmac::<Sha1>::new_from_slice(key).ok()?;
    mac.update(&step.to_be_bytes());
    let digest = mac.finalize().into_bytes();
    let offset = usize::from(digest.last()? & 0xf);
    let word: [u8; 4] = digest.get(offset..offset + 4)?.try_into().ok()?;
    Some(format!("{:06}", (u32::from_be_bytes(word) & 0x7fff_ffff) % 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6238, appendix B, the last six digits of its SHA-1 values.
    #[test]
    fn codes_match_the_rfc_6238_examples() {
        let key = b"12345678901234567890";
        for (time, code) in
            [(59, "287082"), (1_111_111_109, "081804"), (1_234_567_890, "005924"), (20_000_000_000, "353130")]
        {
            assert_eq!(code_of(key, time / PERIOD).as_deref(), Some(code));
        }
    }

    #[test]
    fn a_code_is_good_one_step_early_and_late_but_not_two() {
        let secret = BASE32_NOPAD.encode(b"12345678901234567890");
        for (now, good) in [(59, true), (59 + 30, true), (29, true), (59 + 60, false)] {
            assert_eq!(matching_step(&secret, "287082", now).is_some(), good, "{now}");
        }
        assert!(matching_step(&secret, "", 59).is_none());
        assert!(matching_step("not base32!", "287082", 59).is_none());
    }

    #[test]
    fn the_uri_is_escaped_and_has_a_qr_code() {
        let uri = uri("My App", "a+b@c.example", "ABC");
        assert_eq!(
            uri,
            "otpauth://totp/My%20App:a+b@c.example?algorithm=SHA1&digits=6&issuer=My%20App&period=30&secret=ABC"
        );
        assert!(super::uri("https://a/x?y=1", "b", "ABC").contains("totp/https://a/x%3Fy=1:b?"));
        assert!(super::uri("https://a/x?y=1", "b", "ABC").contains("issuer=https:%2F%2Fa%2Fx%3Fy=1&"));
        let picture = qr_code(&uri).expect("picture");
        assert!(picture.contains("<svg") && !picture.contains('#'), "{picture}");
        assert!(qr_code(&"x".repeat(5000)).is_none());
    }
}
