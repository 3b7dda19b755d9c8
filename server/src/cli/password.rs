//! The password in a connection string: before the host, or as a parameter, which counts if there are both.

use std::borrow::Cow;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::Url;

const PARAMETER: &str = "password";

/// `url` without the password, and the password.
pub fn split(url: &Url) -> (Url, Option<String>) {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let mut password = url.password().map(decoded);
    let mut rest = url.clone();
    // Schemes that cannot have a password have none.
    let _ = rest.set_password(None);
    let Some(query) = url.query() else { return (rest, password) };
    let mut kept = Vec::new();
    // The others stay as they are written, because libpq takes a plus sign literally.
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if percent_decode_str(name).decode_utf8_lossy() == Cow::Borrowed(PARAMETER) {
            password = Some(decoded(value));
        } else {
            kept.push(pair);
        }
    }
    let kept = kept.join("&");
    rest.set_query(Some(kept.as_str()).filter(|kept| !kept.is_empty()));
    (rest, password)
}

/// `url` with this password, wherever it had one before.
pub fn replace(url: &Url, password: &str) -> Url {
    let (mut url, _) = split(url);
    if url.set_password(Some(password)).is_err() {
        // Without a host, as for a socket, only a parameter can contain it.
        let parameter = format!("{PARAMETER}={}", utf8_percent_encode(password, NON_ALPHANUMERIC));
        let query = url.query().map_or_else(|| parameter.clone(), |query| format!("{query}&{parameter}"));
        url.set_query(Some(&query));
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a password in the parameters stayed, so it was shown in `ps`, and counted after a rotation.
    #[test]
    fn a_password_is_found_wherever_it_may_be() {
        for (whole, rest, password) in [
            ("postgresql://me:p%40ss@h:5433/mine", "postgresql://me@h:5433/mine", Some("p@ss")),
            ("postgresql://me@h/mine?password=s%2Bt", "postgresql://me@h/mine", Some("s+t")),
            ("postgresql://me:old@h/mine?password=new", "postgresql://me@h/mine", Some("new")),
            ("postgresql://me@h/mine?pass%77ord=a+b&password=c", "postgresql://me@h/mine", Some("c")),
            (
                "postgresql://me@h/mine?options=-c%20a%3Db&password=p&application_name=a+b",
                "postgresql://me@h/mine?options=-c%20a%3Db&application_name=a+b",
                Some("p"),
            ),
            ("postgresql:///mine?user=me&password=p", "postgresql:///mine?user=me", Some("p")),
            ("postgresql:///mine", "postgresql:///mine", None),
            ("postgresql://me@h/mine?passfile=x", "postgresql://me@h/mine?passfile=x", None),
        ] {
            let url = Url::parse(whole).expect("a URL");
            let (found, secret) = split(&url);
            assert_eq!((found.as_str(), secret.as_deref()), (rest, password), "{whole}");
            let replaced = replace(&url, "n/w");
            assert_eq!(split(&replaced).1.as_deref(), Some("n/w"), "{replaced}");
            // The driver does not know all of libpq's parameters.
            if !whole.contains("passfile") {
                let config: tokio_postgres::Config = replaced.as_str().parse().expect("a connection");
                assert_eq!(config.get_password(), Some(b"n/w".as_slice()), "{replaced}");
            }
            assert_eq!(split(&replaced).0.as_str(), rest);
        }
    }
}
