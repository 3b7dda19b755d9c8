//! `POST /object/list/{bucket}`: what lies below a prefix, as far as the caller sees it.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;

use super::Storage;
use super::error::StorageError;
use super::queries::{self, Listing};

const MAX_LIMIT: i32 = 1500;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListRequest {
    prefix: String,
    #[serde(default = "default_limit")]
    limit: i32,
    #[serde(default)]
    offset: i32,
    #[serde(default)]
    sort_by: SortBy,
    #[serde(default)]
    search: String,
}

#[derive(Default, Deserialize)]
struct SortBy {
    column: Option<String>,
    order: Option<String>,
}

fn default_limit() -> i32 {
    100
}

pub async fn list(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: web::Bytes,
) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_caller(&request)?;
    let bucket = super::bucket(&request)?;
    let asked: ListRequest = serde_json::from_slice(&body)
        .map_err(|e| StorageError::InvalidRequest(format!("body is not as expected: {e}")))?;
    let sort_column = asked.sort_by.column.as_deref().unwrap_or("name");
    if !["name", "updated_at", "created_at", "last_accessed_at"].contains(&sort_column) {
        return Err(StorageError::InvalidRequest(
            "body/sortBy/column must be equal to one of the allowed values".to_owned(),
        ));
    }
    let sort_order = asked.sort_by.order.as_deref().unwrap_or("asc");
    if !["asc", "desc"].contains(&sort_order) {
        return Err(StorageError::InvalidRequest(
            "body/sortBy/order must be equal to one of the allowed values".to_owned(),
        ));
    }
    let prefix = match asked.prefix.as_str() {
        "" => String::new(),
        text => format!("{}/", text.trim_end_matches('/')),
    };
    let tx = storage.as_caller(&caller, &request, "storage.object.list").await?;
    let rows = queries::list_objects(
        &tx,
        &Listing {
            bucket: &bucket,
            prefix: &prefix,
            search: &asked.search,
            limit: asked.limit.clamp(0, MAX_LIMIT),
            offset: asked.offset.max(0),
            sort_column,
            sort_order,
        },
    )
    .await?;
    tx.rollback().await?;
    Ok(HttpResponse::Ok().json(rows))
}
