//! Links in mails. Reference: supabase/auth `internal/mailer/templatemailer/templatemailer.go` (`getPath`).

use url::Url;

/// What a link carries.
pub struct ActionLink<'a> {
    /// Path or URL that replaces the external URL's path.
    pub path: &'a str,
    pub token_hash: &'a str,
    /// `signup`, `invite`, `recovery`, `magiclink` or `email_change`.
    pub kind: &'a str,
    pub redirect_to: &'a str,
}

/// The link below `external`. `redirect_to` is percent-encoded only if it would break the query: callers of
/// upstream's API pass it both ways.
pub fn action_link(external: &Url, link: &ActionLink<'_>) -> String {
    let encode = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let redirect =
        if link.redirect_to.contains(['&', '=', '#']) { encode(link.redirect_to) } else { link.redirect_to.to_owned() };
    let base = match external.join(link.path) {
        Ok(mut url) => {
            url.set_query(None);
            url.set_fragment(None);
            url.to_string()
        }
        Err(_) => external.to_string(),
    };
    format!("{base}?token={}&type={}&redirect_to={redirect}", encode(link.token_hash), encode(link.kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_replaced_and_the_redirect_encoded_only_where_needed() {
        let external = Url::parse("https://api.example/auth/v1").expect("url");
        let link = |path, redirect_to| {
            action_link(&external, &ActionLink { path, token_hash: "abc", kind: "signup", redirect_to })
        };
        assert_eq!(
            link("/verify", "https://app.example"),
            "https://api.example/verify?token=abc&type=signup&redirect_to=https://app.example"
        );
        assert_eq!(
            link("https://links.example/in", "https://app.example/?a=1"),
            "https://links.example/in?token=abc&type=signup&redirect_to=https%3A%2F%2Fapp.example%2F%3Fa%3D1"
        );
    }
}
