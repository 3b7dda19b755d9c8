//! Loads the profile from the provider's API and translates it into claims. Reference:
//! supabase/auth `internal/api/provider/*.go` (`GetUserData`).

use std::time::Duration;

use hmac::{Hmac, Mac as _};
use serde_json::{Map, Value, json};
use sha2::Sha256;

use super::azure;
use super::claims::{Address, Profile};
use super::custom::{described, described_by_document};
use super::exchange::ProviderTokens;
use super::id_token;
use super::oidc::{self, read_json, transport};
use super::provider::Provider;
use crate::auth::door::request::Request;
use crate::auth::error::Fault;
use crate::auth::outside::{OutboundContext, Providers};

/// Asks the provider for the profile of the tokens' user.
pub async fn fetch(request: &Request, provider: &Provider, tokens: &ProviderTokens) -> Result<Profile, Fault> {
    let away = request.away();
    let api = Api { http: http_of(&away, provider), provider, tokens };
    match provider.name.as_str() {
        "apple" => match &tokens.id_token {
            Some(token) => from_id_token(&api, token, provider.issuer.as_ref()).await,
            None => Ok(Profile::default()),
        },
        "azure" => microsoft(request, &api).await,
        "bitbucket" => bitbucket(&api).await,
        "discord" => discord(&api).await,
        "facebook" => facebook(&api).await,
        "figma" => figma(&api).await,
        "fly" => fly(&api).await,
        "github" => github(&api).await,
        "gitlab" => gitlab(&api).await,
        "google" => google(&api).await,
        "kakao" => kakao(&api).await,
        "keycloak" => keycloak(&api).await,
        "linkedin" => linkedin(&api).await,
        "linkedin_oidc" => match &tokens.id_token {
            Some(token) => from_id_token(&api, token, provider.issuer.as_ref()).await,
            None => Ok(Profile::default()),
        },
        "vercel_marketplace" => {
            let token = tokens.id_token.as_ref().ok_or_else(|| Fault::new("no ID token in the answer"))?;
            from_id_token(&api, token, provider.issuer.as_ref()).await
        }
        "notion" => notion(&api).await,
        "slack" => slack(&api, false).await,
        "slack_oidc" => slack(&api, true).await,
        "snapchat" => snapchat(&api).await,
        "spotify" => spotify(&api).await,
        "twitch" => twitch(&api).await,
        "workos" => workos(&api),
        "x" => x(&api).await,
        "zoom" => zoom(&api).await,
        _ => custom(&api).await,
    }
}

/// The HTTP client for a provider. Providers that administrators add at run time are restricted to certain addresses.
pub fn http_of<'a>(away: &'a OutboundContext, provider: &Provider) -> Providers<'a> {
    if provider.custom.is_some() { away.custom_providers() } else { away.providers() }
}

/// The provider's API, called with the person's token.
struct Api<'a> {
    http: Providers<'a>,
    provider: &'a Provider,
    tokens: &'a ProviderTokens,
}

impl Api<'_> {
    async fn get(&self, path: &str) -> Result<Value, Fault> {
        self.get_with(path, &[]).await
    }

    async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Result<Value, Fault> {
        let mut request = self
            .http
            .get(&format!("{}{path}", self.provider.api))?
            .timeout(Duration::from_secs(10))
            .header("accept", "application/json")
            .header("user-agent", "ferrobase")
            .bearer_auth(&self.tokens.access_token);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        read_json(request.send().await.map_err(transport)?).await
    }

    fn issuer(&self) -> &str {
        &self.provider.api
    }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or("")
}

fn flag(value: &Value, name: &str) -> bool {
    value.get(name) == Some(&Value::Bool(true))
}

/// A numeric id as text, `0` if there is none.
fn number(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_i64).unwrap_or(0).to_string()
}

/// A profile with id, name and picture in the usual claims.
fn person(issuer: &str, id: &str, name: &str, picture: &str) -> Profile {
    Profile::new(&[
        ("iss", issuer),
        ("sub", id),
        ("name", name),
        ("picture", picture),
        ("avatar_url", picture),
        ("full_name", name),
        ("provider_id", id),
    ])
}

async fn from_id_token(api: &Api<'_>, token: &str, issuer: Option<&oidc::Issuer>) -> Result<Profile, Fault> {
    let issuer = issuer.ok_or_else(|| Fault::new("the provider has no issuer"))?;
    let token = issuer.verify(api.http, token).await?;
    if !token.audience().contains(&api.provider.client_id.as_str()) {
        return Err(Fault::new("the ID token is for another client"));
    }
    if !token.goes_with(&api.tokens.access_token) {
        return Err(Fault::new("the access token is not the ID token's"));
    }
    id_token::profile(&token).ok_or_else(|| Fault::new("the claims of the ID token cannot be read"))
}

async fn microsoft(request: &Request, api: &Api<'_>) -> Result<Profile, Fault> {
    let token = api.tokens.id_token.as_ref().ok_or_else(|| Fault::new("azure: no OIDC ID token in the answer"))?;
    let claims = oidc::unverified_claims(token).ok_or_else(|| Fault::new("azure: invalid ID token"))?;
    let issuer = claims.get("iss").and_then(Value::as_str).unwrap_or("");
    if !azure::takes(&api.provider.api, issuer) {
        return Err(Fault::new("azure: the ID token is of an issuer that the endpoints do not speak for"));
    }
    let issuer = request.auth.discovery.issuer(api.http, issuer, None).await?;
    from_id_token(api, token, Some(&issuer)).await
}

async fn google(api: &Api<'_>) -> Result<Profile, Fault> {
    if let Some(token) = &api.tokens.id_token {
        return from_id_token(api, token, api.provider.issuer.as_ref()).await;
    }
    const USER_INFO: &str = "https://www.googleapis.com/userinfo/v2/me";
    let user = api.get(USER_INFO).await?;
    let verified = flag(&user, "verified_email") || flag(&user, "email_verified");
    Ok(person(USER_INFO, text(&user, "id"), text(&user, "name"), text(&user, "picture"))
        .with_email(text(&user, "email"), verified))
}

async fn github(api: &Api<'_>) -> Result<Profile, Fault> {
    let user = api.get("/user").await?;
    let emails = api.get("/user/emails").await?;
    let (id, name, login) = (number(&user, "id"), text(&user, "name"), text(&user, "login"));
    let mut profile = Profile::new(&[
        ("iss", api.issuer()),
        ("sub", &id),
        ("name", name),
        ("preferred_username", login),
        ("avatar_url", text(&user, "avatar_url")),
        ("full_name", name),
        ("provider_id", &id),
        ("user_name", login),
    ]);
    profile.emails = addresses(&emails, "primary", "verified");
    Ok(profile)
}

fn addresses(list: &Value, primary: &str, verified: &str) -> Vec<Address> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter(|entry| !text(entry, "email").is_empty())
        .map(|entry| Address {
            email: text(entry, "email").to_owned(),
            primary: flag(entry, primary),
            verified: flag(entry, verified),
        })
        .collect()
}

async fn gitlab(api: &Api<'_>) -> Result<Profile, Fault> {
    let user = api.get("/api/v4/user").await?;
    let emails = api.get("/api/v4/user/emails").await?;
    let id = number(&user, "id");
    let mut profile = person(api.issuer(), &id, text(&user, "name"), text(&user, "avatar_url"));
    // GitLab does not say whether further addresses are confirmed.
    profile.emails = addresses(&emails, "", "");
    Ok(profile.with_email(text(&user, "email"), !text(&user, "confirmed_at").is_empty()))
}

async fn keycloak(api: &Api<'_>) -> Result<Profile, Fault> {
    let user = api.get("/protocol/openid-connect/userinfo").await?;
    let (sub, name, email) = (text(&user, "sub"), text(&user, "name"), text(&user, "email"));
    let mut custom = user.as_object().cloned().unwrap_or_default();
    custom.retain(|key, _| !matches!(key.as_str(), "name" | "sub" | "email" | "email_verified"));
    Ok(Profile::new(&[
        ("iss", api.issuer()),
        ("sub", sub),
        ("name", name),
        ("email", email),
        ("full_name", name),
        ("provider_id", sub),
    ])
    .with_custom(Value::Object(custom))
    .with_email(email, flag(&user, "email_verified")))
}

async fn bitbucket(api: &Api<'_>) -> Result<Profile, Fault> {
    let user = api.get("/user").await?;
    let emails = api.get("/user/emails").await?;
    let mut profile =
        person(api.issuer(), text(&user, "uuid"), text(&user, "display_name"), text(&user["avatar"], "href"));
    profile.emails = addresses(&emails["values"], "is_primary", "is_confirmed");
    Ok(profile)
}

async fn discord(api: &Api<'_>) -> Result<Profile, Fault> {
    let user = api.get("/users/@me").await?;
    let (id, name, avatar) = (text(&user, "id"), text(&user, "username"), text(&user, "avatar"));
    let discriminator = text(&user, "discriminator");
    let picture = if avatar.is_empty() {
        let number: i64 = discriminator.parse().map_err(|_| Fault::new("discord: the discriminator is no number"))?;
        format!("https://cdn.discordapp.com/embed/avatars/{}.png", number % 5)
    } else {
        let extension = if avatar.starts_with("a_") { "gif" } else { "png" };
        format!("https://cdn.discordapp.com/avatars/{id}/{avatar}.{extension}")
    };
    let mut profile = person(api.issuer(), id, &format!("{name}#{discriminator}"), &picture);
    profile.set("full_name", name);
    Ok(profile
        .with_custom(json!({ "global_name": text(&user, "global_name") }))
        .with_email(text(&user, "email"), flag(&user, "verified")))
}

async fn facebook(api: &Api<'_>) -> Result<Profile, Fault> {
    let mut mac = Hmac::<Sha256>::new_from_slice(api.provider.secret.as_bytes())
        .map_err(|error| Fault::new(error.to_string()))?;
    mac.update(api.tokens.access_token.as_bytes());
    let proof = hex::encode(mac.finalize().into_bytes());
    let user = api.get(&format!("&appsecret_proof={proof}")).await?;
    let name = format!("{} {}", text(&user, "first_name"), text(&user, "last_name"));
    let alias = text(&user, "name");
    let mut profile = person(api.issuer(), text(&user, "id"), name.trim(), text(&user["picture"]["data"], "url"));
    profile.set("nickname", alias);
    profile.set("slug", alias);
    Ok(profile.with_email(text(&user, "email"), true))
}

async fn figma(api: &Api<'_>) -> Result<Profile, Fault> {
    let user = api.get("/v1/me").await?;
    let mut profile = person(api.issuer(), text(&user, "id"), text(&user, "handle"), text(&user, "img_url"));
    profile.set("picture", "");
    Ok(profile.with_email(text(&user, "email"), true))
}

async fn fly(api: &Api<'_>) -> Result<Profile, Fault> {
    let user = api.get("/oauth/token/info").await?;
    let id = text(&user, "user_id");
    let organizations: Option<Vec<Value>> = user["organizations"]
        .as_array()
        .map(|all| all.iter().map(|one| json!({ "id": text(one, "id"), "role": text(one, "role") })).collect());
    Ok(Profile::new(&[
        ("iss", api.issuer()),
        ("sub", id),
        ("full_name", text(&user, "user_name")),
        ("provider_id", id),
    ])
    .with_custom(json!({
        "resource_owner_id": text(&user, "resource_owner_id"),
        "organizations": organizations,
        "application": user.get("application"),
        "scope": user.get("scope"),
        "created_at": user.get("created_at").and_then(Value::as_i64).unwrap_or(0),
    }))
    .with_email(text(&user, "email"), true))
}

async fn kakao(api: &Api<'_>) -> Result<Profile, Fault> {
    let user = api.get("/v2/user/me").await?;
    let account = &user["kakao_account"];
    let (id, name) = (number(&user, "id"), text(&account["profile"], "nickname"));
    let mut profile = person(api.issuer(), &id, name, text(&account["profile"], "profile_image_url"));
    profile.set("picture", "");
    profile.set("preferred_username", name);
    profile.set("user_name", name);
    let verified = flag(account, "is_email_verified") && flag(account, "is_email_valid");
    Ok(profile.with_email(text(account, "email"), verified))
}

async fn linkedin(api: &Api<'_>) -> Result<Profile, Fault> {
    let user =
        api.get("/v2/me?projection=(id,firstName,lastName,profilePicture(displayImage~:playableStreams))").await?;
    let emails = api.get("/v2/emailAddress?q=members&projection=(elements*(handle~))").await?;
    let localized = |part: &str| {
        let (name, locale) = (&user[part]["localized"], &user[part]["preferredLocale"]);
        text(name, &format!("{}_{}", text(locale, "language"), text(locale, "country"))).to_owned()
    };
    let picture = &user["profilePicture"]["displayImage~"]["elements"][0]["identifiers"][0];
    let name = format!("{} {}", localized("firstName"), localized("lastName"));
    Ok(person(api.issuer(), text(&user, "id"), name.trim(), text(picture, "identifier"))
        .with_email(text(&emails["elements"][0]["handle~"], "emailAddress"), true))
}

async fn notion(api: &Api<'_>) -> Result<Profile, Fault> {
    let user = api.get_with("/v1/users/me", &[("notion-version", "2021-08-16")]).await?;
    let user = &user["bot"]["owner"]["user"];
    Ok(person(api.issuer(), text(user, "id"), text(user, "name"), text(user, "avatar_url"))
        .with_email(text(&user["person"], "email"), true))
}

async fn slack(api: &Api<'_>, tells_verified: bool) -> Result<Profile, Fault> {
    let user = api.get("/openid.connect.userInfo").await?;
    let id = text(&user, "https://slack.com/user_id");
    let team = json!({ "https://slack.com/team_id": text(&user, "https://slack.com/team_id") });
    let verified = !tells_verified || flag(&user, "email_verified");
    Ok(person(api.issuer(), id, text(&user, "name"), text(&user, "picture"))
        .with_custom(team)
        .with_email(text(&user, "email"), verified))
}

async fn snapchat(api: &Api<'_>) -> Result<Profile, Fault> {
    let query: String = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("query", "{me { externalId displayName bitmoji { avatar id } email } }")
        .finish();
    let user = api.get(&format!("?{query}")).await?;
    let me = &user["data"]["me"];
    let name = text(me, "displayName");
    let mut profile = person(oidc::SNAPCHAT, text(me, "externalId"), name, text(&me["bitmoji"], "avatar"));
    profile.set("slug", name);
    Ok(profile.with_email(text(me, "email"), true))
}

async fn spotify(api: &Api<'_>) -> Result<Profile, Fault> {
    let user = api.get("/me").await?;
    let area = |image: &Value| image["height"].as_i64().unwrap_or(0) * image["width"].as_i64().unwrap_or(0);
    let images = user["images"].as_array().map_or(&[][..], Vec::as_slice);
    let largest = images.iter().reduce(|best, image| if area(image) > area(best) { image } else { best });
    let picture = largest.map_or("", |image| text(image, "url"));
    // Spotify does not say whether an address is verified.
    Ok(person(api.issuer(), text(&user, "id"), text(&user, "display_name"), picture)
        .with_email(text(&user, "email"), false))
}

async fn twitch(api: &Api<'_>) -> Result<Profile, Fault> {
    let users = api.get_with("/helix/users", &[("client-id", &api.provider.client_id)]).await?;
    let user = users["data"].get(0).ok_or_else(|| Fault::new("twitch: there is no user in the answer"))?;
    let mut profile = person(api.issuer(), text(user, "id"), text(user, "login"), text(user, "profile_image_url"));
    profile.set("nickname", text(user, "display_name"));
    profile.set("slug", text(user, "display_name"));
    Ok(profile
        .with_custom(json!({
            "broadcaster_type": text(user, "broadcaster_type"),
            "description": text(user, "description"),
            "type": text(user, "type"),
            "offline_image_url": text(user, "offline_image_url"),
            "view_count": user["view_count"].as_i64().unwrap_or(0),
        }))
        .with_email(text(user, "email"), true))
}

/// WorkOS puts the profile beside the token.
fn workos(api: &Api<'_>) -> Result<Profile, Fault> {
    let user = api.tokens.answer.get("profile").ok_or_else(|| Fault::new("workos: the answer has no profile"))?;
    let name = format!("{} {}", text(user, "first_name"), text(user, "last_name"));
    Ok(person(api.issuer(), text(user, "id"), name.trim(), "")
        .with_custom(json!({
            "connection_id": text(user, "connection_id"),
            "organization_id": text(user, "organization_id"),
        }))
        .with_email(text(user, "email"), true))
}

async fn x(api: &Api<'_>) -> Result<Profile, Fault> {
    let answer =
        api.get("/2/users/me?user.fields=id,name,username,confirmed_email,profile_image_url,url,created_at").await?;
    let user = &answer["data"];
    let login = text(user, "username");
    let mut profile = person(api.issuer(), text(user, "id"), text(user, "name"), text(user, "profile_image_url"));
    profile.set("preferred_username", login);
    profile.set("user_name", login);
    profile.set("profile", &format!("https://x.com/{login}"));
    profile.set("website", text(user, "url"));
    Ok(profile
        .with_custom(json!({ "created_at": text(user, "created_at") }))
        .with_email(text(user, "confirmed_email"), true))
}

async fn zoom(api: &Api<'_>) -> Result<Profile, Fault> {
    let user = api.get("/users/me").await?;
    let name = format!("{} {}", text(&user, "first_name"), text(&user, "last_name"));
    Ok(person(api.issuer(), text(&user, "id"), name.trim(), text(&user, "pic_url"))
        .with_email(text(&user, "email"), zoom_has_verified(&user)))
}

/// Type 100 signed up with an address; only then does `verified` say whether it was confirmed. An unreadable type may be
/// that one, too.
fn zoom_has_verified(user: &Value) -> bool {
    let is_by_address = match &user["login_type"] {
        Value::Null => false,
        Value::String(kind) => kind == "100",
        Value::Number(kind) => kind.as_f64() == Some(100.0),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => true,
    };
    !is_by_address || user["verified"].as_i64().unwrap_or(0) != 0
}

/// A provider that an administrator described: its ID token, else its user-info document.
async fn custom(api: &Api<'_>) -> Result<Profile, Fault> {
    let custom = api.provider.custom.as_ref().ok_or_else(|| Fault::new("the provider is not known"))?;
    match (&api.provider.issuer, &api.tokens.id_token) {
        (Some(issuer), Some(token)) => {
            let token = issuer.verify(api.http, token).await?;
            let accepted = |aud: &&str| {
                *aud == custom.client_id || custom.acceptable_client_ids.iter().any(|client| client == aud)
            };
            if !token.audience().iter().any(accepted) {
                return Err(Fault::new("the ID token is for another client"));
            }
            let profile =
                id_token::profile(&token).ok_or_else(|| Fault::new("the claims of the ID token cannot be read"))?;
            // Only the token decides about addresses: a mapping moves claims, but not what the issuer has verified.
            let emails = profile.emails.clone();
            let mut profile = described(custom, profile, &token.claims);
            profile.emails = emails;
            Ok(profile)
        }
        _ => {
            let user = api.get("").await?;
            let document: Map<String, Value> =
                user.as_object().cloned().ok_or_else(|| Fault::new("the user-info document is no object"))?;
            let profile =
                Profile::from_document(&document).ok_or_else(|| Fault::new("the user-info document cannot be read"))?;
            Ok(described_by_document(custom, &profile, &document))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zooms_login_type_may_be_text_or_number_and_counts_as_unverified_otherwise() {
        for (kind, verified, expected) in [
            (json!("100"), 0, false),
            (json!(100), 0, false),
            (json!(100), 1, true),
            (json!("101"), 0, true),
            (json!(1), 0, true),
            (json!([100]), 0, false),
            (Value::Null, 0, true),
        ] {
            let user = json!({ "login_type": kind, "verified": verified });
            assert_eq!(zoom_has_verified(&user), expected, "{user}");
        }
    }
}
