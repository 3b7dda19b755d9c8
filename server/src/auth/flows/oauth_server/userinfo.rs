//! A user's claims by the session's scopes, for `GET /oauth/userinfo` and ID tokens.

use actix_web::HttpResponse;
use serde_json::{Map, Value, json};

use crate::auth::door::bearer::Caller;
use crate::auth::door::request::{Request, ok};
use crate::auth::error::AuthResult;
use crate::auth::models::user::User;

/// The first text among the user's metadata that is not empty.
fn metadata<'a>(user: &'a User, names: &[&str]) -> Option<&'a str> {
    let data = user.user_metadata.as_ref()?;
    names.iter().find_map(|name| data.get(*name)?.as_str().filter(|text| !text.is_empty()))
}

/// The claims of scope `profile`.
pub fn profile_claims(user: &User) -> Map<String, Value> {
    let mut claims = Map::new();
    let name = metadata(user, &["name"]).or(Some(user.email.as_str()).filter(|email| !email.is_empty()));
    let texts = [
        ("name", name),
        ("picture", metadata(user, &["picture", "avatar_url"])),
        ("preferred_username", metadata(user, &["preferred_username", "username"])),
    ];
    for (claim, value) in texts {
        if let Some(value) = value {
            claims.insert(claim.to_owned(), json!(value));
        }
    }
    if user.updated_at.timestamp() > 0 {
        claims.insert("updated_at".to_owned(), json!(user.updated_at.timestamp()));
    }
    claims
}

/// `sub`, and what the session's scopes add.
pub async fn userinfo(request: &Request, caller: Caller) -> AuthResult<HttpResponse> {
    let user = &caller.user;
    let mut claims = Map::new();
    claims.insert("sub".to_owned(), json!(user.id));
    let scopes = caller.session.as_ref().and_then(|session| session.scopes.clone()).unwrap_or_default();
    let has = |scope: &str| scopes.split_whitespace().any(|granted| granted == scope);
    let is_verified = has("email") && user.has_proved_email(&request.db().await?).await?;
    let mut add = |name: &str, value: Value| {
        claims.insert(name.to_owned(), value);
    };
    if has("email") {
        if !user.email.is_empty() {
            add("email", json!(user.email));
        }
        if is_verified {
            add("email_verified", json!(true));
        }
    }
    if has("phone") {
        if !user.phone.is_empty() {
            add("phone", json!(user.phone));
        }
        if user.is_phone_confirmed() {
            add("phone_verified", json!(true));
        }
    }
    if has("profile") {
        if let Some(data) = &user.user_metadata {
            add("user_metadata", json!(data));
        }
        claims.extend(profile_claims(user));
    }
    ok(&claims)
}
