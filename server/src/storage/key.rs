//! Object keys and bucket rules, parsed at the edge.

use super::error::StorageError;

/// A key that is safe to store and to write below the bucket's folder: the reference's alphabet, no empty
/// text, no `.` or `..` segment, at most 1024 bytes and 255 in a segment, as file systems have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectKey(String);

impl ObjectKey {
    pub fn parse(text: &str) -> Result<Self, StorageError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_/!.*'() &$=@;:+,?-".contains(c);
        let safe = !text.is_empty()
            && text.len() <= 1024
            && text.chars().all(allowed)
            && !text.split('/').any(|segment| segment == "." || segment == ".." || segment.len() > 255);
        if safe { Ok(Self(text.to_owned())) } else { Err(StorageError::InvalidKey(text.to_owned())) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether `mime` is on a bucket's list. Parameters and letter case do not matter; `type/*`, `*` and `*/*` match.
pub fn mime_allowed(mime: &str, list: &[String]) -> bool {
    let bare = |text: &str| text.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    let mime = bare(mime);
    mime.contains('/')
        && list.iter().map(|entry| bare(entry)).any(|entry| {
            entry == mime
                || entry == "*"
                || entry == "*/*"
                || entry.strip_suffix("/*").is_some_and(|kind| mime.split('/').next() == Some(kind))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_to_the_alphabet_and_inside_their_bucket() {
        for good in ["a.pdf", "u/1/Fee letter (2).pdf", "a//b", "x@y.z"] {
            assert!(ObjectKey::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "a/../b", "..", "./a", "ä", "a\\b", "a\nb", "a%b", "a#b"] {
            assert!(ObjectKey::parse(bad).is_err(), "{bad}");
        }
        assert!(ObjectKey::parse(&format!("u/{}", "a".repeat(255))).is_ok());
        assert!(ObjectKey::parse(&format!("u/{}", "a".repeat(256))).is_err());
    }

    #[test]
    fn mime_lists_match_whatever_the_parameters() {
        let list = vec!["image/*".to_owned(), "Application/PDF".to_owned()];
        assert!(mime_allowed("image/png", &list));
        assert!(mime_allowed("application/pdf; x=y", &list));
        assert!(!mime_allowed("text/plain", &list));
        assert!(!mime_allowed("nonsense", &["*".to_owned()]));
    }
}
