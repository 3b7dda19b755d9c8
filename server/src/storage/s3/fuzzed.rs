//! Signatures, signed chunks and forms made of any bytes, for `storage::fuzzed`.

use actix_web::http::Uri;
use actix_web::http::header::HeaderValue;
use actix_web::test::TestRequest;
use chrono::{DateTime, Utc};
use futures_util::stream;

use super::body::{Body, of_request};
use super::form::{Form, Policy};
use super::signature::{Signature, query_of};
use super::xml;
use crate::storage::fuzz_input::{at_once, in_pieces, whole};

/// Signs nothing that reaches these functions from outside.
const OURS: &str = "a secret of this file alone";

/// A signature's header, its date, what it says of the body, and a query, apart at line breaks: whatever they are, they are
/// read or refused, and are never our signature.
pub fn signature(data: &[u8]) {
    let mut lines = data.splitn(4, |byte| *byte == b'\n');
    let mut request = TestRequest::get();
    for name in ["authorization", "x-amz-date", "x-amz-content-sha256"] {
        let line = lines.next().unwrap_or_default();
        if let (false, Ok(value)) = (line.is_empty(), HeaderValue::from_bytes(line)) {
            request = request.insert_header((name, value));
        }
    }
    let target = format!("/b/k?{}", String::from_utf8_lossy(lines.next().unwrap_or_default()));
    if target.parse::<Uri>().is_ok() {
        request = request.uri(&target);
    }
    let request = request.to_http_request();
    let query = query_of(&request);
    for query in [&query[..], &[]] {
        if let Ok(signature) = Signature::of_request(&request, query) {
            let key = signature.signing_key(OURS);
            assert!(signature.verify(&request, query, "", &["h".to_owned()], &key).is_err(), "{signature:?}");
            assert!(signature.verify_policy(&target, &key).is_err(), "{signature:?}");
        }
    }
    let _ = xml::read(data, "Delete", "Object");
    if let Ok(policy) = Policy::parse(&String::from_utf8_lossy(data)) {
        let _ = policy.check(&[], "b", DateTime::<Utc>::UNIX_EPOCH);
    }
}

/// Chunks, after a byte that says how long the pieces are in which they come: whatever they are, unsigned ones hold the same
/// in any pieces, and signed ones are never ours.
pub fn chunks(data: &[u8]) {
    let [first, bytes @ ..] = data else { return };
    let authorization = "AWS4-HMAC-SHA256 Credential=A/20130524/local/s3/aws4_request,SignedHeaders=host,Signature=00";
    let read = |payload: &str, trailer: bool, length: usize| {
        let mut request = TestRequest::put()
            .insert_header(("authorization", authorization))
            .insert_header(("x-amz-date", "20130524T000000Z"))
            .insert_header(("x-amz-content-sha256", payload))
            .insert_header(("x-amz-decoded-content-length", "5"));
        if trailer {
            request = request.insert_header(("x-amz-trailer", "x-amz-checksum-crc32"));
        }
        let request = request.to_http_request();
        let signature = Signature::of_request(&request, &[]).ok()?;
        let body: Body = Box::pin(stream::iter(in_pieces(bytes, length).into_iter().map(Ok)));
        let (file, _) = of_request(&request, &signature, &signature.signing_key(OURS), body).ok()?;
        at_once(whole(file))
    };
    for payload in ["STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"] {
        assert_eq!(read(payload, payload.ends_with("TRAILER"), usize::from(*first)), None, "{payload}");
    }
    for trailer in [false, true] {
        let at_once = read("STREAMING-UNSIGNED-PAYLOAD-TRAILER", trailer, bytes.len());
        assert_eq!(
            at_once,
            read("STREAMING-UNSIGNED-PAYLOAD-TRAILER", trailer, usize::from(*first)),
            "in pieces of {first}"
        );
        assert!(at_once.is_none_or(|file| file.len() <= bytes.len()));
    }
}

/// A form for an object: the same in pieces of any `length`.
pub fn form(bytes: &[u8], length: usize) {
    let read = |length: usize| {
        at_once(async {
            let form = Form::read(crate::storage::fuzz_input::form(bytes, length)).await.ok()?;
            Some((form.fields, whole(form.file).await))
        })
    };
    let at_once = read(bytes.len());
    assert_eq!(at_once, read(length), "in pieces of {length}");
    if let Some((fields, _)) = at_once {
        for (name, value) in &fields {
            if let ("policy", Ok(policy)) = (name.as_str(), Policy::parse(value)) {
                let _ = policy.check(&fields, "b", DateTime::<Utc>::UNIX_EPOCH);
            }
        }
    }
}
