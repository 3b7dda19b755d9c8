//! Names of buckets and objects, media types, content codings and `X-Robots-Tag` rules, parsed at the edge.

use super::error::StorageError;

/// An object key that is safe as a path below the bucket's folder: the reference's alphabet, not empty, no `.` or `..` segment,
/// at most 1024 bytes and 255 per segment, the limit of file systems.
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

    /// An empty file of any type that makes an empty folder visible.
    pub fn is_placeholder(&self) -> bool {
        self.0.ends_with(".emptyFolderPlaceholder")
    }
}

/// Whether a bucket may have this name: the alphabet of keys without the slash, 1 to 100 characters.
pub fn is_bucket_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_!.*'() &$=@;:+,?-".contains(c);
    !text.is_empty() && text.len() <= 100 && text.chars().all(allowed) && text != "." && text != ".."
}

/// Whether a new bucket may have this name: no surrounding spaces, and not reserved for analytics buckets.
pub fn is_new_bucket_name(text: &str) -> bool {
    is_bucket_name(text) && text.trim() == text && !text.ends_with("--table-s3")
}

/// A character of a token (RFC 9110, 5.6.2).
fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_!#$%&'*+.^`|~-".contains(c)
}

/// Maximum length of a `Content-Encoding`, in bytes. It is stored with the object and sent with every download.
const MAX_CODINGS: usize = 255;

/// Reads a `Content-Encoding`: the codings in which an object's bytes are. S3's `aws-chunked` is left out, because it is only how
/// the bytes were sent. `None` if there is no other.
pub fn content_encoding(text: &str) -> Result<Option<String>, StorageError> {
    let codings = text.split(',').map(str::trim).filter(|coding| !coding.is_empty());
    let codings: Vec<&str> = codings.filter(|coding| !coding.eq_ignore_ascii_case("aws-chunked")).collect();
    if text.len() > MAX_CODINGS || codings.iter().any(|coding| !coding.chars().all(is_token)) {
        return Err(StorageError::InvalidRequest("Invalid contentEncoding".to_owned()));
    }
    Ok(Some(codings.join(", ")).filter(|codings| !codings.is_empty()))
}

/// Whether this is a `Content-Type`: `type/subtype`, then perhaps parameters.
pub fn is_media_type(text: &str) -> bool {
    let kind = text.split(';').next().unwrap_or_default().trim_end();
    kind.split_once('/')
        .is_some_and(|(kind, sub)| [kind, sub].iter().all(|part| !part.is_empty() && part.chars().all(is_token)))
}

/// Whether a bucket's list of media types may contain this: `type/subtype`, optionally with a charset, or a pattern that ends in
/// a star.
pub fn is_listed_type(text: &str) -> bool {
    let part = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-+.".contains(c));
    let exact = || {
        let (kind, parameter) = text.split_once(';').map_or((text, None), |(kind, rest)| (kind, Some(rest)));
        let known = parameter.is_none_or(|rest| {
            let charset = rest.trim_start().strip_prefix("charset=");
            charset.is_some_and(|c| !c.is_empty() && c.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
        });
        known && kind.split_once('/').is_some_and(|(kind, sub)| part(kind) && part(sub))
    };
    text.len() <= 1000 && (text.ends_with('*') || exact())
}

const ROBOTS_RULES: [&str; 8] =
    ["all", "noindex", "nofollow", "none", "nosnippet", "indexifembedded", "notranslate", "noimageindex"];

/// Maximum length of an `X-Robots-Tag`, in bytes. It is stored with the object and sent with every download.
const MAX_ROBOTS_TAG: usize = 1024;

/// Checks an `X-Robots-Tag`: known rules, optionally with values or for one named crawler.
pub fn check_robots_tag(text: &str) -> Result<(), StorageError> {
    let refused = |why: String| Err(StorageError::InvalidRobotsTag(why));
    if text.len() > MAX_ROBOTS_TAG {
        return refused(format!("X-Robots-Tag header value must have at most {MAX_ROBOTS_TAG} bytes"));
    }
    if text.trim().is_empty() {
        return refused("X-Robots-Tag header value must be a non-empty string".to_owned());
    }
    let mut rest = text.trim();
    while !rest.is_empty() {
        // A date contains commas. It ends where a known rule or something with a colon begins.
        let end = if rest.starts_with("unavailable_after:") {
            let begins_rule = |after: &str| {
                let word = after.trim_start().split([',', ':']).next().unwrap_or("").trim();
                let named = after.trim_start().get(word.len()..).is_some_and(|tail| tail.starts_with(':'));
                ROBOTS_RULES.contains(&word) || (named && word.starts_with(|c: char| c.is_ascii_alphabetic()))
            };
            rest.match_indices(',').map(|(at, _)| at).find(|at| begins_rule(&rest[at + 1..])).unwrap_or(rest.len())
        } else {
            rest.find(',').unwrap_or(rest.len())
        };
        let mut rule = rest[..end].trim();
        rest = rest.get(end + 1..).unwrap_or("").trim();
        if rule.is_empty() {
            return refused("X-Robots-Tag header contains empty rule".to_owned());
        }
        while let Some(of_agent) = check_robots_rule(rule)? {
            rule = of_agent;
        }
    }
    Ok(())
}

/// Checks a rule without commas, or a date. Returns the rule that follows the name of a crawler, which is not yet checked.
fn check_robots_rule(rule: &str) -> Result<Option<&str>, StorageError> {
    let refused = |why: String| Err(StorageError::InvalidRobotsTag(why));
    if ROBOTS_RULES.contains(&rule) {
        return Ok(None);
    }
    let Some((name, value)) = rule.split_once(':').map(|(name, value)| (name.trim(), value.trim())) else {
        return refused(format!("Invalid X-Robots-Tag rule: \"{rule}\""));
    };
    let whole = |value: &str| value.parse::<i64>().is_ok_and(|n| n >= -1) && !value.starts_with('+');
    match name {
        "max-snippet" | "max-image-preview" | "max-video-preview" | "unavailable_after" if value.is_empty() => {
            refused(format!("X-Robots-Tag rule \"{name}\" requires a value"))
        }
        "max-snippet" | "max-video-preview" if !whole(value) => {
            refused(format!("X-Robots-Tag \"{name}\" value must be an integer >= -1, got: \"{value}\""))
        }
        "max-image-preview" if !["none", "standard", "large"].contains(&value) => refused(format!(
            "X-Robots-Tag \"max-image-preview\" value must be one of: none, standard, large, got: \"{value}\""
        )),
        "unavailable_after" if !value.contains(|c: char| c.is_ascii_digit()) => {
            refused(format!("X-Robots-Tag \"unavailable_after\" value must be a valid date, got: \"{value}\""))
        }
        "max-snippet" | "max-image-preview" | "max-video-preview" | "unavailable_after" => Ok(None),
        agent if value.is_empty() => refused(format!("X-Robots-Tag user agent \"{agent}\" has no rules specified")),
        _ => Ok(Some(value)),
    }
}

/// Whether `mime` matches a bucket's list, ignoring parameters and case. `type/*`, `*` and `*/*` are patterns.
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
    fn a_content_encoding_is_a_list_of_codings_without_that_of_s3() {
        for (text, codings) in [
            ("gzip", Some("gzip")),
            ("aws-chunked", None),
            ("AWS-Chunked,br", Some("br")),
            (" gzip , aws-chunked,", Some("gzip")),
            ("deflate,gzip", Some("deflate, gzip")),
            ("", None),
        ] {
            assert_eq!(content_encoding(text).expect("codings").as_deref(), codings, "{text:?}");
        }
        for text in ["gz ip", "gzip\r\nx: y", "gz\u{ef}p", &"x".repeat(256)] {
            assert!(content_encoding(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn keys_use_the_alphabet_and_stay_in_their_bucket() {
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
    fn bucket_names_have_no_slash_and_new_ones_no_surrounding_spaces() {
        for good in ["a", "my bucket", "x_y.z", &"b".repeat(100)] {
            assert!(is_new_bucket_name(good), "{good}");
        }
        for bad in ["", "a/b", "ä", " a", "a ", "..", "x--table-s3", &"b".repeat(101)] {
            assert!(!is_new_bucket_name(bad), "{bad}");
        }
    }

    #[test]
    fn a_content_type_has_a_type_and_a_subtype() {
        for good in ["image/png", "text/plain; charset=utf-8", "text/plain;", "application/vnd.a+b ; c", "*/*"] {
            assert!(is_media_type(good), "{good}");
        }
        for bad in ["", "png", "image/", "/png", "image/\tpng", "image/png x", "image//png", ";a/b"] {
            assert!(!is_media_type(bad), "{bad}");
        }
    }

    #[test]
    fn lists_allow_types_with_a_charset_or_a_star() {
        for good in ["image/png", "text/plain; charset=utf-8", "text/plain;charset=utf-8", "image/*", "*/*", "*"] {
            assert!(is_listed_type(good), "{good}");
        }
        for bad in ["", "png", "image/", "text/plain; a=b", "a b/c", &format!("a/{}", "b".repeat(1000))] {
            assert!(!is_listed_type(bad), "{bad}");
        }
    }

    #[test]
    fn robots_tags_contain_known_rules_only() {
        for good in [
            "none",
            "noindex, nofollow",
            "max-snippet: -1, max-image-preview:large",
            "unavailable_after: Wed, 21 Oct 2026 07:28:00 GMT, noindex",
            "googlebot: noindex",
            "googlebot: noindex, nofollow, otherbot: max-snippet: 5",
            "googlebot: unavailable_after: 2026-10-21",
        ] {
            assert!(check_robots_tag(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "nope",
            "noindex,,none",
            "max-snippet: x",
            "max-image-preview: huge",
            "bot:",
            "bot: nope",
            "bot: max-snippet:",
        ] {
            assert!(check_robots_tag(bad).is_err(), "{bad}");
        }
    }

    /// Each colon once cost a frame of the stack, so that one header ended the process.
    #[test]
    fn a_long_robots_tag_is_refused_however_deep_it_is() {
        let colons = "a:".repeat(60_000);
        for (bad, why) in [(colons.as_str(), "at most 1024 bytes"), (&colons[..1024], "user agent \"a\" has no rules")]
        {
            let refused = check_robots_tag(bad);
            assert!(matches!(&refused, Err(StorageError::InvalidRobotsTag(text)) if text.contains(why)), "{refused:?}");
        }
        assert!(check_robots_tag(&format!("{}none", "a:".repeat(510))).is_ok());
        assert!(check_robots_tag(&"noindex, ".repeat(200)).is_err());
    }

    #[test]
    fn mime_lists_ignore_parameters() {
        let list = vec!["image/*".to_owned(), "Application/PDF".to_owned()];
        assert!(mime_allowed("image/png", &list));
        assert!(mime_allowed("application/pdf; x=y", &list));
        assert!(!mime_allowed("text/plain", &list));
        assert!(!mime_allowed("nonsense", &["*".to_owned()]));
    }
}
