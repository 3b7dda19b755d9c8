//! `GET /admin/audit`. Reference: supabase/auth `internal/api/audit.go`.

use actix_web::HttpResponse;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::paging::Page;
use crate::auth::door::request::{Request, ok};
use crate::auth::error::{AuthError, AuthResult, Fault, Meaning as _};
use crate::auth::models::store::Param;

/// The audit log, newest first; `query=author:x`, `action:x` or `type:x` looks for a part of a text.
pub async fn audit_log(request: &Request) -> AuthResult<HttpResponse> {
    let page = Page::read(request)?;
    let query = request.query("query").unwrap_or("");
    let condition = match query.split_once(':') {
        None if query.is_empty() => "true",
        Some(("author", _)) => "(payload->>'actor_username' ilike $1 or payload->>'actor_name' ilike $1)",
        Some(("action", _)) => "payload->>'action' ilike $1",
        Some(("type", _)) => "payload->>'log_type' ilike $1",
        _ => return Err(AuthError::invalid(format!("Invalid query scope: {query}"))),
    };
    let wanted = query.split_once(':').map(|(_, wanted)| wanted).filter(|wanted| !wanted.is_empty());
    let condition = if wanted.is_some() { condition } else { "true" };
    let pattern = format!("%{}%", wanted.unwrap_or(""));
    let (limit, offset) = (page.limit(), page.offset());
    let failed = "Error searching for audit logs";
    let db = request.db().await?;
    let from = format!(
        "from auth.audit_log_entries where instance_id = '00000000-0000-0000-0000-000000000000' and {condition}"
    );
    let count_sql = format!("select count(*) {from}");
    let mut params: Vec<Param<'_>> = if wanted.is_some() { vec![&pattern] } else { Vec::new() };
    let total: i64 = db.query_one(&count_sql, &params).await.or_internal(failed)?.try_get(0).map_err(Fault::from)?;
    let next = params.len() + 1;
    params.extend([&limit as Param<'_>, &offset]);
    let sql = format!(
        "select id, payload, created_at, ip_address {from} order by created_at desc limit ${next} offset ${}",
        next + 1
    );
    let mut entries = Vec::new();
    for row in db.query(&sql, &params).await.or_internal(failed)? {
        let id: uuid::Uuid = row.try_get(0).map_err(Fault::from)?;
        let payload: Option<Value> = row.try_get(1).map_err(Fault::from)?;
        let created_at: Option<DateTime<Utc>> = row.try_get(2).map_err(Fault::from)?;
        let ip_address: String = row.try_get(3).map_err(Fault::from)?;
        entries.push(json!({ "id": id, "payload": payload, "created_at": created_at, "ip_address": ip_address }));
    }
    let mut response = ok(&entries)?;
    page.add_headers(&mut response, request, u64::try_from(total).unwrap_or(0));
    Ok(response)
}
