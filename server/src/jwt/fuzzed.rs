//! Tokens and keys made of any bytes. `server/fuzz` and the properties below share these entry points.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use serde_json::Value;
use sha2::Sha256;

use super::secret::{SecretKey, unverified};
use super::{AcceptedKeys, KeySet, RolePath, verify};

/// Signs nothing that reaches these functions from outside.
const OURS: &str = "a secret of this file, longer than thirty-two bytes";

/// Keys, a header and claims, apart at line breaks: whatever they are, they are read or refused, and a signed token is taken
/// for its algorithm and without critical extensions alone.
pub fn token(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == b'\n');
    let mut part = || parts.next().unwrap_or_default();
    let (keys, header, claims) = (part(), part(), part());
    let ours = KeySet::from_secret(OURS.as_bytes());

    // Somebody else's token is never ours.
    for foreign in [header, claims, data] {
        let foreign = String::from_utf8_lossy(foreign);
        assert!(verify(&foreign, &ours).is_err(), "{foreign}");
        assert!(SecretKey::new(OURS).verify::<Value>(&foreign).is_err(), "{foreign}");
        let _ = (unverified(&foreign), RolePath::parse(&foreign), AcceptedKeys::parse(&foreign));
    }

    // With our signature under it.
    let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let Ok(mac) = Hmac::<Sha256>::new_from_slice(OURS.as_bytes()) else { return };
    let signature = URL_SAFE_NO_PAD.encode(mac.chain_update(&message).finalize().into_bytes());
    let signed = format!("{message}.{signature}");
    if let Ok(claims) = verify(&signed, &ours) {
        let header: Value = serde_json::from_slice(header).unwrap_or_default();
        assert!(header["alg"] == "HS256" && header.get("crit").is_none_or(Value::is_null), "{header}");
        let _ = (claims.check(1_700_000_000, Some("a")), claims.valid(None), claims.to_json_as("anon"));
        if let Ok(path) = RolePath::parse(".a.b[0]") {
            let _ = path.find(&claims);
        }
    }
    let _ = SecretKey::new(OURS).verify_in_time::<Value>(&signed, 1_700_000_000);

    // With keys of any kind.
    if let Ok(keys) = KeySet::parse(keys) {
        let _ = verify(&signed, &keys);
    }
    let _ = KeySet::parse_base64(&String::from_utf8_lossy(keys));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::{collection, sample};

    use super::token;

    fn pieces() -> impl Strategy<Value = Vec<u8>> {
        let known = sample::select(vec![
            r#"{"alg":"HS256","typ":"JWT"}"#,
            r#"{"alg":"HS256""#,
            r#","crit":["exp"]"#,
            r#","crit":null"#,
            r#","kid":"k""#,
            r#","alg":"none""#,
            r#""zip":"DEF""#,
            r#"{"kty":"oct","k":"AAAA","alg":"HS256"}"#,
            r#"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#,
            r#"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#,
            r#"{"kty":"OKP","crv":"Ed25519","x":"AA"}"#,
            r#"{"keys":["#,
            "]}",
            r#"{"role":"anon","exp":1700000000,"nbf":1e400,"iat":-1,"aud":["a",1]}"#,
            r#"{"exp":"#,
            "}",
            "\n",
            ".",
            "eyJhbGciOiJIUzI1NiJ9",
        ]);
        let piece =
            prop_oneof![3 => known.prop_map(|text| text.as_bytes().to_vec()), 1 => collection::vec(any::<u8>(), 0..8)];
        collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn random_bytes_are_neither_accepted_as_a_token_nor_cause_a_panic(data in pieces()) {
            token(&data);
        }
    }

    #[test]
    fn a_critical_extension_is_detected_in_a_signed_token() {
        token(b"\n{\"alg\":\"HS256\",\"crit\":[\"exp\"]}\n{\"role\":\"anon\"}");
        // Members that nobody reads have to be text, too.
        token(b"\n{\"alg\":\"HS256\",\"x\":\"\xef\"}\n{\"role\":\"anon\"}");
        token(b"{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\"}]}\n{\"alg\":\"HS256\"}\n{\"role\":\"anon\",\"exp\":1}");
    }
}
