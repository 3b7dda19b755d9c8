//! The text that a wallet signs. Reference: EIP-4361; Solana's version differs in names and addresses only.

use chrono::{DateTime, Utc};
use url::Url;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    Solana,
    Ethereum,
}

impl Chain {
    /// As requests and identities spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Solana => "solana",
            Self::Ethereum => "ethereum",
        }
    }

    /// As messages and people spell it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Solana => "Solana",
            Self::Ethereum => "Ethereum",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Solana => "siws",
            Self::Ethereum => "siwe",
        }
    }

    fn is_address(self, text: &str) -> bool {
        match self {
            Self::Solana => (32..=44).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric()),
            Self::Ethereum => text
                .strip_prefix("0x")
                .is_some_and(|digits| digits.len() == 40 && digits.bytes().all(|b| b.is_ascii_hexdigit())),
        }
    }

    fn is_network(self, text: &str) -> bool {
        match self {
            Self::Solana => {
                text.is_empty()
                    || matches!(text, "solana:mainnet" | "solana:devnet" | "solana:testnet" | "solana:localnet")
            }
            Self::Ethereum => text.parse::<i64>().is_ok_and(|id| id > 0),
        }
    }
}

/// A well-formed message. Signature, site and time are not checked yet.
#[derive(Clone, Debug)]
pub struct SignedMessage {
    pub chain: Chain,
    pub raw: String,
    pub domain: String,
    pub address: String,
    /// `None` for an Ethereum message without one; Solana's is then empty.
    pub statement: Option<String>,
    /// `None` for a path, which has no host.
    pub uri: Option<Url>,
    pub uri_text: String,
    pub chain_id: String,
    pub issued_at: DateTime<Utc>,
    pub expiration_time: Option<DateTime<Utc>>,
    pub not_before: Option<DateTime<Utc>>,
}

/// A host name with an optional port: letters, digits and inner hyphens, and a last label of letters.
fn is_domain(text: &str) -> bool {
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    if port.is_some_and(|port| !(1..=5).contains(&port.len()) || !port.bytes().all(|b| b.is_ascii_digit())) {
        return false;
    }
    if host == "localhost" {
        return true;
    }
    let labels: Vec<&str> = host.split('.').collect();
    let Some((last, first)) = labels.split_last() else { return false };
    !first.is_empty()
        && last.len() >= 2
        && last.bytes().all(|b| b.is_ascii_alphabetic())
        && first.iter().all(|label| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        })
}

/// A URL with a scheme, or a path from the root, as a request line may carry it.
fn is_request_uri(text: &str) -> bool {
    text.starts_with('/') || Url::parse(text).is_ok()
}

impl SignedMessage {
    /// Reads a message; the error's text is for the caller.
    pub fn parse(chain: Chain, raw: &str) -> Result<Self, String> {
        let fault = |what: &str| format!("{}: {what}", chain.prefix());
        let lines: Vec<&str> = raw.split('\n').collect();
        if lines.len() < 6 {
            return Err(fault("message needs at least 6 lines"));
        }
        let suffix = format!(" wants you to sign in with your {} account:", chain.title());
        let domain = lines[0]
            .strip_suffix(&suffix)
            .ok_or_else(|| fault(&format!("message first line does not end in \"{suffix}\"")))?
            .trim();
        if !is_domain(domain) {
            return Err(fault("domain in first line of message is not valid"));
        }
        let address = lines[1].trim();
        if !chain.is_address(address) {
            return Err(fault(match chain {
                Chain::Solana => "wallet address is not in base58 format",
                Chain::Ethereum => "wallet address is not a valid Ethereum address",
            }));
        }
        if !lines[2].is_empty() {
            return Err(fault("third line must be empty"));
        }
        let has_statement = !lines[3].is_empty() && lines[4].is_empty();
        let statement = if has_statement { Some(lines[3].to_owned()) } else { None };
        let fields = Fields::read(chain, &lines, if has_statement { 5 } else { 3 })?;
        if fields.version != "1" {
            return Err(fault(&format!("Version value is not supported, expected 1 got {:?}", fields.version)));
        }
        let issued_at = fields.issued_at.ok_or_else(|| fault("Issued At is not specified"))?;
        let uri_text = fields.uri.ok_or_else(|| fault("URI is not specified"))?;
        if fields.expiration_time.is_some_and(|end| issued_at > end) {
            return Err(fault("Issued At is after Expiration Time"));
        }
        if fields.not_before.zip(fields.expiration_time).is_some_and(|(start, end)| start > end) {
            return Err(fault("Not Before is after Expiration Time"));
        }
        Ok(Self {
            chain,
            raw: raw.to_owned(),
            domain: domain.to_owned(),
            address: address.to_owned(),
            statement: if chain == Chain::Solana { Some(statement.unwrap_or_default()) } else { statement },
            uri: Url::parse(&uri_text).ok(),
            uri_text,
            chain_id: fields.chain_id,
            issued_at,
            expiration_time: fields.expiration_time,
            not_before: fields.not_before,
        })
    }
}

/// The lines `Name: value`.
#[derive(Default)]
struct Fields {
    uri: Option<String>,
    version: String,
    chain_id: String,
    issued_at: Option<DateTime<Utc>>,
    expiration_time: Option<DateTime<Utc>>,
    not_before: Option<DateTime<Utc>>,
}

impl Fields {
    fn read(chain: Chain, lines: &[&str], start: usize) -> Result<Self, String> {
        let fault = |what: &str| format!("{}: {what}", chain.prefix());
        let instant = |name: &str, text: &str| {
            DateTime::parse_from_rfc3339(text)
                .map(|at| at.to_utc())
                .map_err(|_| fault(&format!("{name} is not a valid ISO8601 timestamp")))
        };
        let mut fields = Self::default();
        let (mut in_resources, mut resources) = (false, 0);
        for (index, line) in lines.iter().enumerate().skip(start) {
            let line = line.trim();
            if in_resources && let Some(resource) = line.strip_prefix("- ") {
                if !is_request_uri(resource.trim()) {
                    return Err(fault(&format!("Resource at position {resources} has invalid URI")));
                }
                resources += 1;
                continue;
            }
            in_resources = line == "Resources:";
            if in_resources || line.is_empty() {
                continue;
            }
            let (name, value) =
                line.split_once(':').ok_or_else(|| fault(&format!("encountered unparsable line at index {index}")))?;
            let value = value.trim();
            match name {
                "URI" if is_request_uri(value) => fields.uri = Some(value.to_owned()),
                "URI" => return Err(fault("URI is not valid")),
                "Version" => fields.version = value.to_owned(),
                "Chain ID" if chain.is_network(value) => fields.chain_id = value.to_owned(),
                "Chain ID" => return Err(fault("Chain ID is not valid")),
                "Issued At" => fields.issued_at = Some(instant(name, value)?),
                "Expiration Time" => fields.expiration_time = Some(instant(name, value)?),
                "Not Before" => fields.not_before = Some(instant(name, value)?),
                // Nonces and request ids are for the application; other names are ignored.
                _ => {}
            }
        }
        Ok(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: &str = "0x00000000000000000000000000000000000000AA";

    fn message(extra: &str) -> String {
        format!(
            "app.example wants you to sign in with your Ethereum account:\n{ADDRESS}\n\nHello\n\nURI: https://app.example/\n\
             Version: 1\nChain ID: 1\nIssued At: 2026-01-01T00:00:00Z{extra}"
        )
    }

    #[test]
    fn a_message_is_read_line_by_line() {
        let read = SignedMessage::parse(Chain::Ethereum, &message("\nResources:\n- https://a.example/x")).expect("ok");
        assert_eq!((read.domain.as_str(), read.address.as_str()), ("app.example", ADDRESS));
        assert_eq!(read.statement.as_deref(), Some("Hello"));
    }

    #[test]
    fn errors_name_the_problem() {
        for (text, wanted) in [
            ("x".repeat(80), "siwe: message needs at least 6 lines"),
            (message("\nnonsense"), "siwe: encountered unparsable line at index 9"),
            (message("\nChain ID: 0"), "siwe: Chain ID is not valid"),
            (message("\nVersion: 2"), "siwe: Version value is not supported, expected 1 got \"2\""),
            (message("\nExpiration Time: 2025-01-01T00:00:00Z"), "siwe: Issued At is after Expiration Time"),
            (message("\nResources:\n- nowhere"), "siwe: Resource at position 0 has invalid URI"),
            (
                message("").replace("app.example wants", "-bad wants"),
                "siwe: domain in first line of message is not valid",
            ),
        ] {
            assert_eq!(SignedMessage::parse(Chain::Ethereum, &text).err().as_deref(), Some(wanted));
        }
    }
}
