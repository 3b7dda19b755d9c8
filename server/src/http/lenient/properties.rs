//! Property tests of the mended stream, for any input in any pieces.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::mended;

#[derive(Clone, Debug)]
struct Request {
    /// Any bytes after the slash, except those that end a request line.
    target: Vec<u8>,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    None,
    Length(Vec<u8>),
    Chunks(Vec<Vec<u8>>),
}

impl Body {
    /// The rest after the request line.
    fn rest(&self) -> Vec<u8> {
        match self {
            Self::None => b"Host: h\r\n\r\n".to_vec(),
            Self::Length(bytes) => [format!("content-length: {}\r\n\r\n", bytes.len()).as_bytes(), bytes].concat(),
            Self::Chunks(chunks) => {
                let mut rest = b"Transfer-Encoding: chunked\r\n\r\n".to_vec();
                for chunk in chunks {
                    rest.extend(format!("{:x}; note=\"<\"\r\n", chunk.len()).bytes());
                    rest.extend_from_slice(chunk);
                    rest.extend(b"\r\n");
                }
                rest.extend(b"0\r\nX-Trailer: \"\r\n\r\n");
                rest
            }
        }
    }
}

fn request() -> impl Strategy<Value = Request> {
    let byte = any::<u8>().prop_filter("ends the line", |byte| !b"\r\n".contains(byte));
    let body = prop_oneof![
        Just(Body::None),
        vec(any::<u8>(), 0..60).prop_map(Body::Length),
        vec(vec(any::<u8>(), 1..30), 0..4).prop_map(Body::Chunks),
    ];
    (vec(byte, 0..40), body).prop_map(|(target, body)| Request { target, body })
}

/// Lengths of the pieces of a stream, repeated.
fn cuts() -> impl Strategy<Value = Vec<usize>> {
    vec(1usize..40, 1..6)
}

fn pieces<'a>(mut stream: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for cut in cuts.iter().cycle() {
        if stream.is_empty() {
            break;
        }
        let (piece, rest) = stream.split_at((*cut).min(stream.len()));
        pieces.push(piece);
        stream = rest;
    }
    pieces
}

fn decoded(target: &[u8]) -> Vec<u8> {
    percent_encoding::percent_decode(target).collect()
}

fn without_line_ends(stream: &[u8]) -> Vec<u8> {
    decoded(stream).into_iter().filter(|byte| !b"\r\n".contains(byte)).collect()
}

/// Fragments of frames, so that random input is close to valid frames.
const WORDS: [&[u8]; 14] = [
    b"GET / HTTP/1.1\r\n",
    b"POST /\" HTTP/1.1\r\n",
    b"Content-Length: 3\r\n",
    b"Content-Length: x\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip\r\n",
    b"Upgrade: websocket\r\n",
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b"3\r\nabc\r\n",
    b"0\r\n\r\n",
    b"ffffffffffffffff\r\n",
    b"\x16\x03\x01",
];

proptest! {
    /// Targets keep their meaning in characters that the HTTP library accepts; everything else is unchanged.
    #[test]
    fn requests_arrive_one_by_one_and_only_their_targets_are_escaped(
        requests in vec(request(), 1..5),
        cuts in cuts(),
    ) {
        let mut sent = Vec::new();
        for Request { target, body } in &requests {
            sent.extend([b"POST /", target.as_slice(), b" HTTP/1.1\r\n", &body.rest()].concat());
        }
        let came = mended(pieces(&sent, &cuts));
        let mut left = came.as_slice();
        for Request { target, body } in &requests {
            let end = left.windows(2).position(|pair| pair == b"\r\n").expect("a line");
            let line = left[..end].strip_prefix(b"POST /").and_then(|line| line.strip_suffix(b" HTTP/1.1"));
            let line = line.expect("a request line");
            prop_assert_eq!(decoded(line), decoded(target));
            prop_assert!(line.iter().all(|byte| *byte == b' ' || byte.is_ascii_graphic() && !b"\"#<>`".contains(byte)));
            let rest = body.rest();
            left = left[end + 2..].strip_prefix(rest.as_slice()).expect("the rest of the request");
        }
        prop_assert!(left.is_empty());
    }

    /// The split into pieces makes no difference, and nothing is lost but blank lines before a head.
    #[test]
    fn invalid_http_is_read_the_same_however_it_is_split(
        words in vec((0..WORDS.len(), option::weighted(0.2, vec(any::<u8>(), 0..6))), 0..12),
        cuts in cuts(),
    ) {
        let mut sent = Vec::new();
        for (word, noise) in words {
            sent.extend_from_slice(WORDS[word]);
            sent.extend(noise.into_iter().flatten());
        }
        let whole = mended([sent.as_slice()]);
        prop_assert_eq!(&mended(pieces(&sent, &cuts)), &whole);
        prop_assert_eq!(without_line_ends(&whole), without_line_ends(&sent));
    }
}
