//! Forms, headers of resumable uploads, signatures and signed chunks made of any bytes. `server/fuzz` and the properties below
//! share these entry points.

use actix_web::http::header::HeaderValue;

use super::fuzz_input::{at_once, form, whole};
use super::receive::Incoming;
pub use super::resumable::fuzzed::tus;
pub use super::s3::fuzzed::{chunks, signature};

/// A form, after a byte that says how long the pieces are in which it comes: whatever it is, it holds the same in any pieces,
/// and nothing that was not sent.
pub fn multipart(data: &[u8]) {
    let [first, bytes @ ..] = data else { return };
    let read = |length: usize| {
        at_once(async {
            let incoming = Incoming::of_form(form(bytes, length), None, None).await.ok()?;
            let said = (incoming.mime, incoming.cache_control, incoming.user_metadata);
            Some((said, whole(incoming.body).await))
        })
    };
    let at_once = read(bytes.len());
    assert_eq!(at_once, read(usize::from(*first)), "in pieces of {first}");
    if let Some(((_, cache_control, _), file)) = at_once {
        assert!(HeaderValue::from_str(&cache_control).is_ok(), "{cache_control:?}");
        if let Some(file) = file.filter(|file| !file.is_empty()) {
            assert!(memchr::memmem::find(bytes, &file).is_some(), "a file that was not sent");
        }
    }
    super::s3::fuzzed::form(bytes, usize::from(*first));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::{collection, sample};

    use super::*;

    /// Lines of what a target knows, and some of anything.
    fn lines(known: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
        let known = sample::select(known).prop_map(|text| text.as_bytes().to_vec());
        let piece = prop_oneof![4 => known, 1 => collection::vec(any::<u8>(), 0..12)];
        (any::<u8>(), collection::vec(piece, 0..14)).prop_map(|(first, pieces)| [vec![first], pieces.concat()].concat())
    }

    const FORM: &[&str] = &[
        "--b\r\n",
        "--b--\r\n",
        "\r\n--b\r\n",
        "\r\n--b--\r\n",
        "Content-Disposition: form-data; name=\"cacheControl\"\r\n\r\n3600",
        "Content-Disposition: form-data; name=\"metadata\"\r\n\r\n{\"a\":1}",
        "Content-Disposition: form-data; name=\"\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\nabc",
        "Content-Disposition: form-data; name=\"file\"; filename=\"../a\\\\b\"\r\n\r\n",
        "Content-Disposition: form-data; name=\"key\"\r\n\r\na/${filename}",
        "Content-Disposition: form-data; name=\"policy\"\r\n\r\neyJleHBpcmF0aW9uIjoiMjk5OS0wMS0wMVQwMDowMDowMFoiLCJjb25kaXRpb25zIjpbXX0=",
        "Content-Disposition: form-data; filename*=UTF-8''a; name=\r\n\r\n",
        "Content-Length: 1\r\n",
        "\r\n\r\n",
        "\r",
        "--",
    ];
    const TUS: &[&str] = &[
        "5\n",
        "\n",
        "1\n",
        "9007199254740993\n",
        "-1\n",
        "+1\n",
        "bucketName ZG9jcw==",
        "bucketName AA==",
        ",objectName YS50eHQ=",
        ",cacheControl MzYwMA==",
        ",metadata e30=",
        ",contentType dGV4dC9odG1sDQpYOiB5",
        ",empty",
        " ",
        ",",
        "ZG9jcy9hLy4uL2IvMDAwMDAwMDAtMDAwMC00MDAwLTgwMDAtMDAwMDAwMDAwMDAx",
        "ZG9jcy9hLzAwMDAwMDAwLTAwMDAtNDAwMC04MDAwLTAwMDAwMDAwMDAwMQ",
    ];
    const SIGNATURE: &[&str] = &[
        "AWS4-HMAC-SHA256 ",
        "Credential=A/20130524/local/s3/aws4_request",
        ",SignedHeaders=host",
        ";x-amz-date",
        ",Signature=",
        "00",
        "\n",
        "20130524T000000Z",
        "99999999T999999Z",
        "UNSIGNED-PAYLOAD",
        "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
        "X-Amz-Algorithm=AWS4-HMAC-SHA256",
        "&X-Amz-Credential=A%2F20130524%2Flocal%2Fs3%2Faws4_request",
        "&X-Amz-Date=20130524T000000Z",
        "&X-Amz-Expires=",
        "9223372036854775807",
        "&X-Amz-SignedHeaders=host",
        "&X-Amz-Signature=",
        "%",
        "\u{e9}",
    ];
    const CHUNKS: &[&str] = &[
        "5\r\nhello\r\n",
        "0\r\n",
        "\r\n",
        "5;chunk-signature=00\r\nhello\r\n",
        "0;chunk-signature=\r\n",
        "ffffffffffffffff\r\n",
        "-1\r\n",
        "10000000000000000\r\n",
        "x-amz-checksum-crc32:NhCmhg==\r\n",
        "x-amz-trailer-signature:00\r\n",
        "x-amz-checksum-crc32",
        ":",
        "hello",
    ];

    proptest! {
        #[test]
        fn a_form_is_read_the_same_in_any_pieces(data in lines(FORM)) {
            multipart(&data);
        }

        #[test]
        fn random_upload_headers_are_parsed_or_refused(data in lines(TUS)) {
            tus(&data);
        }

        #[test]
        fn random_bytes_are_not_a_valid_signature(data in lines(SIGNATURE)) {
            signature(&data);
        }

        #[test]
        fn random_bytes_are_not_valid_signed_chunks(data in lines(CHUNKS)) {
            chunks(&data);
        }
    }
}
