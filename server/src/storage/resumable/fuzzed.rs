//! Headers of resumable uploads made of any bytes, for `storage::fuzzed`.

use actix_web::http::header::HeaderValue;
use actix_web::test::TestRequest;

use super::protocol::{Announced, UploadId, number_in};

/// The largest length that is taken.
const MOST: u64 = 1 << 53;

/// A length, a deferred one, metadata and the rest of an address, apart at line breaks: whatever they are, they are read or
/// refused.
pub fn tus(data: &[u8]) {
    let mut request = TestRequest::post();
    let mut lines = data.splitn(4, |byte| *byte == b'\n');
    for name in ["upload-length", "upload-defer-length", "upload-metadata"] {
        let line = lines.next().unwrap_or_default();
        if let (false, Ok(value)) = (line.is_empty(), HeaderValue::from_bytes(line)) {
            request = request.insert_header((name, value));
        }
    }
    let request = request.to_http_request();
    for name in ["upload-length", "upload-defer-length"] {
        if let Ok(Some(number)) = number_in(&request, name) {
            assert!(number <= MOST, "{name}: {number}");
        }
    }
    if let Ok(mut announced) = Announced::of_request(&request) {
        assert!(announced.size.is_none_or(|size| size <= MOST), "{announced:?}");
        assert!(!announced.bucket_name.contains('\0'), "{announced:?}");
        assert!(HeaderValue::from_str(&announced.cache_control()).is_ok(), "{announced:?}");
        let _ = (announced.mime(), announced.user_metadata());
        // It is kept as JSON in between.
        announced.size = None;
        let kept = serde_json::to_string(&announced).unwrap_or_default();
        assert_eq!(serde_json::from_str::<Announced>(&kept).ok(), Some(announced));
    }
    let address = String::from_utf8_lossy(lines.next().unwrap_or_default());
    if let Ok(id) = UploadId::parse(&address) {
        assert_eq!(UploadId::parse(&id.to_text()).ok().as_ref(), Some(&id));
        assert!(!id.key.as_str().split('/').any(|segment| segment == ".." || segment == "."), "{id:?}");
    }
}
