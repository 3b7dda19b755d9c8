//! `/admin/users`. Reference: supabase/auth `internal/api/admin.go`.

use actix_web::HttpResponse;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Duration, Utc};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::paging::Page;
use crate::auth::credentials::password::{self, Hasher};
use crate::auth::credentials::{encryption, otp};
use crate::auth::door::address::{parse_email, parse_phone};
use crate::auth::door::bearer::Admin;
use crate::auth::door::limits;
use crate::auth::door::request::{Request, empty, ok};
use crate::auth::error::{AuthError, AuthResult, Code, Fault, Meaning as _};
use crate::auth::flows::signup::provider_metadata;
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::store::{Db, Param};
use crate::auth::models::user::{self, Column, User};
use crate::auth::models::{Json, flow_state, identity, now, one_time_token, session};
use crate::config::parse_go_duration;

const EMAIL_EXISTS: &str = "A user with this email address has already been registered";

/// The users of the audience, a page at a time, without their identities and factors.
pub async fn list_users(request: &Request, admin: &Admin) -> AuthResult<HttpResponse> {
    let aud = request.audience(Some(&admin.claims));
    let mut order = Vec::new();
    for sort in request.query_all("sort") {
        let (field, direction) = sort.split_once(' ').unwrap_or((sort, "desc"));
        if field != "created_at" {
            return Err(AuthError::invalid(format!("Bad Sort Parameters: bad field for sort '{field}'")));
        }
        order.push(match direction.to_ascii_uppercase().as_str() {
            "ASC" => "u.created_at asc",
            "DESC" => "u.created_at desc",
            _ => {
                return Err(AuthError::invalid(format!(
                    "Bad Sort Parameters: bad direction for sort '{direction}', only 'asc' and 'desc' allowed"
                )));
            }
        });
    }
    if order.is_empty() {
        order.push("u.created_at desc");
    }
    let page = Page::read(request)?;
    let filter = request.query("filter").unwrap_or("");
    let pattern = format!("%{filter}%");
    let from = format!(
        "from auth.users u where u.instance_id = '{}' and u.aud = $1 and ($2 or u.email like $3 \
         or u.raw_user_meta_data->>'full_name' ilike $3)",
        Uuid::nil()
    );
    let (all, limit, offset) = (filter.is_empty(), page.limit(), page.offset());
    let db = request.db().await?;
    let params: [Param<'_>; 3] = [&aud, &all, &pattern];
    let failed = "Database error finding users";
    let count = db.query_one(&format!("select count(*) {from}"), &params).await.or_internal(failed)?;
    let total: i64 = count.try_get(0).map_err(Fault::from)?;
    let sql = format!("select {} {from} order by {} limit $4 offset $5", user::COLUMNS, order.join(", "));
    let rows = db.query(&sql, &[&aud, &all, &pattern, &limit, &offset]).await.or_internal(failed)?;
    let users = rows.iter().map(|row| User::from_row(row, 0)).collect::<Result<Vec<_>, _>>()?;
    let mut response = ok(&json!({ "users": users, "aud": aud }))?;
    page.add_headers(&mut response, request, u64::try_from(total).unwrap_or(0));
    Ok(response)
}

/// The user that a path names.
///
/// Errors: 404 `validation_failed` if it is not a uuid, 404 `user_not_found`.
pub async fn load_user(request: &Request, id: &str) -> AuthResult<User> {
    let id =
        Uuid::parse_str(id).map_err(|_| AuthError::not_found(Code::ValidationFailed, "user_id must be an UUID"))?;
    let db = request.db().await?;
    user::find_by_id(&db, id)
        .await
        .or_internal("Database error loading user")?
        .ok_or_else(|| AuthError::not_found(Code::UserNotFound, "User not found"))
}

/// A body for a user.
struct Fields {
    id: String,
    aud: String,
    role: String,
    email: String,
    phone: String,
    password: Option<String>,
    password_hash: String,
    email_confirm: bool,
    phone_confirm: bool,
    user_metadata: Option<Json>,
    app_metadata: Option<Json>,
    ban_duration: String,
}

impl Fields {
    fn read(request: &Request) -> AuthResult<Self> {
        let params = request.params()?;
        Ok(Self {
            id: params.text("id")?,
            aud: params.text("aud")?,
            role: params.text("role")?,
            email: params.text("email")?,
            phone: params.text("phone")?,
            password: params.optional_text("password")?,
            password_hash: params.text("password_hash")?,
            email_confirm: params.flag("email_confirm", false)?,
            phone_confirm: params.flag("phone_confirm", false)?,
            user_metadata: params.object("user_metadata")?,
            app_metadata: params.object("app_metadata")?,
            ban_duration: params.text("ban_duration")?,
        })
    }

    /// Until when to ban: `None` to leave it, `Some(None)` to lift it.
    fn ban(&self) -> AuthResult<Option<Option<DateTime<Utc>>>> {
        match self.ban_duration.as_str() {
            "" => Ok(None),
            "none" => Ok(Some(None)),
            text => {
                let nanos = parse_go_duration(text).ok_or_else(|| {
                    AuthError::invalid(format!("invalid format for ban duration: time: invalid duration {text:?}"))
                })?;
                Ok(Some((nanos != 0).then(|| now() + Duration::nanoseconds(nanos))))
            }
        }
    }
}

/// Makes a user; nothing is mailed, and the password may be weak.
///
/// Errors: 400 `validation_failed`, 422 `email_exists`, 422 `phone_exists`.
pub async fn create_user(request: &Request, admin: &Admin) -> AuthResult<HttpResponse> {
    let auth = &request.auth;
    let mut fields = Fields::read(request)?;
    let aud = if fields.aud.is_empty() { request.audience(Some(&admin.claims)) } else { fields.aud.clone() };
    if fields.email.is_empty() && fields.phone.is_empty() {
        return Err(AuthError::invalid("Cannot create a user without either an email or phone"));
    }
    let db = request.db().await?;
    let mut providers = Vec::new();
    if !fields.email.is_empty() {
        fields.email = parse_email(&fields.email)?;
        refuse_taken_email(request, &db, &fields.email, &aud, None).await?;
        providers.push("email");
    }
    if !fields.phone.is_empty() {
        fields.phone = parse_phone(&fields.phone)?;
        refuse_taken_phone(&db, &fields.phone, &aud, None).await?;
        providers.push("phone");
    }
    if fields.password.is_some() && !fields.password_hash.is_empty() {
        return Err(AuthError::invalid("Only a password or a password hash should be provided"));
    }
    let mut user = User::new(&fields.email, &fields.phone, &aud, Json::new());
    user.user_metadata = match &fields.user_metadata {
        Some(metadata) => Some(metadata.clone()),
        // Upstream makes an empty object of it only if it hashes the password itself.
        None if fields.password_hash.is_empty() => Some(Json::new()),
        None => None,
    };
    drop(db);
    let hash = if fields.password_hash.is_empty() {
        let password = fields.password.clone().filter(|p| !p.is_empty()).unwrap_or_else(|| otp::unknown_password(&[]));
        if password.len() > 72 {
            return Err(AuthError::invalid("bcrypt: password length exceeds 72 bytes"));
        }
        password::hash(&request.away(), &limits::client(request), &password).await?
    } else {
        Hasher::check_import(&fields.password_hash)
            .map_err(|_| AuthError::invalid("The password hash is not of a known kind"))?;
        fields.password_hash.clone()
    };
    if !fields.id.is_empty() {
        user.id =
            Uuid::parse_str(&fields.id).map_err(|_| AuthError::invalid("ID must conform to the uuid v4 format"))?;
        if user.id.is_nil() {
            return Err(AuthError::invalid("ID cannot be a nil uuid"));
        }
    }
    user.encrypted_password = Some(encryption::seal(&auth.config.security.encryption, &user.id.to_string(), &hash)?);
    user.app_metadata = Some(provider_metadata(&providers));
    let ban = fields.ban()?;
    let role = if fields.role.is_empty() { auth.config.jwt.default_group_name.clone() } else { fields.role.clone() };
    let db = request.db().await?;
    let user = db
        .transaction(async |db| {
            let mut user = user.clone();
            user.insert(db).await?;
            let mut identities = Vec::new();
            if !user.email.is_empty() {
                let claims = identity::claims(user.id, &user.email, "");
                identities.push(identity::create(db, user.id, "email", claims).await?);
            }
            if !user.phone.is_empty() {
                let claims = identity::claims(user.id, "", &user.phone);
                identities.push(identity::create(db, user.id, "phone", claims).await?);
            }
            user.identities = Some(identities);
            let mut traits = about(&user);
            traits["provider"] = json!(providers[0]);
            Entry::by_admin(admin.role(), Action::UserSignedUp, traits).record(db, auth.config.audit_log_only).await?;
            user.role = role.trim().to_owned();
            user.update(db, &[Column::Role]).await?;
            if let Some(metadata) = &fields.app_metadata {
                user.merge_app_metadata(db, metadata).await?;
            }
            if fields.email_confirm {
                user.confirm(db).await?;
            }
            if fields.phone_confirm {
                user.confirm_phone(db).await?;
            }
            if let Some(until) = ban {
                user.banned_until = until;
                user.update(db, &[Column::BannedUntil]).await?;
            }
            Ok(user)
        })
        .await
        .map_err(|error| taken_after_all(error, "Database error creating new user"))?;
    ok(&user)
}

/// A violated unique key, although the address was free a moment ago.
fn taken_after_all(error: AuthError, message: &str) -> AuthError {
    if !error.is_unique_violation() {
        return error.internal_unless_unstorable(message);
    }
    let constraint = match &error {
        AuthError::Unhandled(fault) => fault.constraint().unwrap_or("").to_owned(),
        _ => String::new(),
    };
    match constraint.as_str() {
        "users_phone_key" => {
            AuthError::unprocessable(Code::PhoneExists, "Phone number already registered by another user")
        }
        "users_pkey" => AuthError::unprocessable(Code::UserAlreadyExists, "A user with this ID already exists"),
        _ => AuthError::unprocessable(Code::EmailExists, EMAIL_EXISTS),
    }
}

async fn refuse_taken_email(
    request: &Request,
    db: &Db,
    email: &str,
    aud: &str,
    current: Option<Uuid>,
) -> AuthResult<()> {
    let domains = request.auth.own_linking_domains();
    let other = user::find_duplicate_email(db, email, aud, current, &domains)
        .await
        .or_internal("Database error checking email")?;
    match other {
        Some(other) if Some(other.id) != current => Err(AuthError::unprocessable(Code::EmailExists, EMAIL_EXISTS)),
        _ => Ok(()),
    }
}

async fn refuse_taken_phone(db: &Db, phone: &str, aud: &str, current: Option<Uuid>) -> AuthResult<()> {
    let other = user::find_by_phone(db, phone, aud).await.or_internal("Database error checking phone")?;
    match other {
        Some(other) if Some(other.id) != current => {
            let message = "Phone number already registered by another user";
            Err(AuthError::unprocessable(Code::PhoneExists, message))
        }
        _ => Ok(()),
    }
}

fn about(user: &User) -> Value {
    json!({ "user_id": user.id, "user_email": user.email, "user_phone": user.phone })
}

/// Changes a user immediately: addresses need no confirmation, and a new password ends all sessions.
pub async fn update_user(request: &Request, admin: &Admin, mut user: User) -> AuthResult<HttpResponse> {
    let auth = &request.auth;
    let config = &auth.config;
    let mut fields = Fields::read(request)?;
    if !fields.email.is_empty() {
        fields.email = parse_email(&fields.email)?;
    }
    if !fields.phone.is_empty() {
        fields.phone = parse_phone(&fields.phone)?;
    }
    let ban = fields.ban()?;
    let first_password = fields.password.as_deref().is_some_and(|p| !p.is_empty()) && !user.has_password();
    if let Some(password) = &fields.password {
        auth.password_rules.check(&request.away(), password).await?;
        let hash = password::hash(&request.away(), &limits::client(request), password).await?;
        user.encrypted_password = Some(encryption::seal(&config.security.encryption, &user.id.to_string(), &hash)?);
    }
    let db = request.db().await?;
    let user = db
        .transaction(async |db| {
            let mut user = user.clone();
            if !fields.role.is_empty() {
                user.role = fields.role.trim().to_owned();
                user.update(db, &[Column::Role]).await?;
            }
            if fields.email_confirm {
                user.confirm(db).await?;
            }
            if fields.phone_confirm {
                user.confirm_phone(db).await?;
            }
            if fields.password.is_some() {
                user.update_password(db, None).await?;
            }
            if !fields.email.is_empty() {
                set_address(db, &mut user, "email", &fields.email, fields.email_confirm).await?;
            }
            if !fields.phone.is_empty() {
                set_address(db, &mut user, "phone", &fields.phone, fields.phone_confirm).await?;
            }
            if first_password && config.email_identity_on_password {
                crate::auth::flows::user::ensure_email_identity(db, &mut user).await?;
            }
            if let Some(metadata) = &fields.app_metadata {
                user.merge_app_metadata(db, metadata).await?;
            }
            if let Some(metadata) = &fields.user_metadata {
                user.merge_user_metadata(db, metadata).await?;
            }
            if let Some(until) = ban {
                user.banned_until = until;
                user.update(db, &[Column::BannedUntil]).await?;
            }
            let traits = about(&user);
            Entry::by_admin(admin.role(), Action::UserModified, traits).record(db, config.audit_log_only).await?;
            Ok(user)
        })
        .await
        .map_err(|error| taken_after_all(error, "Error updating user"))?;
    ok(&user)
}

/// Writes an address or number, and makes or updates its identity.
async fn set_address(db: &Db, user: &mut User, provider: &str, value: &str, verified: bool) -> AuthResult<()> {
    let mut data = Json::new();
    data.insert(provider.to_owned(), json!(value));
    data.insert(format!("{provider}_verified"), json!(verified));
    match identity::find(db, &user.id.to_string(), provider).await? {
        Some(mut known) => known.merge_data(db, &data).await?,
        None => {
            let mut claims = identity::claims(user.id, "", "");
            claims.extend(data);
            let created = identity::create(db, user.id, provider, claims).await?;
            user.identities.get_or_insert_default().push(created);
        }
    }
    let (address, column) = match provider {
        "email" => (&mut user.email, Column::Email),
        _ => (&mut user.phone, Column::Phone),
    };
    if std::mem::replace(address, value.to_owned()) != value {
        // Tokens sent to the previous address become invalid.
        user.spend_pending(db).await?;
    }
    if user.is_anonymous && verified {
        user.is_anonymous = false;
        user.update(db, &[Column::IsAnonymous]).await?;
    }
    Ok(user.update(db, &[column]).await?)
}

/// Deletes a user permanently, or softly by replacing addresses with hashes.
pub async fn delete_user(request: &Request, admin: &Admin, user: User) -> AuthResult<HttpResponse> {
    let log_only = request.auth.config.audit_log_only;
    let soft = !request.body()?.is_empty() && request.params()?.flag("should_soft_delete", false)?;
    let db = request.db().await?;
    db.transaction(async |db| {
        Entry::by_admin(admin.role(), Action::UserDeleted, about(&user))
            .record(db, log_only)
            .await
            .or_internal("Error recording audit log entry")?;
        if !soft {
            db.execute("delete from auth.users where id = $1", &[&user.id])
                .await
                .or_internal("Database error deleting user")?;
        } else if user.deleted_at.is_none() {
            soft_delete(db, &mut user.clone()).await.or_internal("Error soft deleting user")?;
        }
        Ok(())
    })
    .await?;
    empty()
}

/// Base64url of SHA-256 over the user's id and a value.
fn obscured(id: Uuid, value: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(format!("{id}{value}")))
}

async fn soft_delete(db: &Db, user: &mut User) -> Result<(), Fault> {
    let id = user.id;
    for text in [&mut user.email, &mut user.email_change] {
        *text = obscured(id, text);
    }
    for text in [&mut user.phone, &mut user.phone_change] {
        *text = obscured(id, text)[..15].to_owned();
    }
    user.encrypted_password = None;
    for text in [
        &mut user.confirmation_token,
        &mut user.recovery_token,
        &mut user.email_change_token_current,
        &mut user.email_change_token_new,
        &mut user.phone_change_token,
        &mut user.reauthentication_token,
    ] {
        text.clear();
    }
    user.deleted_at = Some(now());
    user.user_metadata = Some(Json::new());
    user.app_metadata = Some(Json::new());
    user.update(
        db,
        &[
            Column::Email,
            Column::Phone,
            Column::EncryptedPassword,
            Column::EmailChange,
            Column::PhoneChange,
            Column::ConfirmationToken,
            Column::RecoveryToken,
            Column::EmailChangeTokenCurrent,
            Column::EmailChangeTokenNew,
            Column::PhoneChangeToken,
            Column::ReauthenticationToken,
            Column::DeletedAt,
            Column::UserMetadata,
            Column::AppMetadata,
        ],
    )
    .await?;
    one_time_token::clear_all(db, id).await?;
    for known in identity::of_user(db, id).await? {
        db.execute(
            "update auth.identities set identity_data = '{}', provider_id = $2, updated_at = now() where id = $1",
            &[&known.id, &obscured(id, &format!("{}:{}", known.provider, known.provider_id))],
        )
        .await?;
    }
    for table in ["mfa_factors", "webauthn_credentials", "oauth_consents"] {
        db.execute(&format!("delete from auth.{table} where user_id = $1"), &[&id]).await?;
    }
    flow_state::delete_issued(db, id).await?;
    session::delete_all(db, id).await
}
