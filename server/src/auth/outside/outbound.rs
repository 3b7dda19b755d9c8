//! The HTTP client for providers. Those that administrators enter at run time are reached only at public addresses,
//! or at those in [`OutboundAllow`].
//!
//! Every request is checked, not only the entered URL, so that new endpoints in a document or a row from a dump cannot
//! bypass the check. Names are checked when they are resolved for the connection, so a changed DNS answer cannot
//! either. Redirects are not followed. Reference: supabase/auth `internal/utilities/url_validator.go`, which checks
//! when a provider is entered.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Method, RequestBuilder};
use url::{Host, Url};

use crate::auth::error::{AuthError, AuthResult, Fault};
use crate::config::OutboundAllow;
use crate::outgoing;

/// The authorities in a file of certificates (PEM).
///
/// Errors: the file cannot be read, or has none.
pub fn authorities(file: &Path) -> anyhow::Result<Vec<Certificate>> {
    let bytes = std::fs::read(file)?;
    let found = Certificate::from_pem_bundle(&bytes)?;
    anyhow::ensure!(!found.is_empty(), "there is no certificate in it");
    Ok(found)
}

/// Resolves a name.
type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// Sends requests to providers.
pub struct Outbound {
    client: Client,
    guard: Option<Guard>,
}

struct Guard {
    allow: Arc<OutboundAllow>,
    lookup: Lookup,
    /// Without checks of addresses, for origins allowed by name.
    trusting: Client,
}

impl Outbound {
    /// For URLs in the settings and built-in ones. `authorities` are trusted in addition to the system's.
    pub fn anywhere(authorities: &[Certificate]) -> reqwest::Result<Self> {
        let client = outgoing::client_trusting(authorities).redirect(Policy::none());
        Ok(Self { client: client.build()?, guard: None })
    }

    /// For URLs that administrators enter.
    pub fn guarded(allow: OutboundAllow, authorities: &[Certificate]) -> reqwest::Result<Self> {
        Self::with_lookup(
            allow,
            authorities,
            Arc::new(|name| {
                Box::pin(async move {
                    let found = tokio::net::lookup_host((name.as_str(), 443)).await?;
                    Ok(found.map(|address| address.ip()).collect())
                })
            }),
        )
    }

    fn with_lookup(allow: OutboundAllow, authorities: &[Certificate], lookup: Lookup) -> reqwest::Result<Self> {
        let allow = Arc::new(allow);
        let client = |only: Option<Arc<OutboundAllow>>| {
            outgoing::client_trusting(authorities)
                .redirect(Policy::none())
                .dns_resolver(Arc::new(Names { lookup: Arc::clone(&lookup), only }))
                .no_proxy()
                .build()
        };
        let (asking, trusting) = (client(Some(Arc::clone(&allow)))?, client(None)?);
        Ok(Self { client: asking, guard: Some(Guard { allow, lookup, trusting }) })
    }

    /// A GET of `url`, if it may be asked.
    pub fn get(&self, url: &str) -> Result<RequestBuilder, Fault> {
        self.request(Method::GET, url)
    }

    /// A POST to `url`, if it may be asked.
    pub fn post(&self, url: &str) -> Result<RequestBuilder, Fault> {
        self.request(Method::POST, url)
    }

    fn request(&self, method: Method, url: &str) -> Result<RequestBuilder, Fault> {
        let Some(guard) = &self.guard else { return Ok(self.client.request(method, url)) };
        let url = Url::parse(url).map_err(|error| Fault::new(format!("not a URL: {error}")))?;
        if guard.allow.has_origin_of(&url) {
            return Ok(guard.trusting.request(method, url));
        }
        let written = match url.host() {
            Some(Host::Ipv4(v4)) => guard.refusal(IpAddr::V4(v4)),
            Some(Host::Ipv6(v6)) => guard.refusal(IpAddr::V6(v6)),
            // Names are checked by their addresses, in `Names`.
            Some(Host::Domain(_)) | None => None,
        };
        let why = if url.scheme() == "https" { written } else { Some("URL must use HTTPS") };
        match why {
            Some(why) => Err(Fault::new(format!("{}: {why}", url.origin().ascii_serialization()))),
            None => Ok(self.client.request(method, url)),
        }
    }

    /// Refuses URLs that are not https, or lead to this machine or a private network, unless they are allowed.
    ///
    /// Errors: 400 `validation_failed`.
    pub async fn check(&self, text: &str) -> AuthResult<()> {
        let Some(guard) = &self.guard else { return Ok(()) };
        let url = Url::parse(text).map_err(|_| {
            let relative = text.split(['/', '?', '#']).next().is_some_and(|start| !start.contains(':'));
            AuthError::invalid(if relative { "URL must use HTTPS" } else { "Invalid URL format" })
        })?;
        // The database accepts only this spelling.
        if !text.starts_with("https://") {
            return Err(AuthError::invalid("URL must use HTTPS"));
        }
        if guard.allow.has_origin_of(&url) {
            return Ok(());
        }
        let host = url.host().ok_or_else(|| AuthError::invalid("URL must have a valid hostname"))?;
        let found = match host {
            Host::Ipv4(v4) => Ok(vec![IpAddr::V4(v4)]),
            Host::Ipv6(v6) => Ok(vec![IpAddr::V6(v6)]),
            Host::Domain(name) => (guard.lookup)(name.to_owned()).await,
        };
        let opened = found.as_ref().is_ok_and(|all| all.iter().all(|address| guard.allow.has_address(*address)));
        if !opened && url.host_str().is_some_and(is_this_machine) {
            return Err(AuthError::invalid(THIS_MACHINE));
        }
        let addresses = found.map_err(|_| AuthError::invalid("Unable to resolve hostname"))?;
        match addresses.into_iter().find_map(|address| guard.refusal(address)) {
            Some(why) => Err(AuthError::invalid(why)),
            None => Ok(()),
        }
    }
}

const THIS_MACHINE: &str = "URL cannot point to localhost or loopback addresses";

/// Names of this machine, and its usual addresses as written in URLs.
fn is_this_machine(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "[::1]" | "0.0.0.0" | "[::]") || host.ends_with(".localhost")
}

impl Guard {
    fn refusal(&self, address: IpAddr) -> Option<&'static str> {
        refusal(&self.allow, address)
    }
}

/// Resolves names for a connection.
struct Names {
    lookup: Lookup,
    /// Checks the addresses; `None` accepts any.
    only: Option<Arc<OutboundAllow>>,
}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let (found, only) = ((self.lookup)(name.as_str().to_owned()), self.only.clone());
        Box::pin(async move {
            let found = found.await?;
            if let Some(allow) = only
                && let Some(why) = found.iter().find_map(|address| refusal(&allow, *address))
            {
                return Err(why.into());
            }
            // The connection takes the URL's port.
            Ok(Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}

/// Why an address must not be connected to.
fn refusal(allow: &OutboundAllow, address: IpAddr) -> Option<&'static str> {
    if allow.has_address(address) {
        return None;
    }
    let address = match address {
        IpAddr::V6(v6) => match v6.segments() {
            // Addresses that a NAT64 translator (RFC 6052) or this machine maps to IPv4.
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                IpAddr::V4(Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low)))
            }
            _ => IpAddr::V6(v6).to_canonical(),
        },
        v4 => v4,
    };
    let (private, link_local) = match address {
        IpAddr::V4(v4) => {
            (v4.is_private() || is_special_v4(v4), v4.is_link_local() || matches!(v4.octets(), [224, 0, 0, _]))
        }
        IpAddr::V6(v6) => (
            v6.is_unique_local() || is_special_v6(v6),
            v6.is_unicast_link_local() || matches!(v6.octets(), [0xff, scope, ..] if scope & 15 == 2),
        ),
    };
    if address.is_loopback() {
        Some("URL cannot resolve to loopback addresses")
    } else if address.is_unspecified() {
        Some("URL cannot resolve to unspecified addresses")
    } else if private {
        Some("URL cannot resolve to private network addresses")
    } else if link_local {
        Some("URL cannot resolve to link-local addresses")
    } else if address.is_multicast() {
        Some("URL cannot resolve to multicast addresses")
    } else {
        None
    }
}

/// Networks that are not public, though not called "private". Source: IANA's registry of special-purpose IPv4
/// addresses, without the unrouted networks for documentation.
fn is_special_v4(address: Ipv4Addr) -> bool {
    match address.octets() {
        // "This network", which some systems take for this machine; reserved, and broadcast.
        [0 | 240..=255, ..] => true,
        // Carriers' and overlay networks; protocol assignments: clouds have their metadata in both.
        [100, 64..=127, ..] | [192, 0, 0, _] => true,
        // Tests of network devices.
        [198, 18..=19, ..] => true,
        _ => false,
    }
}

/// Networks local to a site, and those that embed any IPv4 address.
fn is_special_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // IPv4-compatible (RFC 4291 §2.5.5.1), 6to4 (RFC 3056), local NAT64 (RFC 8215).
        [0, 0, 0, 0, 0, 0, ..] | [0x2002, ..] | [0x64, 0xff9b, 1, ..] => true,
        // Site-local (RFC 3879).
        [0xfec0..=0xfeff, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use parking_lot::Mutex;
    use tokio::net::TcpListener;

    use super::*;
    use crate::config::{AuthConfig, AuthMode, Reader, Source};

    fn allow(entries: &str) -> OutboundAllow {
        let source = Source::from_pairs([("FERROBASE_OUTBOUND_ALLOW", entries)]);
        AuthConfig::read(&mut Reader::new(&source), AuthMode::DropIn).outbound_allow
    }

    /// An [`Outbound`] whose names resolve to the answers in turn; the last one is repeated.
    fn outbound(entries: &str, answers: &[&[&str]]) -> Outbound {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let parse = |text: &&str| text.parse::<IpAddr>().expect("address");
        let answers: VecDeque<Vec<IpAddr>> = answers.iter().map(|all| all.iter().map(parse).collect()).collect();
        let answers = Arc::new(Mutex::new(answers));
        let lookup: Lookup = Arc::new(move |_| {
            let mut answers = answers.lock();
            let next = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
            Box::pin(async move { next.ok_or_else(|| io::Error::other("no such name")) })
        });
        Outbound::with_lookup(allow(entries), &[], lookup).expect("a client")
    }

    /// A port of this machine.
    async fn port() -> (TcpListener, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("address").port();
        (listener, port)
    }

    /// Why a request was refused, or `None` if it reached the port.
    async fn refused(request: RequestBuilder, port: &TcpListener) -> Option<String> {
        tokio::select! {
            answer = request.send() => Some(format!("{:?}", answer.expect_err("nobody answers there"))),
            came = port.accept() => came.map(|_| None).expect("the port is open"),
        }
    }

    const LOOPBACK: &str = "URL cannot resolve to loopback addresses";
    const PRIVATE: &str = "URL cannot resolve to private network addresses";
    const LINK_LOCAL: &str = "URL cannot resolve to link-local addresses";
    const MULTICAST: &str = "URL cannot resolve to multicast addresses";
    const UNSPECIFIED: &str = "URL cannot resolve to unspecified addresses";

    /// Examples of every refused kind of address.
    const CLOSED: [(&str, &str); 36] = [
        ("127.0.0.1", LOOPBACK),
        ("127.8.8.8", LOOPBACK),
        ("::1", LOOPBACK),
        ("::ffff:127.0.0.1", LOOPBACK),
        ("64:ff9b::7f00:1", LOOPBACK),
        ("10.1.2.3", PRIVATE),
        ("172.16.0.1", PRIVATE),
        ("172.31.255.255", PRIVATE),
        ("192.168.1.1", PRIVATE),
        ("100.100.100.200", PRIVATE),
        ("fd00:ec2::254", PRIVATE),
        ("::ffff:10.0.0.1", PRIVATE),
        ("64:ff9b::a00:1", PRIVATE),
        ("64:ff9b::c000:c0", PRIVATE),
        ("64:ff9b:1::5db8:d822", PRIVATE),
        ("64:ff9b:1:5db8:d8:2200::", PRIVATE),
        ("2002:7f00:1::", PRIVATE),
        ("2002:5db8:d822::1", PRIVATE),
        ("::7f00:1", PRIVATE),
        ("::5db8:d822", PRIVATE),
        ("fec0::1", PRIVATE),
        ("feff::1", PRIVATE),
        ("0.0.0.1", PRIVATE),
        ("0.255.255.255", PRIVATE),
        ("192.0.0.192", PRIVATE),
        ("198.19.255.255", PRIVATE),
        ("240.0.0.1", PRIVATE),
        ("255.255.255.255", PRIVATE),
        ("169.254.169.254", LINK_LOCAL),
        ("fe80::1", LINK_LOCAL),
        ("224.0.0.1", LINK_LOCAL),
        ("ff02::1", LINK_LOCAL),
        ("239.1.1.1", MULTICAST),
        ("ff0e::1", MULTICAST),
        ("0.0.0.0", UNSPECIFIED),
        ("::", UNSPECIFIED),
    ];

    fn url_of(address: &str) -> String {
        if address.contains(':') { format!("https://[{address}]/x") } else { format!("https://{address}/x") }
    }

    #[actix_web::test]
    async fn only_public_addresses_are_accepted_and_contacted() {
        for (address, why) in CLOSED {
            assert_eq!(refusal(&OutboundAllow::default(), address.parse().expect("address")), Some(why), "{address}");
            let written = outbound("", &[]);
            assert!(written.check(&url_of(address)).await.is_err(), "{address}");
            let asked = written.get(&url_of(address)).map(|_| ()).expect_err(address).to_string();
            assert!(asked.ends_with(why), "{address}: {asked}");
            // … nor by a name with other, public addresses.
            let named = outbound("", &[&["93.184.216.34", address]]);
            assert_eq!(named.check("https://name.example/").await.expect_err(address).message(), why, "{address}");
            let lookup = named.guard.as_ref().map(|guard| Arc::clone(&guard.lookup)).expect("a guard");
            let names = Names { lookup, only: Some(Arc::default()) };
            let resolved = names.resolve("name.example".parse().expect("a name")).await;
            assert_eq!(resolved.err().expect(address).to_string(), why, "{address}");
        }
        for open in [
            "93.184.216.34",
            "1.0.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.255.255",
            "198.20.0.1",
            "2606:4700::1111",
            "2003::1",
            "64:ff9b::5db8:d822",
        ] {
            assert_eq!(refusal(&OutboundAllow::default(), open.parse().expect("address")), None, "{open}");
            let written = outbound("", &[]);
            assert!(written.check(&url_of(open)).await.is_ok() && written.get(&url_of(open)).is_ok(), "{open}");
        }
    }

    #[actix_web::test]
    async fn only_https_urls_are_accepted_and_contacted() {
        let outbound = outbound("", &[&["93.184.216.34"]]);
        for (bad, why) in [
            ("http://93.184.216.34/", "URL must use HTTPS"),
            ("HTTPS://93.184.216.34/", "URL must use HTTPS"),
            ("ftp://name.example", "URL must use HTTPS"),
            ("name.example/auth", "URL must use HTTPS"),
            ("https://", "Invalid URL format"),
            ("https://localhost/", THIS_MACHINE),
            ("https://x.localhost:8443/", THIS_MACHINE),
            ("https://127.0.0.1/", THIS_MACHINE),
            ("https://2130706433/", THIS_MACHINE),
            ("https://0x7f.1/", THIS_MACHINE),
            ("https://[::]/", THIS_MACHINE),
        ] {
            assert_eq!(outbound.check(bad).await.expect_err(bad).message(), why, "{bad}");
        }
        for bad in ["http://93.184.216.34/", "http://name.example/", "file:///etc/passwd", "name.example", ""] {
            assert!(outbound.get(bad).is_err() && outbound.post(bad).is_err(), "{bad}");
        }
        assert!(outbound.check("https://name.example/auth").await.is_ok());
    }

    #[actix_web::test]
    async fn a_name_that_resolves_differently_later_is_not_followed() {
        let (listener, port) = port().await;
        let outbound = outbound("", &[&["93.184.216.34"], &["127.0.0.1"]]);
        let url = format!("https://rebound.example:{port}/token");
        assert!(outbound.check(&url).await.is_ok(), "it was public when it was entered");
        let why = refused(outbound.post(&url).expect("a name"), &listener).await.expect("nobody comes");
        assert!(why.contains(LOOPBACK), "{why}");
    }

    #[actix_web::test]
    async fn an_entry_allows_nothing_else() {
        let ((open, there), (closed, elsewhere)) = (port().await, port().await);
        let entries = format!("127.0.0.1:{elsewhere},keycloak.internal:{there},10.20.0.0/16");
        let outbound = outbound(&entries, &[&["127.0.0.1"]]);
        for (url, wanted) in [
            (format!("https://127.0.0.1:{elsewhere}/x"), true),
            (format!("https://127.0.0.1:{there}/x"), false),
            (format!("http://127.0.0.1:{elsewhere}/x"), false),
            ("https://127.0.0.1/x".to_owned(), false),
            (format!("https://[::ffff:127.0.0.1]:{elsewhere}/x"), false),
            (format!("http://keycloak.internal:{there}/x"), false),
            ("https://10.20.3.4/x".to_owned(), true),
            ("http://10.20.3.4/x".to_owned(), false),
            ("https://10.21.3.4/x".to_owned(), false),
            ("https://192.168.0.1/x".to_owned(), false),
        ] {
            assert_eq!(outbound.get(&url).is_ok(), wanted, "{url}");
            assert_eq!(outbound.check(&url).await.is_ok(), wanted, "{url}");
        }
        // Another port of the name, and another name for the address, are still checked.
        for (url, port) in [
            (format!("https://keycloak.internal:{elsewhere}/"), &closed),
            (format!("https://other.example:{there}/"), &open),
        ] {
            assert!(outbound.check(&url).await.is_err(), "{url}");
            assert!(refused(outbound.get(&url).expect("a name"), port).await.is_some(), "{url}");
        }
        // The allowed name is reached, wherever it resolves to.
        let url = format!("https://keycloak.internal:{there}/");
        assert!(outbound.check(&url).await.is_ok());
        assert_eq!(refused(outbound.get(&url).expect("open"), &open).await, None);
    }

    #[actix_web::test]
    async fn a_local_host_name_is_accepted_only_if_its_addresses_are_allowed() {
        for (entries, addresses, wanted) in [
            ("127.0.0.0/8", &["127.0.0.1"][..], true),
            ("127.0.0.0/8", &["127.0.0.1", "::1"], false),
            ("127.0.0.0/8,::1/128", &["127.0.0.1", "::1"], true),
            ("10.0.0.0/8", &["127.0.0.1"], false),
            ("", &["127.0.0.1"], false),
        ] {
            let (listener, port) = port().await;
            let outbound = outbound(entries, &[addresses]);
            for name in ["localhost", "keycloak.localhost"] {
                let url = format!("https://{name}:{port}/");
                let entered = outbound.check(&url).await.map_err(|error| error.message().to_owned());
                assert_eq!(entered, if wanted { Ok(()) } else { Err(THIS_MACHINE.to_owned()) }, "{entries} {url}");
                let refused = refused(outbound.get(&url).expect("a name"), &listener).await;
                assert_eq!(refused.is_none(), wanted, "{entries} {url}: {refused:?}");
            }
        }
    }
}
