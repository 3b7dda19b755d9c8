//! E-mail addresses and phone numbers: their forms, and who may get mail.
//! Reference: supabase/auth `internal/api/mail.go`, `internal/api/phone.go`.

use crate::auth::error::{AuthError, AuthResult, Code};

/// The address in lower case if it has the form of HTML's `input type=email`.
pub fn parse_email(text: &str) -> AuthResult<String> {
    if text.is_empty() {
        return Err(AuthError::invalid("An email address is required"));
    }
    if text.len() > 255 {
        return Err(AuthError::invalid("An email address is too long"));
    }
    if !is_email(text) {
        return Err(AuthError::invalid("Unable to validate email address: invalid format"));
    }
    Ok(text.to_ascii_lowercase())
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else { return false };
    // HTML accepts longer local parts and dots in odd places; mail servers do not.
    let local_fits = (1..=64).contains(&local.len())
        && !local.starts_with('.')
        && !local.ends_with('.')
        && !local.contains("..")
        && local.bytes().all(|b| b.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_`{|}~-".contains(&b));
    let label_fits = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    local_fits && domain.split('.').all(label_fits)
}

/// The number without a leading `+` and spaces.
pub fn format_phone(text: &str) -> String {
    text.strip_prefix('+').unwrap_or(text).replace(' ', "")
}

/// The number in E.164 digits, without `+`.
pub fn parse_phone(text: &str) -> AuthResult<String> {
    let phone = format_phone(text);
    let fits = (2..=15).contains(&phone.len()) && phone.bytes().all(|b| b.is_ascii_digit()) && !phone.starts_with('0');
    if fits { Ok(phone) } else { Err(AuthError::invalid("Invalid phone number format (E.164 required)")) }
}

/// Refuses addresses that are not in a non-empty list, ignoring `+label`s.
pub fn check_authorized(email: &str, authorized: &[String]) -> AuthResult<()> {
    if authorized.is_empty() {
        return Ok(());
    }
    let plain = match (email.find('+'), email.find('@')) {
        (Some(plus), Some(at)) if plus + 1 < at => format!("{}{}", &email[..plus], &email[at..]),
        _ => email.to_owned(),
    };
    if authorized.iter().any(|known| known.eq_ignore_ascii_case(&plain)) {
        return Ok(());
    }
    Err(AuthError::bad_request(
        Code::EmailAddressNotAuthorized,
        format!("Email address \"{email}\" cannot be used as it is not authorized"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_validated_as_in_html() {
        for good in ["a@b", "A.B+c@Example.ORG", "!#$%&'*+/=?^_`{|}~-@x-y.z"] {
            assert_eq!(parse_email(good).expect(good), good.to_lowercase());
        }
        let long = format!("{}@b.example", "a".repeat(250));
        for bad in ["", "a", "@b", "a@", "a@-b", "a@b-", "a@b..c", "a b@c", "a@b@c", "ä@b", "a@b.c\n", long.as_str()] {
            assert!(parse_email(bad).is_err(), "{bad}");
        }
        assert!(parse_email(&format!("{}@b.example", "a".repeat(64))).is_ok());
        let long = format!("{}@b.example", "a".repeat(65));
        for bad in [".a@b", "a.@b", "a..b@c", "\u{212a}@b", "a@\u{212a}.example", long.as_str()] {
            assert!(parse_email(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn phone_numbers_are_e164_without_the_plus() {
        assert_eq!(parse_phone("+1 555 0100").expect("phone"), "15550100");
        for bad in ["", "1", "012345", "+", "1234567890123456", "12a4", "++12"] {
            assert!(parse_phone(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn subaddresses_cannot_bypass_the_list_of_authorized_addresses() {
        let list = ["team@corp.example".to_owned()];
        assert!(check_authorized("Team+x@corp.example", &list).is_ok());
        assert!(check_authorized("other@corp.example", &list).is_err());
        assert!(check_authorized("anyone@x.example", &[]).is_ok());
    }
}
