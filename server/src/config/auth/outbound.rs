//! Non-public addresses allowed in administrators' URLs: `FERROBASE_OUTBOUND_ALLOW`.

use std::net::IpAddr;

use url::{Host, Origin, Url};

use crate::config::Reader;

/// The allowed private addresses of custom providers, by default none. Supabase Auth has no such setting.
///
/// Each entry allows exactly what it names:
///
/// - `host:port` or `https://host:port` (443 where no port is named): that host and port, whatever addresses the name
///   has;
/// - a network such as `10.20.0.0/16` or `fd12::/64`: its addresses, written out or found by name, at any port.
///
/// Allowed addresses are still reached over https only.
#[derive(Clone, Debug, Default)]
pub struct OutboundAllow {
    origins: Vec<Origin>,
    /// Address and length of the prefix in bits.
    networks: Vec<(IpAddr, u32)>,
}

impl OutboundAllow {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let mut allow = Self::default();
        for entry in reader.list(&["FERROBASE_OUTBOUND_ALLOW"]).unwrap_or_default() {
            match (network(&entry), origin(&entry)) {
                (Some(network), _) => allow.networks.push(network),
                (None, Some(origin)) => allow.origins.push(origin),
                (None, None) => reader.problem(format!(
                    "FERROBASE_OUTBOUND_ALLOW: '{entry}' is neither host:port nor a network such as 10.20.0.0/16"
                )),
            }
        }
        allow
    }

    /// Whether `url` is https and its host and port are an entry.
    pub fn has_origin_of(&self, url: &Url) -> bool {
        // A `blob:` URL has the origin of the URL within.
        url.scheme() == "https" && self.origins.contains(&url.origin())
    }

    /// Whether a network of the entries has `address`.
    pub fn has_address(&self, address: IpAddr) -> bool {
        let bits = |address: IpAddr| match address.to_canonical() {
            IpAddr::V4(v4) => (true, u128::from(v4.to_bits()) << 96),
            IpAddr::V6(v6) => (false, v6.to_bits()),
        };
        let (is_v4, wanted) = bits(address);
        self.networks.iter().any(|(network, prefix)| {
            let (same_kind, network) = bits(*network);
            same_kind == is_v4 && (network ^ wanted).checked_shr(128 - prefix).unwrap_or(0) == 0
        })
    }
}

/// `address/prefix`, the address without a bit beyond its prefix.
fn network(entry: &str) -> Option<(IpAddr, u32)> {
    let (address, prefix) = entry.split_once('/')?;
    let (address, prefix): (IpAddr, u32) = (address.parse().ok()?, prefix.parse().ok()?);
    let (length, bits) = match address {
        IpAddr::V4(v4) => (32, u128::from(v4.to_bits()) << 96),
        IpAddr::V6(v6) => (128, v6.to_bits()),
    };
    let is_whole = prefix <= length && bits.checked_shl(prefix).unwrap_or(0) == 0;
    (is_whole && address == address.to_canonical()).then_some((address, prefix))
}

/// `[https://]host[:port]` and nothing more.
fn origin(entry: &str) -> Option<Origin> {
    let place = match entry.strip_prefix("https://") {
        Some(rest) => rest.strip_suffix('/').unwrap_or(rest),
        None => entry,
    };
    if place.contains(['/', '\\', '?', '#', '@']) {
        return None;
    }
    let url = Url::parse(&format!("https://{place}")).ok()?;
    let is_name = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'));
    let is_named = match url.host()? {
        Host::Domain(name) => is_name(name),
        // Short forms (10.1), single numbers, octal and hexadecimal digits are refused, because they may not mean the
        // intended address.
        Host::Ipv4(v4) => place.split(':').next().and_then(|host| host.parse().ok()) == Some(v4),
        Host::Ipv6(_) => true,
    };
    is_named.then(|| url.origin())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Problems, Source};

    fn read(value: &str) -> Result<OutboundAllow, Problems> {
        let source = Source::from_pairs([("FERROBASE_OUTBOUND_ALLOW", value)]);
        let mut reader = Reader::new(&source);
        let allow = OutboundAllow::read(&mut reader);
        reader.finish(allow)
    }

    #[test]
    fn an_entry_allows_only_itself() {
        let allow =
            read("keycloak.internal:8443, https://10.0.0.7:8080,[fd00::1]:8443,auth.lan,10.20.0.0/16,fd12::/64")
                .expect("entries");
        for (url, wanted) in [
            ("https://keycloak.internal:8443/realms/x", true),
            ("https://KEYCLOAK.internal:8443", true),
            ("http://keycloak.internal:8443", false),
            ("blob:https://keycloak.internal:8443/x", false),
            ("https://keycloak.internal", false),
            ("https://keycloak.internal.evil.example:8443", false),
            ("https://evil.keycloak.internal:8443", false),
            ("https://10.0.0.7:8080/", true),
            ("http://10.0.0.7:8080/", false),
            ("https://10.0.0.7:8081/", false),
            ("https://10.0.0.7/", false),
            ("https://10.0.0.70:8080/", false),
            ("https://[fd00::1]:8443/", true),
            ("https://[fd00::2]:8443/", false),
            ("https://auth.lan/", true),
            ("https://auth.lan:8443/", false),
            ("https://10.20.0.1/", false),
        ] {
            assert_eq!(allow.has_origin_of(&Url::parse(url).expect("url")), wanted, "{url}");
        }
        for (address, wanted) in [
            ("10.20.0.1", true),
            ("10.20.255.255", true),
            ("::ffff:10.20.0.1", true),
            ("10.21.0.0", false),
            ("10.19.255.255", false),
            ("10.0.0.7", false),
            ("fd12::1", true),
            ("fd12:0:0:1::1", false),
            ("fd00::1", false),
            ("::1", false),
        ] {
            assert_eq!(allow.has_address(address.parse().expect("address")), wanted, "{address}");
        }
    }

    #[test]
    fn without_entries_nothing_is_allowed_and_whole_families_only_by_name() {
        let address = |text: &str| text.parse::<IpAddr>().expect("address");
        let (none, v4) = (read("").expect("none"), read("0.0.0.0/0").expect("all of one family"));
        assert!(!none.has_address(address("10.0.0.1")) && !none.has_origin_of(&Url::parse("https://a").expect("url")));
        assert!(v4.has_address(address("10.0.0.1")) && !v4.has_address(address("fd00::1")));
    }

    #[test]
    fn invalid_entries_are_problems() {
        for bad in [
            "10.0.0.0/33",
            "10.0.0.1/8",
            "fd00::1/64",
            "10.0.0.0/4294967295",
            "::ffff:10.0.0.0/104",
            "10.0.0.0/",
            "10.0.0/8",
            "host/8",
            "fd00::1",
            "10.1:8443",
            "1234",
            "0x7f000001:8443",
            "https://010.0.0.7:8443",
            "10.0.0.7.",
            "*.internal",
            "keycloak:port",
            "keycloak:99999",
            "https://keycloak/realms",
            "https://keycloak?x",
            "https://keycloak#x",
            "https://user@keycloak",
            "http://keycloak:8080",
            "ftp://keycloak",
            "https://",
            "two hosts",
        ] {
            let problems = read(&format!("fine:8443,{bad}")).map(|allow| format!("{allow:?}")).expect_err(bad);
            assert!(problems.to_string().contains(&format!("'{bad}'")), "{problems}");
        }
    }
}
