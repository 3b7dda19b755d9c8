//! Bodies of S3 requests: raw, or in chunks that may be signed and followed by a checksum.
//!
//! The output is the object's bytes. If they do not match the announced checksums or signatures, the stream ends with an error,
//! so nothing is kept. Reference: <https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html>.

use std::pin::Pin;

use actix_web::HttpRequest;
use actix_web::web::Bytes;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;
use crc::{CRC_32_ISCSI, CRC_32_ISO_HDLC, CRC_64_NVME, Crc, Table};
use futures_util::{Stream, StreamExt};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::refused;
use super::signature::{Signature, mismatch};
use crate::storage::sigv4::{SigningKey, UNSIGNED};
use crate::storage::{StorageError, header_text};

/// Maximum length of a line between chunks, and of all trailer lines together.
const LONGEST_LINE: usize = 8 << 10;

pub type Body = Pin<Box<dyn Stream<Item = Result<Bytes, StorageError>>>>;

static CRC32: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);
static CRC32C: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);
static CRC64: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_NVME);

/// A checksum being computed.
enum Sum {
    Crc32(crc::Digest<'static, u32, Table<16>>),
    Crc32c(crc::Digest<'static, u32, Table<16>>),
    Crc64(crc::Digest<'static, u64, Table<16>>),
    Sha1(Sha1),
    Sha256(Sha256),
    Md5(Md5),
}

impl Sum {
    /// By its header name.
    fn named(header: &str) -> Option<Self> {
        match header {
            "x-amz-checksum-crc32" => Some(Self::Crc32(CRC32.digest())),
            "x-amz-checksum-crc32c" => Some(Self::Crc32c(CRC32C.digest())),
            "x-amz-checksum-crc64nvme" => Some(Self::Crc64(CRC64.digest())),
            "x-amz-checksum-sha1" => Some(Self::Sha1(Sha1::default())),
            "x-amz-checksum-sha256" => Some(Self::Sha256(Sha256::new())),
            "content-md5" => Some(Self::Md5(md5::Digest::new())),
            _ => None,
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Crc32(sum) | Self::Crc32c(sum) => sum.update(bytes),
            Self::Crc64(sum) => sum.update(bytes),
            Self::Sha1(sum) => sum.update(bytes),
            Self::Sha256(sum) => sum.update(bytes),
            Self::Md5(sum) => md5::Digest::update(sum, bytes),
        }
    }

    fn finish(self) -> String {
        match self {
            Self::Crc32(sum) | Self::Crc32c(sum) => STANDARD.encode(sum.finalize().to_be_bytes()),
            Self::Crc64(sum) => STANDARD.encode(sum.finalize().to_be_bytes()),
            Self::Sha1(sum) => STANDARD.encode(sum.finalize()),
            Self::Sha256(sum) => STANDARD.encode(sum.finalize()),
            Self::Md5(sum) => STANDARD.encode(md5::Digest::finalize(sum)),
        }
    }
}

/// An expected checksum: where its value comes from, and the value if it is known.
struct Expected {
    header: String,
    sum: Sum,
    value: Option<String>,
}

/// The body of a verified request, and its length if known.
pub fn of_request(
    request: &HttpRequest,
    signature: &Signature,
    key: &SigningKey,
    raw: Body,
) -> Result<(Body, Option<u64>), StorageError> {
    let number = |name: &str| header_text(request, name).and_then(|text| text.parse::<u64>().ok());
    // Without `Content-Length` and chunks, a request has no body.
    let announced = || match request.headers().contains_key("transfer-encoding") {
        true => None,
        false => Some(number("content-length").unwrap_or(0)),
    };
    let mut expected = Vec::new();
    for (name, value) in request.headers() {
        if let (Some(sum), Ok(value)) = (Sum::named(name.as_str()), value.to_str()) {
            expected.push(Expected { header: name.to_string(), sum, value: Some(value.trim().to_owned()) });
        }
    }
    let trailer = header_text(request, "x-amz-trailer").map(str::trim).map(str::to_ascii_lowercase);
    if let Some(name) = &trailer {
        let sum = Sum::named(name).ok_or_else(|| {
            refused(400, "InvalidRequest", "The value specified in the x-amz-trailer header is not supported")
        })?;
        expected.push(Expected { header: name.clone(), sum, value: None });
    }
    let signed = match signature.payload.as_str() {
        "STREAMING-UNSIGNED-PAYLOAD-TRAILER" => None,
        "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" | "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER" => {
            Some(Chain { key: key.clone(), last: signature.seed().to_owned() })
        }
        UNSIGNED => return Ok((checked(raw, expected, None), announced())),
        hash if hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            return Ok((checked(raw, expected, Some(hash.to_ascii_lowercase())), announced()));
        }
        _ => return Err(refused(400, "InvalidRequest", "The value of x-amz-content-sha256 is not supported")),
    };
    let length = number("x-amz-decoded-content-length");
    let length = length
        .ok_or_else(|| refused(411, "MissingContentLength", "You must provide the Content-Length HTTP header."))?;
    let chunks = Chunks {
        body: raw,
        buffer: BytesMut::new(),
        chain: signed,
        signs_trailer: signature.payload.ends_with("-PAYLOAD-TRAILER") && !signature.payload.contains("UNSIGNED"),
        trailer,
        state: State::Header,
        expected,
    };
    Ok((Box::pin(futures_util::stream::try_unfold(chunks, Chunks::next)), Some(length)))
}

/// A raw body whose checksums are among these pairs of header and value.
pub fn with_sums<'a>(raw: Body, named: impl Iterator<Item = (&'a str, &'a str)>) -> Body {
    let expected = named.filter_map(|(name, value)| {
        Some(Expected { header: name.to_owned(), sum: Sum::named(name)?, value: Some(value.trim().to_owned()) })
    });
    checked(raw, expected.collect(), None)
}

/// A raw body whose checksums are verified at the end.
fn checked(raw: Body, expected: Vec<Expected>, sha256: Option<String>) -> Body {
    let sha256 = sha256.map(|hash| (Sha256::new(), hash));
    Box::pin(futures_util::stream::try_unfold(
        (raw, expected, sha256),
        |(mut raw, mut expected, mut sha256)| async move {
            match raw.next().await {
                Some(chunk) => {
                    let chunk = chunk?;
                    expected.iter_mut().for_each(|known| known.sum.update(&chunk));
                    if let Some((sum, _)) = &mut sha256 {
                        sum.update(&chunk);
                    }
                    Ok(Some((chunk, (raw, expected, sha256))))
                }
                None => {
                    if let Some((sum, hash)) = sha256
                        && hex::encode(sum.finalize()) != hash
                    {
                        let message = "The provided 'x-amz-content-sha256' header does not match what was computed.";
                        return Err(refused(400, "XAmzContentSHA256Mismatch", message));
                    }
                    compare(expected)?;
                    Ok(None)
                }
            }
        },
    ))
}

fn compare(expected: Vec<Expected>) -> Result<(), StorageError> {
    for Expected { header, sum, value } in expected {
        if value.as_deref() != Some(sum.finish().as_str()) {
            let code = if header == "content-md5" { "BadDigest" } else { "InvalidChecksum" };
            return Err(refused(400, code, "The checksum of the body is not the one that you specified."));
        }
    }
    Ok(())
}

/// Chunk signatures, each of which depends on the previous one.
struct Chain {
    key: SigningKey,
    last: String,
}

impl Chain {
    fn check(&mut self, said: Option<&str>, algorithm: &str, lines: &str) -> Result<(), StorageError> {
        let expected = self.key.sign(algorithm, &format!("{}\n{lines}", self.last));
        let same =
            said.is_some_and(|said| bool::from(subtle::ConstantTimeEq::ct_eq(said.as_bytes(), expected.as_bytes())));
        self.last = expected;
        if same { Ok(()) } else { Err(mismatch()) }
    }
}

enum State {
    /// Next is a line with the size of a chunk.
    Header,
    /// This many bytes of a chunk remain. They are passed on before the chunk's signature is verified. If it is wrong, the stream
    /// ends with an error and nothing is kept.
    Data(usize, Option<SignedChunk>),
    Done,
}

/// A chunk being read, and its announced signature.
struct SignedChunk {
    said: Option<String>,
    hash: Sha256,
}

impl SignedChunk {
    fn check(self, chain: &mut Chain) -> Result<(), StorageError> {
        let lines = format!("{}\n{}", hex::encode(Sha256::digest(b"")), hex::encode(self.hash.finalize()));
        chain.check(self.said.as_deref(), "AWS4-HMAC-SHA256-PAYLOAD", &lines)
    }
}

struct Chunks {
    body: Body,
    buffer: BytesMut,
    chain: Option<Chain>,
    signs_trailer: bool,
    trailer: Option<String>,
    state: State,
    expected: Vec<Expected>,
}

impl Chunks {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, StorageError> {
        loop {
            match std::mem::replace(&mut self.state, State::Header) {
                State::Done => return Ok(None),
                State::Data(0, chunk) => {
                    if let (Some(chunk), Some(chain)) = (chunk, &mut self.chain) {
                        chunk.check(chain)?;
                    }
                    self.end_of_line().await?;
                }
                State::Data(left, mut chunk) => {
                    self.fill(1).await?;
                    let bytes = self.buffer.split_to(left.min(self.buffer.len())).freeze();
                    if let Some(chunk) = &mut chunk {
                        chunk.hash.update(&bytes);
                    }
                    self.state = State::Data(left - bytes.len(), chunk);
                    self.expected.iter_mut().for_each(|known| known.sum.update(&bytes));
                    return Ok(Some((bytes, self)));
                }
                State::Header => {
                    let line = self.line().await?;
                    let (size, extension) = line.split_once(';').unwrap_or((&line, ""));
                    let size = usize::from_str_radix(size.trim(), 16).map_err(|_| incomplete())?;
                    let said = extension.trim().strip_prefix("chunk-signature=").map(str::to_owned);
                    let chunk = self.chain.is_some().then(|| SignedChunk { said, hash: Sha256::new() });
                    if size > 0 {
                        self.state = State::Data(size, chunk);
                        continue;
                    }
                    if let (Some(chunk), Some(chain)) = (chunk, &mut self.chain) {
                        chunk.check(chain)?;
                    }
                    self.end().await?;
                    self.state = State::Done;
                    return Ok(None);
                }
            }
        }
    }

    /// Reads what follows the last chunk: the checksum, optionally its signature, and an empty line.
    async fn end(&mut self) -> Result<(), StorageError> {
        let mut canonical = String::new();
        let (mut signature, mut length) = (None, 0);
        if self.trailer.is_some() || self.signs_trailer {
            loop {
                let line = match self.line().await {
                    Ok(line) => line,
                    // Some clients omit the empty line.
                    Err(_) if self.buffer.is_empty() => break,
                    Err(error) => return Err(error),
                };
                if line.is_empty() {
                    break;
                }
                length += line.len();
                if length > LONGEST_LINE {
                    return Err(incomplete());
                }
                let (name, value) = line.split_once(':').ok_or_else(incomplete)?;
                let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
                if name == "x-amz-trailer-signature" {
                    signature = Some(value.to_owned());
                    continue;
                }
                canonical.push_str(&format!("{name}:{value}\n"));
                if self.trailer.as_ref() != Some(&name) {
                    continue;
                }
                let awaited = self.expected.iter_mut().find(|known| known.header == name && known.value.is_none());
                // Only one value is expected; another one is an error.
                awaited.ok_or_else(incomplete)?.value = Some(value.to_owned());
            }
        }
        if self.signs_trailer
            && let Some(chain) = &mut self.chain
        {
            chain.check(signature.as_deref(), "AWS4-HMAC-SHA256-TRAILER", &hex::encode(Sha256::digest(&canonical)))?;
        }
        compare(std::mem::take(&mut self.expected))
    }

    /// Waits for this many bytes.
    async fn fill(&mut self, wanted: usize) -> Result<(), StorageError> {
        while self.buffer.len() < wanted {
            let chunk = self.body.next().await.ok_or_else(incomplete)??;
            self.buffer.extend_from_slice(&chunk);
        }
        Ok(())
    }

    async fn line(&mut self) -> Result<String, StorageError> {
        let mut looked = 0;
        loop {
            if let Some(at) = memchr::memmem::find(&self.buffer[looked..], b"\r\n").map(|at| at + looked) {
                let line = self.buffer.split_to(at);
                let _ = self.buffer.split_to(2);
                return String::from_utf8(line.to_vec()).map_err(|_| incomplete());
            }
            if self.buffer.len() > LONGEST_LINE {
                return Err(incomplete());
            }
            looked = self.buffer.len().saturating_sub(1);
            let wanted = self.buffer.len() + 1;
            self.fill(wanted).await?;
        }
    }

    async fn end_of_line(&mut self) -> Result<(), StorageError> {
        self.fill(2).await?;
        if self.buffer.split_to(2).as_ref() == b"\r\n" { Ok(()) } else { Err(incomplete()) }
    }
}

fn incomplete() -> StorageError {
    refused(400, "IncompleteBody", "The body is not what its headers announce.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;
    use futures_util::{TryStreamExt, stream};

    /// A body that arrives in pieces of this size.
    fn body(bytes: Vec<u8>, piece: usize) -> Body {
        let pieces: Vec<_> = bytes.chunks(piece).map(|p| Ok(Bytes::copy_from_slice(p))).collect();
        Box::pin(futures_util::stream::iter(pieces))
    }

    async fn read(request: TestRequest, payload: &str, bytes: &[u8], piece: usize) -> Result<Vec<u8>, StorageError> {
        read_body(request, payload, body(bytes.to_vec(), piece)).await
    }

    async fn read_body(request: TestRequest, payload: &str, body: Body) -> Result<Vec<u8>, StorageError> {
        let authorization = "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,\
             SignedHeaders=host,Signature=4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
        let request = request
            .insert_header(("authorization", authorization))
            .insert_header(("x-amz-date", "20130524T000000Z"))
            .insert_header(("x-amz-content-sha256", payload))
            .to_http_request();
        let signature = Signature::of_request(&request, &[])?;
        let key = signature.signing_key("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
        let (stream, _) = of_request(&request, &signature, &key, body)?;
        Ok(stream.try_collect::<Vec<Bytes>>().await?.concat())
    }

    /// AWS's own example of a chunked upload in `sigv4-streaming`: 64 KiB, 1 KiB and the last chunk.
    fn amazons_chunks() -> Vec<u8> {
        let chunk = |size: usize, signature: &str| {
            let mut bytes = format!("{size:x};chunk-signature={signature}\r\n").into_bytes();
            bytes.extend(std::iter::repeat_n(b'a', size));
            bytes.extend(b"\r\n");
            bytes
        };
        [
            chunk(65536, "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648"),
            chunk(1024, "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497"),
            chunk(0, "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"),
        ]
        .concat()
    }

    fn of_66560() -> TestRequest {
        TestRequest::put().insert_header(("x-amz-decoded-content-length", "66560"))
    }

    #[actix_web::test]
    async fn amazons_signed_chunks_verify_in_any_pieces() {
        for piece in [7, 1000, 1 << 20] {
            let bytes = read(of_66560(), "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", &amazons_chunks(), piece).await;
            assert_eq!(bytes.expect("all chunks").len(), 66560, "{piece}");
        }
    }

    /// Regression: a chunk of 16 MiB was buffered before any of it was passed on.
    #[actix_web::test]
    async fn a_signed_chunk_is_passed_on_while_it_arrives() {
        let request = of_66560()
            .insert_header((
                "authorization",
                "AWS4-HMAC-SHA256 Credential=A/20130524/us-east-1/s3/aws4_request,SignedHeaders=host,Signature=x",
            ))
            .insert_header(("x-amz-date", "20130524T000000Z"))
            .insert_header(("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"))
            .to_http_request();
        let signature = Signature::of_request(&request, &[]).expect("a signature");
        let begun = stream::iter([Ok(Bytes::from(b"40000000;chunk-signature=x\r\nfirst".to_vec()))]);
        let body: Body = Box::pin(begun.chain(stream::pending()));
        let (mut bytes, _) = of_request(&request, &signature, &signature.signing_key("x"), body).expect("a body");
        assert_eq!(bytes.next().await.expect("a piece").expect("read"), "first");
    }

    #[actix_web::test]
    async fn a_changed_or_missing_chunk_is_an_error() {
        let whole = amazons_chunks();
        let mut changed = whole.clone();
        changed[1000] = b'b';
        let refused =
            read(of_66560(), "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", &changed, 1000).await.expect_err("changed");
        assert_eq!(refused.code(), "SignatureDoesNotMatch");
        let short = &whole[..whole.len() - 200];
        let refused = read(of_66560(), "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", short, 1000).await.expect_err("cut off");
        assert_eq!(refused.code(), "IncompleteBody");
    }

    #[actix_web::test]
    async fn an_unsigned_trailer_contains_the_checksum() {
        let with =
            |sum: &str| format!("5\r\nhello\r\n6\r\n world\r\n0\r\nx-amz-checksum-crc32:{sum}\r\n\r\n").into_bytes();
        let request = || {
            TestRequest::put()
                .insert_header(("x-amz-decoded-content-length", "11"))
                .insert_header(("x-amz-trailer", "x-amz-checksum-crc32"))
        };
        for piece in [1, 4, 100] {
            let bytes = read(request(), "STREAMING-UNSIGNED-PAYLOAD-TRAILER", &with("DUoRhQ=="), piece).await;
            assert_eq!(bytes.expect("whole"), b"hello world", "{piece}");
        }
        let refused = read(request(), "STREAMING-UNSIGNED-PAYLOAD-TRAILER", &with("AAAAAA=="), 9).await;
        assert_eq!(refused.expect_err("another sum").code(), "InvalidChecksum");
    }

    #[actix_web::test]
    async fn endless_trailers_and_second_values_are_refused() {
        let request = || {
            TestRequest::put()
                .insert_header(("x-amz-decoded-content-length", "0"))
                .insert_header(("x-amz-trailer", "x-amz-checksum-crc32"))
        };
        let read_to = async |trailer: &'static [u8]| {
            // The input is endless; reading must stop.
            let taken = std::rc::Rc::new(std::cell::Cell::new(0));
            let sent = std::rc::Rc::clone(&taken);
            let first = futures_util::stream::iter([Ok(Bytes::from_static(b"0\r\n"))]);
            let endless = futures_util::stream::repeat_with(move || {
                sent.set(sent.get() + trailer.len());
                if sent.get() > 1 << 20 { Err(StorageError::EntityTooLarge) } else { Ok(Bytes::from_static(trailer)) }
            });
            let refused = read_body(request(), "STREAMING-UNSIGNED-PAYLOAD-TRAILER", Box::pin(first.chain(endless)));
            (refused.await.expect_err("no end").code(), taken.get())
        };
        let (code, taken) = read_to(b"a:b\r\n").await;
        assert_eq!(code, "IncompleteBody");
        assert!(taken <= 2 * LONGEST_LINE, "{taken} bytes of trailers were taken");
        let (code, taken) = read_to(b"x-amz-checksum-crc32:AAAAAA==\r\n").await;
        assert_eq!((code, taken), ("IncompleteBody", 2 * b"x-amz-checksum-crc32:AAAAAA==\r\n".len()));
    }

    #[actix_web::test]
    async fn hashes_and_checksums_in_headers_are_verified() {
        let hash = hex::encode(Sha256::digest(b"hello"));
        assert_eq!(read(TestRequest::put(), &hash, b"hello", 2).await.expect("same"), b"hello");
        let refused = read(TestRequest::put(), &hash, b"hellO", 2).await.expect_err("other");
        assert_eq!(refused.code(), "XAmzContentSHA256Mismatch");
        for (header, sum) in [
            ("content-md5", "XUFAKrxLKna5cZ2REBfFkg=="),
            ("x-amz-checksum-crc32c", "mnG7TA=="),
            ("x-amz-checksum-crc64nvme", "M3eFcAZSQlc="),
            ("x-amz-checksum-sha1", "qvTGHdzF6KLavt4PO0gs2a6pQ00="),
        ] {
            let request = || TestRequest::put().insert_header((header, sum));
            assert_eq!(read(request(), UNSIGNED, b"hello", 2).await.expect(header), b"hello");
            assert!(read(request(), UNSIGNED, b"hellO", 2).await.is_err(), "{header}");
        }
    }
}
