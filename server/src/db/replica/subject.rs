//! Whose writes a read has to see.

use std::net::IpAddr;

use sha2::{Digest, Sha256};

use crate::http::client::network;

/// Who reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    id: SubjectId,
    is_known: bool,
}

/// A subject among instances: the beginning of a hash. Two that share one see each other's writes sooner, nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubjectId(pub(super) u64);

impl Subject {
    /// The user of a token.
    pub fn user(sub: &str) -> Self {
        Self { id: SubjectId::of("user", sub), is_known: true }
    }

    /// A role whose tokens name no user, such as the service role: all that use it are one.
    pub fn role(role: &str) -> Self {
        Self { id: SubjectId::of("role", role), is_known: true }
    }

    /// A guest, known by the address alone. What another instance has heard of a guest arrives there a moment later.
    pub fn guest(address: Option<IpAddr>) -> Self {
        let address = address.map(|address| network(address).to_string()).unwrap_or_default();
        Self { id: SubjectId::of("guest", &address), is_known: false }
    }

    /// The subject of a request: its user, else its role; `None` if that is the anonymous one.
    pub fn named(sub: Option<&str>, role: &str, is_anonymous: bool) -> Option<Self> {
        match sub.filter(|sub| !sub.is_empty()) {
            Some(sub) => Some(Self::user(sub)),
            None if is_anonymous => None,
            None => Some(Self::role(role)),
        }
    }

    pub fn id(self) -> SubjectId {
        self.id
    }

    /// Whether it has to see its own writes at every instance at once.
    pub fn is_known(self) -> bool {
        self.is_known
    }
}

impl SubjectId {
    fn of(kind: &str, name: &str) -> Self {
        let hash = Sha256::new().chain_update(kind).chain_update([0]).chain_update(name).finalize();
        let mut first = [0; 8];
        first.copy_from_slice(&hash[..8]);
        Self(u64::from_be_bytes(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_identified_by_user_then_role_then_address() {
        let address: Option<IpAddr> = "192.0.2.7".parse().ok();
        assert_eq!(Subject::named(Some("u"), "authenticated", false), Some(Subject::user("u")));
        assert_eq!(Subject::named(Some("u"), "anon", true), Some(Subject::user("u")));
        assert_eq!(Subject::named(None, "service_role", false), Some(Subject::role("service_role")));
        assert_eq!(Subject::named(Some(""), "anon", true), None);
        assert_ne!(Subject::guest(address).id(), Subject::guest("192.0.2.8".parse().ok()).id());
        assert_ne!(Subject::user("anon").id(), Subject::role("anon").id());
        assert!(Subject::user("u").is_known() && !Subject::guest(address).is_known());
    }
}
