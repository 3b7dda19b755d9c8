//! The keys and claims of access tokens: `GOTRUE_JWT_*`.

use crate::config::{Reader, Secret};
use crate::jwt::AcceptedKeys;

#[derive(Clone, Debug)]
pub struct JwtConfig {
    /// `GOTRUE_JWT_SECRET`/`JWT_SECRET`.
    pub secret: Secret,
    /// `GOTRUE_JWT_KEYS`: JSON array of private JWKs, exactly one with `sign` in `key_ops`.
    pub keys: Option<Secret>,
    /// `GOTRUE_JWT_KEY_ID`: `kid` of tokens signed with the secret.
    pub key_id: String,
    /// `FERROBASE_ACCEPTED_KEYS`: former keys and those that come next.
    pub accepted: Vec<AcceptedKeys>,
    /// `GOTRUE_JWT_VALID_METHODS`; `None`: the algorithms of the configured keys.
    pub valid_methods: Option<Vec<String>>,
    /// `GOTRUE_JWT_EXP`/`JWT_EXPIRY`, default 3600 s.
    pub exp: u32,
    /// `GOTRUE_JWT_AUD`, default empty in a drop-in, `authenticated` in the full server.
    pub aud: String,
    /// `GOTRUE_JWT_DEFAULT_GROUP_NAME`: role of new users; default as `aud`.
    pub default_group_name: String,
    /// `GOTRUE_JWT_ADMIN_GROUP_NAME`, default `admin`.
    pub admin_group_name: String,
    /// `GOTRUE_JWT_ADMIN_ROLES`, default service_role and supabase_admin.
    pub admin_roles: Vec<String>,
    /// `GOTRUE_JWT_ISSUER`; default empty in a drop-in, `<external URL>/auth/v1` in the full server.
    pub issuer: String,
}

impl JwtConfig {
    pub(super) fn read(reader: &mut Reader<'_>, full: bool, external_url: &str) -> Self {
        let secret = reader.secret(&["GOTRUE_JWT_SECRET", "JWT_SECRET"]).unwrap_or_else(|| {
            if !full {
                reader.problem("GOTRUE_JWT_SECRET is not set");
            }
            Secret::new(if full { crate::config::DEVELOPMENT_JWT_SECRET } else { "" })
        });
        let exp = reader.parse_or(&["GOTRUE_JWT_EXP", "JWT_EXPIRY"], "a whole number of seconds", 3600_u32);
        let everyone = if full { "authenticated" } else { "" };
        let base = external_url.trim_end_matches('/').trim_end_matches("/auth/v1");
        let issuer = if full { format!("{base}/auth/v1") } else { String::new() };
        let admin_roles = reader.list(&["GOTRUE_JWT_ADMIN_ROLES"]).filter(|l| !l.is_empty());
        Self {
            secret,
            keys: reader.secret(&["GOTRUE_JWT_KEYS"]),
            accepted: reader.accepted_keys(),
            key_id: reader.text_or(&["GOTRUE_JWT_KEY_ID"], ""),
            valid_methods: reader.list(&["GOTRUE_JWT_VALID_METHODS", "GOTRUE_JWT_VALIDMETHODS"]),
            exp: if exp == 0 { 3600 } else { exp },
            aud: reader.text_or(&["GOTRUE_JWT_AUD"], everyone),
            default_group_name: reader.text_or(&["GOTRUE_JWT_DEFAULT_GROUP_NAME"], everyone),
            admin_group_name: reader.text_or(&["GOTRUE_JWT_ADMIN_GROUP_NAME"], "admin"),
            admin_roles: admin_roles.unwrap_or_else(|| vec!["service_role".into(), "supabase_admin".into()]),
            issuer: reader.text_or(&["GOTRUE_JWT_ISSUER"], &issuer),
        }
    }
}
