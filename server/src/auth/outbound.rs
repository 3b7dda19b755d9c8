//! The client for URLs that administrators enter at run time: it reaches public addresses only.
//!
//! Names are checked when they are resolved for the connection, so that a second answer of a name server
//! cannot lead elsewhere; addresses written out are checked by [`check_url`].
//! Reference: supabase/auth `internal/utilities/url_validator.go`.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use super::error::{AuthError, AuthResult};

struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            if found.iter().any(|address| refusal(address.ip()).is_some()) {
                return Err("the name resolves to an address that is not public".into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// A client that follows no redirects and connects to public addresses only.
pub fn client() -> reqwest::Result<reqwest::Client> {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .dns_resolver(Arc::new(PublicOnly))
        .no_proxy()
        .build()
}

/// Why an address is not to be connected to.
fn refusal(address: IpAddr) -> Option<&'static str> {
    let address = match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4),
        v4 => v4,
    };
    let (private, link_local) = match address {
        IpAddr::V4(v4) => (v4.is_private(), v4.is_link_local()),
        IpAddr::V6(v6) => (v6.is_unique_local(), v6.is_unicast_link_local()),
    };
    if address.is_loopback() {
        Some("URL cannot resolve to loopback addresses")
    } else if private {
        Some("URL cannot resolve to private network addresses")
    } else if link_local {
        Some("URL cannot resolve to link-local addresses")
    } else if address.is_multicast() {
        Some("URL cannot resolve to multicast addresses")
    } else if address.is_unspecified() {
        Some("URL cannot resolve to unspecified addresses")
    } else {
        None
    }
}

/// Refuses URLs that are not https, or lead to this machine or a private network.
///
/// Errors: 400 `validation_failed`.
pub async fn check_url(text: &str) -> AuthResult<()> {
    let url = Url::parse(text).map_err(|_| {
        let relative = text.split(['/', '?', '#']).next().is_some_and(|start| !start.contains(':'));
        AuthError::invalid(if relative { "URL must use HTTPS" } else { "Invalid URL format" })
    })?;
    if url.scheme() != "https" {
        return Err(AuthError::invalid("URL must use HTTPS"));
    }
    let host = url.host().ok_or_else(|| AuthError::invalid("URL must have a valid hostname"))?;
    let addresses = match host {
        Host::Ipv4(v4) => vec![IpAddr::V4(v4)],
        Host::Ipv6(v6) => vec![IpAddr::V6(v6)],
        Host::Domain(name) if name == "localhost" || name.ends_with(".localhost") => {
            return Err(AuthError::invalid("URL cannot point to localhost or loopback addresses"));
        }
        Host::Domain(name) => tokio::net::lookup_host((name, 443))
            .await
            .map_err(|_| AuthError::invalid("Unable to resolve hostname"))?
            .map(|address| address.ip())
            .collect(),
    };
    let local = ["127.0.0.1", "::1", "0.0.0.0", "::"];
    let written = text.split("//").nth(1).unwrap_or("");
    if local.iter().any(|name| written.trim_start_matches('[').starts_with(name)) {
        return Err(AuthError::invalid("URL cannot point to localhost or loopback addresses"));
    }
    match addresses.into_iter().find_map(refusal) {
        Some(why) => Err(AuthError::invalid(why)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[actix_web::test]
    async fn only_public_https_urls_pass() {
        for bad in [
            "http://93.184.216.34/",
            "https://127.0.0.1/",
            "https://10.1.2.3/",
            "https://169.254.169.254/",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://2130706433/",
            "https://x.localhost/",
            "ftp://93.184.216.34",
            "not a url",
        ] {
            assert!(check_url(bad).await.is_err(), "{bad}");
        }
        assert!(check_url("https://93.184.216.34/auth").await.is_ok());
    }
}
