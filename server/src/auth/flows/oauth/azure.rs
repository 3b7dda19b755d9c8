//! Microsoft's issuers: which tenants' tokens are accepted, depending on the endpoints. Reference:
//! supabase/auth `internal/api/provider/azure.go`.

use url::Url;
use uuid::Uuid;

use super::oidc::{is_azure, is_azure_ciam};

/// Whether tokens of `issuer` are accepted from the token endpoint below `base`, a URL without a trailing slash.
///
/// Endpoints of one tenant are accepted for that tenant only, common endpoints for all tenants. Other endpoints (Azure
/// AD B2C, national clouds, custom domains) are also accepted for issuers at their own address and for tenants of
/// External ID; upstream accepts any issuer from them.
pub fn takes(base: &str, issuer: &str) -> bool {
    let expected = format!("{base}/v2.0");
    let of_all = ["common", "organizations"].iter().any(|all| expected.ends_with(&format!("/{all}/v2.0")));
    if is_azure_ciam(&expected) || (is_azure(&expected) && !of_all) {
        return issuer == expected;
    }
    is_azure(issuer) || (!is_azure(&expected) && (is_azure_ciam(issuer) || is_at_same_origin(base, issuer)))
}

/// The tenant id in `base`. Microsoft also accepts a domain there, but tokens contain the id.
pub fn tenant_of_endpoints(base: &str) -> Option<Uuid> {
    base.trim_end_matches('/').strip_prefix("https://login.microsoftonline.com/")?.parse().ok()
}

/// The tenant of an issuer, including the older issuer format.
pub fn tenant_of_issuer(issuer: &str) -> Option<Uuid> {
    let rest = issuer
        .strip_prefix("https://login.microsoftonline.com/")
        .or_else(|| issuer.strip_prefix("https://sts.windows.net/"))?;
    rest.split('/').next()?.parse().ok()
}

fn is_at_same_origin(one: &str, other: &str) -> bool {
    let origin = |text: &str| Url::parse(text).ok().map(|url| url.origin()).filter(url::Origin::is_tuple);
    origin(one).is_some_and(|one| origin(other) == Some(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMON: &str = "https://login.microsoftonline.com/common";
    const TENANT: &str = "https://login.microsoftonline.com/tenant";
    const CIAM: &str = "https://shop.ciamlogin.com/tenant";
    const B2C: &str = "https://shop.b2clogin.com/tenant/b2c_1_signin";

    #[test]
    fn a_tenants_endpoint_accepts_only_its_issuer_and_the_common_endpoint_any() {
        for (base, issuer, wanted) in [
            (COMMON, "https://login.microsoftonline.com/tenant/v2.0", true),
            (COMMON, "https://login.microsoftonline.com/other/v2.0", true),
            (COMMON, "https://shop.ciamlogin.com/tenant/v2.0", false),
            (COMMON, "https://login.microsoftonline.com/tenant", false),
            (COMMON, "https://evil.example/tenant/v2.0", false),
            (COMMON, "", false),
            ("https://login.microsoftonline.com/organizations", "https://login.microsoftonline.com/other/v2.0", true),
            (TENANT, "https://login.microsoftonline.com/tenant/v2.0", true),
            (TENANT, "https://login.microsoftonline.com/other/v2.0", false),
            (TENANT, "https://login.microsoftonline.com/tenant/v2.0/", false),
            (CIAM, "https://shop.ciamlogin.com/tenant/v2.0", true),
            (CIAM, "https://other.ciamlogin.com/tenant/v2.0", false),
            (CIAM, "https://login.microsoftonline.com/tenant/v2.0", false),
            (B2C, "https://shop.b2clogin.com/id/v2.0/", true),
            (B2C, "https://other.b2clogin.com/id/v2.0/", false),
            (B2C, "http://shop.b2clogin.com/id/v2.0/", false),
            ("https://login.microsoftonline.us/tenant", "https://login.microsoftonline.us/tenant/v2.0", true),
            ("https://signin.shop.example/tenant", "https://shop.ciamlogin.com/tenant/v2.0", true),
            ("https://signin.shop.example/tenant", "https://evil.example/tenant/v2.0", false),
        ] {
            assert_eq!(takes(base, issuer), wanted, "{base} {issuer}");
        }
    }
}
