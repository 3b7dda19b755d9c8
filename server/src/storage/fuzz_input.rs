//! What the entry points for fuzzing share: bytes in pieces, forms, and a runtime for one future.

#![allow(clippy::expect_used, reason = "a fuzz target ends when it cannot go on")]

use std::time::Duration;

use actix_multipart::Multipart;
use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use bytes::Bytes;
use futures_util::{Stream, TryStreamExt as _, stream};

use super::StorageError;

/// Runs what waits for nothing but these bytes.
pub(super) fn at_once<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let ended = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(10), future).await });
    ended.expect("it waits for what does not come")
}

/// Bytes in pieces of `length`.
pub(super) fn in_pieces(bytes: &[u8], length: usize) -> Vec<Bytes> {
    bytes.chunks(length.max(1)).map(Bytes::copy_from_slice).collect()
}

/// All bytes of a file.
pub(super) async fn whole(file: impl Stream<Item = Result<Bytes, StorageError>>) -> Option<Vec<u8>> {
    file.try_fold(Vec::new(), async |mut all, part| {
        all.extend_from_slice(&part);
        Ok(all)
    })
    .await
    .ok()
}

/// A form's bytes, its boundary being `b`.
pub(super) fn form(bytes: &[u8], length: usize) -> Multipart {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("multipart/form-data; boundary=b"));
    Multipart::new(&headers, stream::iter(in_pieces(bytes, length).into_iter().map(Ok::<_, PayloadError>)))
}
