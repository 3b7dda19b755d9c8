//! Authenticator data. Reference: W3C Web Authentication level 3, §6.1.

use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthenticatorData {
    /// SHA-256 of the relying party's id.
    pub rp_id_hash: [u8; 32],
    pub user_present: bool,
    pub user_verified: bool,
    pub backup_eligible: bool,
    pub backed_up: bool,
    pub sign_count: u32,
    pub attested: Option<AttestedCredential>,
}

/// A new credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttestedCredential {
    pub aaguid: Uuid,
    pub credential_id: Vec<u8>,
    /// A COSE key, as it came.
    pub public_key: Vec<u8>,
}

/// Ids longer than this are not stored.
const LONGEST_ID: usize = 1023;

impl AuthenticatorData {
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (rp_id_hash, rest) = bytes.split_first_chunk::<32>()?;
        let (&flags, rest) = rest.split_first()?;
        let (sign_count, rest) = rest.split_first_chunk::<4>()?;
        let is_set = |bit: u8| flags & (1 << bit) != 0;
        let (attested, rest) = if is_set(6) {
            let (attested, rest) = AttestedCredential::parse(rest)?;
            (Some(attested), rest)
        } else {
            (None, rest)
        };
        // Only announced extensions may follow.
        if is_set(7) {
            let mut rest = rest;
            ciborium::from_reader::<ciborium::Value, _>(&mut rest).ok()?;
            if !rest.is_empty() {
                return None;
            }
        } else if !rest.is_empty() {
            return None;
        }
        Some(Self {
            rp_id_hash: *rp_id_hash,
            user_present: is_set(0),
            user_verified: is_set(2),
            backup_eligible: is_set(3),
            backed_up: is_set(4),
            sign_count: u32::from_be_bytes(*sign_count),
            attested,
        })
    }
}

impl AttestedCredential {
    fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (aaguid, rest) = bytes.split_first_chunk::<16>()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let length = usize::from(u16::from_be_bytes(*length));
        if length == 0 || length > LONGEST_ID {
            return None;
        }
        let (credential_id, key) = rest.split_at_checked(length)?;
        let mut after = key;
        ciborium::from_reader::<ciborium::Value, _>(&mut after).ok()?;
        let public_key = key[..key.len() - after.len()].to_vec();
        Some((Self { aaguid: Uuid::from_bytes(*aaguid), credential_id: credential_id.to_vec(), public_key }, after))
    }
}
