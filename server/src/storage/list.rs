//! Listings: `POST /object/list/{bucket}` and `/object/list-v2/{bucket}`, of the objects that the caller may see.

use actix_web::{HttpRequest, HttpResponse, web};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::error::StorageError;
use super::fields::{Fields, JsonBody};
use super::queries::{self, Listing, PageAsked};
use super::{Scope, Storage, valid_bucket_in};
use crate::jwt::caller::Caller;

const MAX_LIMIT: i64 = 1500;
/// Maximum number of entries per page of list-v2.
pub const MAX_PAGE: i32 = 1000;

const ANOTHER_LISTING: &str =
    "exactMatch must match the value used to obtain this continuation token (expected \"false\")";

/// The entries one level below a prefix, with names relative to it; with `exactMatch`, the object whose whole name is the prefix.
pub async fn list(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: JsonBody,
) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_caller(&request)?;
    let bucket = valid_bucket_in(&request, "/object/list/")?;
    let asked = body.fields()?;
    asked.require(&["prefix"])?;
    let prefix = asked.string("prefix")?.unwrap_or_default();
    let limit = asked.integer("limit", 1)?.unwrap_or(100).min(MAX_LIMIT);
    let offset = asked.integer("offset", 0)?.unwrap_or(0).min(i64::from(i32::MAX));
    let (mut column, mut order) = ("name", "asc");
    if let Some(sort_by) = asked.object("sortBy")? {
        sort_by.require(&["column"])?;
        let columns = ["name", "updated_at", "created_at", "last_accessed_at"];
        column = sort_by.one_of("column", &columns)?.unwrap_or(column);
        order = sort_by.one_of("order", &["asc", "desc"])?.unwrap_or(order);
    }
    let search = asked.string("search")?.unwrap_or_default();
    let exactly = asked.boolean("exactMatch")?.unwrap_or(false);
    let nothing = asks_for_former_only(&asked)?;
    drop(asked);
    if nothing {
        return Ok(HttpResponse::Ok().json(json!([])));
    }
    let scope = Scope::of(&request, "storage.object.list");
    if exactly {
        let row = storage.find_entry(&caller, &scope, &bucket, &prefix, &search).await?;
        return Ok(HttpResponse::Ok().json(row.filter(|_| offset == 0).into_iter().collect::<Vec<_>>()));
    }
    let prefix = if prefix.is_empty() || prefix.ends_with('/') { prefix } else { format!("{prefix}/") };
    let tx = storage.as_caller(&caller, &scope).await?;
    let rows = queries::list_objects(
        &tx,
        &Listing {
            bucket: &bucket,
            prefix: &prefix,
            search: &search,
            limit: i32::try_from(limit).unwrap_or(i32::MAX),
            offset: i32::try_from(offset).unwrap_or(i32::MAX),
            sort_column: column,
            sort_order: order,
        },
    )
    .await?;
    tx.rollback().await?;
    Ok(HttpResponse::Ok().json(rows.into_iter().map(with_short_times).collect::<Vec<_>>()))
}

/// Whether a listing is only about former versions or delete markers. There are none, so it has no entries.
fn asks_for_former_only(fields: &Fields) -> Result<bool, StorageError> {
    let modes = ["exclude", "include", "only"];
    let asked = [fields.one_of("noncurrentVersions", &modes)?, fields.one_of("deleteMarkers", &modes)?];
    Ok(asked.contains(&Some("only")))
}

/// A page of full names, and a cursor for the next one.
pub async fn list_v2(
    storage: web::Data<Storage>,
    request: HttpRequest,
    body: JsonBody,
) -> Result<HttpResponse, StorageError> {
    let caller = storage.require_token(&request)?;
    let bucket = valid_bucket_in(&request, "/object/list-v2/")?;
    let fields = body.fields()?;
    let prefix = fields.string("prefix")?.unwrap_or_default();
    let limit = fields.integer("limit", 1)?.unwrap_or(i64::from(MAX_PAGE));
    let cursor = fields.string("cursor")?.filter(|text| !text.is_empty());
    let with_delimiter = fields.boolean("with_delimiter")?.unwrap_or(false);
    let mut sorting = Sorting::default();
    if let Some(sort_by) = fields.object("sortBy")? {
        sort_by.require(&["column"])?;
        sorting.column = sort_by.one_of("column", &["name", "updated_at", "created_at"])?.unwrap_or("name");
        sorting.descending = sort_by.one_of("order", &["asc", "desc"])? == Some("desc");
    }
    let exactly = fields.boolean("exactMatch")?.unwrap_or(false);
    let nothing = asks_for_former_only(&fields)?;
    drop(fields);
    let position = cursor.as_deref().map(Position::parse).transpose()?;
    let scope = Scope::of(&request, "storage.object.list_v2");
    if exactly || nothing {
        // A single entry fits on a page, so a cursor comes from another listing.
        if exactly && position.is_some() {
            return Err(StorageError::InvalidParameter(ANOTHER_LISTING.to_owned()));
        }
        let row = match nothing {
            true => None,
            false => storage.find_entry(&caller, &scope, &bucket, &prefix, "").await?,
        };
        let objects: Vec<Value> = row.into_iter().collect();
        return Ok(HttpResponse::Ok().json(json!({ "hasNext": false, "folders": [], "objects": objects })));
    }
    let asked = Asked {
        bucket: &bucket,
        prefix: &prefix,
        delimiter: with_delimiter.then_some("/"),
        limit: i32::try_from(limit).unwrap_or(MAX_PAGE).min(MAX_PAGE),
        sorting,
        position,
    };
    let page = storage.page(&caller, &scope, &asked).await?;
    let mut answer = Map::new();
    answer.insert("hasNext".to_owned(), json!(page.next.is_some()));
    if let Some((position, key)) = page.next {
        answer.insert("nextCursor".to_owned(), json!(position.to_text()));
        answer.insert("nextCursorKey".to_owned(), json!(key));
    }
    answer.insert("folders".to_owned(), Value::Array(page.folders));
    answer.insert("objects".to_owned(), Value::Array(page.objects));
    Ok(HttpResponse::Ok().json(answer))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sorting {
    pub column: &'static str,
    pub descending: bool,
}

impl Default for Sorting {
    fn default() -> Self {
        Self { column: "name", descending: false }
    }
}

/// The parameters of a page. With a position, that position's sort order applies.
pub struct Asked<'a> {
    pub bucket: &'a str,
    pub prefix: &'a str,
    pub delimiter: Option<&'a str>,
    pub limit: i32,
    pub sorting: Sorting,
    pub position: Option<Position>,
}

pub struct Page {
    /// Full names, ending with the delimiter.
    pub folders: Vec<Value>,
    pub objects: Vec<Value>,
    /// Where the next page begins, and the last name of this one.
    pub next: Option<(Position, String)>,
}

impl Storage {
    /// The object with exactly this name, if the caller may see it and its name contains a text.
    async fn find_entry(
        &self,
        caller: &Caller,
        scope: &Scope,
        bucket: &str,
        name: &str,
        search: &str,
    ) -> Result<Option<Value>, StorageError> {
        let tx = self.as_caller(caller, scope).await?;
        let row = queries::find_entry(&tx, bucket, name, search).await?;
        tx.rollback().await?;
        Ok(row.map(with_short_times))
    }

    /// One page of a bucket, as the caller sees it.
    pub(super) async fn page(&self, caller: &Caller, scope: &Scope, asked: &Asked<'_>) -> Result<Page, StorageError> {
        let start = Position { after: String::new(), after_value: String::new(), sorting: asked.sorting };
        let from = asked.position.as_ref().unwrap_or(&start);
        let tx = self.as_caller(caller, scope).await?;
        let rows = queries::list_page(
            &tx,
            &PageAsked {
                bucket: asked.bucket,
                prefix: asked.prefix,
                delimiter: asked.delimiter,
                limit: asked.limit.saturating_add(1),
                after: &from.after,
                sort_column: from.sorting.column,
                after_value: &from.after_value,
                descending: from.sorting.descending,
            },
        )
        .await?;
        tx.rollback().await?;
        let limit = usize::try_from(asked.limit).unwrap_or(0);
        let more = rows.len() > limit;
        let mut page = Page { folders: Vec::new(), objects: Vec::new(), next: None };
        let mut last = None;
        for mut row in rows.into_iter().take(limit) {
            let name = row.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let at = row.get(from.sorting.column).and_then(Value::as_str).unwrap_or_default().to_owned();
            let is_folder = row.get("id").is_none_or(Value::is_null);
            let full = match asked.delimiter {
                Some(delimiter) if is_folder => format!("{name}{delimiter}"),
                _ => name.clone(),
            };
            last = Some((full.clone(), at, name));
            row["name"] = json!(full);
            let row = with_short_times(row);
            if is_folder {
                page.folders.push(row);
            } else {
                page.objects.push(row);
            }
        }
        if more && let Some((after, at, name)) = last {
            let after_value = if from.sorting.column == "name" { String::new() } else { to_milliseconds(&at) };
            page.next = Some((Position { after, after_value, sorting: from.sorting }, name));
        }
        Ok(page)
    }
}

/// Shortens a row's times to milliseconds, as in the reference.
pub fn with_short_times(mut row: Value) -> Value {
    for name in ["updated_at", "created_at", "last_accessed_at"] {
        if let Some(time) = row.get_mut(name)
            && let Some(text) = time.as_str()
        {
            *time = json!(to_milliseconds(text));
        }
    }
    row
}

/// A time as stored in a cursor.
fn to_milliseconds(at: &str) -> String {
    let parsed = chrono::DateTime::parse_from_rfc3339(at).ok();
    parsed.map_or_else(String::new, |at| at.to_utc().to_rfc3339_opts(chrono::SecondsFormat::Millis, true))
}

/// Where a page ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The last name. A folder's ends with the delimiter.
    pub after: String,
    /// The value of the sort column there; empty if sorted by name.
    pub after_value: String,
    pub sorting: Sorting,
}

impl Position {
    /// Encodes lines of a letter, a colon and a text in base64.
    pub fn to_text(&self) -> String {
        let mut lines = format!("l:{}", self.after);
        if self.sorting.descending {
            lines.push_str("\no:desc");
        }
        if self.sorting.column != "name" {
            lines.push_str(&format!("\nc:{}\na:{}", self.sorting.column, self.after_value));
        }
        STANDARD.encode(lines)
    }

    pub fn parse(text: &str) -> Result<Self, StorageError> {
        let refused = || StorageError::InvalidParameter("Invalid Parameter continuation token".to_owned());
        let lines = STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(refused)?;
        let mut position = Self { after: String::new(), after_value: String::new(), sorting: Sorting::default() };
        for line in lines.split('\n') {
            match line.split_once(':') {
                Some(("l", name)) => position.after = name.to_owned(),
                Some(("o", order)) => position.sorting.descending = order == "desc",
                Some(("c", "created_at")) => position.sorting.column = "created_at",
                Some(("c", "updated_at")) => position.sorting.column = "updated_at",
                Some(("c", _)) => {}
                Some(("a", at)) if at.is_empty() || chrono::DateTime::parse_from_rfc3339(at).is_ok() => {
                    position.after_value = at.to_owned();
                }
                _ => return Err(refused()),
            }
        }
        Ok(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_a_round_trip() {
        let cases = [
            Position { after: "a/b:c/".to_owned(), after_value: String::new(), sorting: Sorting::default() },
            Position {
                after: "a".to_owned(),
                after_value: "2026-11-22T10:00:00.123Z".to_owned(),
                sorting: Sorting { column: "updated_at", descending: true },
            },
        ];
        for position in cases {
            assert_eq!(Position::parse(&position.to_text()).expect("a cursor"), position);
        }
        for text in ["nonsense", "", &STANDARD.encode("x:1"), &STANDARD.encode("l:a\na:yesterday")] {
            let refused = Position::parse(text).expect_err("refused");
            assert_eq!(refused.to_string(), "Invalid Parameter continuation token", "{text}");
        }
    }
}
