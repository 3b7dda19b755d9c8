//! `/admin/users/{id}/factors`. Reference: supabase/auth `internal/api/admin.go`.

use actix_web::HttpResponse;
use serde_json::json;

use crate::auth::door::address::parse_phone;
use crate::auth::door::bearer::Admin;
use crate::auth::door::request::{Request, ok};
use crate::auth::error::{AuthResult, Meaning as _};
use crate::auth::models::audit::{Action, Entry};
use crate::auth::models::user::{Factor, User};
use crate::auth::models::{factor, now};

/// The user's factors, `[]` if there are none.
pub async fn list_factors(user: &User) -> AuthResult<HttpResponse> {
    ok(&user.factors)
}

/// Renames a factor, or gives a phone factor another number.
///
/// Errors: 400 `validation_failed` for an invalid number.
pub async fn update_factor(request: &Request, admin: &Admin, user: &User, factor: Factor) -> AuthResult<HttpResponse> {
    let params = request.params()?;
    let (name, phone) = (params.text("friendly_name")?, params.text("phone")?);
    let db = request.db().await?;
    let factor = db
        .transaction(async |db| {
            let mut factor = factor.clone();
            if !name.is_empty() {
                factor::rename(db, factor.id, &name).await?;
                factor.friendly_name.clone_from(&name);
                factor.updated_at = now();
            }
            if !phone.is_empty() && factor.factor_type == "phone" {
                factor.phone = parse_phone(&phone)?;
                factor::set_phone(db, factor.id, &factor.phone).await?;
                factor.updated_at = now();
            }
            let traits = json!({ "user_id": user.id, "factor_id": factor.id, "factor_type": factor.factor_type });
            Entry::by_admin(admin.role(), Action::FactorUpdated, traits)
                .record(db, request.auth.config.audit_log_only)
                .await?;
            Ok(factor)
        })
        .await?;
    ok(&factor)
}

/// Removes a factor; the sessions it raised return to the first level.
pub async fn delete_factor(request: &Request, user: &User, factor: Factor) -> AuthResult<HttpResponse> {
    let address = request.client_ip_text();
    let db = request.db().await?;
    db.transaction(async |db| {
        Entry::of(user, Action::FactorDeleted)
            .from_address(&address)
            .with(json!({ "user_id": user.id, "factor_id": factor.id }))
            .record(db, request.auth.config.audit_log_only)
            .await?;
        factor::downgrade_sessions(db, &factor, user.id).await.or_internal("Database error downgrading sessions")?;
        factor::delete(db, factor.id).await.or_internal("Database error deleting factor")?;
        Ok(())
    })
    .await?;
    ok(&factor)
}
