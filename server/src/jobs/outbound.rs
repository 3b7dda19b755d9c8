//! Allowed targets of requests from the database. Every role can queue one, so outside of development private addresses
//! are refused unless they are named.

use std::net::SocketAddr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::outgoing::is_public;

/// Names that projects use for the API of their local stack.
const OURSELVES: [(&str, u16); 2] = [("host.docker.internal", 0), ("kong", 8000)];

#[derive(Clone, Debug)]
pub struct Outbound {
    /// Whether this machine and private networks are allowed.
    pub reaches_private: bool,
    /// Where this server's API listens.
    pub api: SocketAddr,
}

impl Outbound {
    /// The URL to request; the error says why it is refused.
    pub fn target(&self, url: &str) -> Result<url::Url, String> {
        let mut url = url::Url::parse(url).map_err(|_| "URL using bad/illegal format or missing URL".to_owned())?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("Protocol \"{}\" not supported", url.scheme()));
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        let port = url.port_or_known_default();
        let is_ours = OURSELVES.iter().any(|(name, at)| host == *name && (*at == 0 || port == Some(*at)))
            || (host.starts_with("supabase_kong_") && port == Some(8000));
        let is_our_port = host != "host.docker.internal" || port == Some(self.api.port());
        if self.reaches_private && is_ours && is_our_port {
            let _ = url.set_scheme("http");
            let _ = url.set_host(Some(&self.api.ip().to_string()));
            let _ = url.set_port(Some(self.api.port()));
        } else if self.reaches_private && is_ours {
            let _ = url.set_host(Some("127.0.0.1"));
        }
        if !self.reaches_private && is_private_literal(&url) {
            return Err(format!("requests to {host} are not made: it is an address of a private network"));
        }
        Ok(url)
    }
}

/// Whether the host is a non-public address. Names are checked when they are resolved.
pub fn is_private_literal(url: &url::Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => !is_public(address.into()),
        Some(url::Host::Ipv6(address)) => !is_public(address.into()),
        _ => false,
    }
}

/// Resolves names to public addresses only.
pub struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await?.filter(|address| is_public(address.ip())).collect();
            if found.is_empty() {
                return Err(format!("{} has no public address", name.as_str()).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outbound(reaches_private: bool) -> Outbound {
        Outbound { reaches_private, api: "127.0.0.1:54321".parse().expect("address") }
    }

    #[test]
    fn host_names_of_a_local_stack_refer_to_this_server() {
        for (url, target) in [
            ("http://host.docker.internal:54321/functions/v1/x", "http://127.0.0.1:54321/functions/v1/x"),
            ("http://kong:8000/rest/v1/", "http://127.0.0.1:54321/rest/v1/"),
            ("http://supabase_kong_app:8000/a?b=c", "http://127.0.0.1:54321/a?b=c"),
            ("http://host.docker.internal:3000/hook", "http://127.0.0.1:3000/hook"),
            ("https://example.com/x", "https://example.com/x"),
        ] {
            assert_eq!(outbound(true).target(url).expect(url).as_str(), target);
        }
    }

    #[test]
    fn in_production_private_addresses_are_never_contacted() {
        for url in [
            "http://127.0.0.1/",
            "http://10.1.2.3/",
            "http://[::1]/",
            "http://169.254.169.254/x",
            "http://[::ffff:10.0.0.1]/",
            "http://0/",
            "http://2130706433/",
            "file:///etc/passwd",
            "ftp://example.com/",
        ] {
            assert!(outbound(false).target(url).is_err(), "{url}");
        }
        assert!(outbound(false).target("https://93.184.215.14/").is_ok());
    }
}
