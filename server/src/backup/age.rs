//! Encryption to a public key in the format `age-encryption.org/v1` with X25519 recipients. The `age` and `rage` tools can open
//! the archives.
//!
//! Only what archives need is implemented: writing to X25519 recipients and reading with X25519 identities. The `age` crate would
//! add 45 more crates (translations, post-quantum keys); the primitives used here are in the build anyway. Reference: C2SP
//! `age.md`.

use std::fmt;
use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bech32::{Bech32, Hrp};
use curve25519_dalek::MontgomeryPoint;
use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use rand::TryRngCore;
use rand::rngs::OsRng;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use sha2::Sha256;

const VERSION: &str = "age-encryption.org/v1";
const X25519_INFO: &[u8] = b"age-encryption.org/v1/X25519";
const RECIPIENT_HRP: &str = "age";
const IDENTITY_HRP: &str = "age-secret-key-";
/// Bytes of plaintext sealed as one chunk.
const CHUNK: usize = 64 * 1024;
const TAG: usize = 16;
/// The longest header line that is read. A hostile file could contain an endless one.
const LINE_MAX: u64 = 4096;
/// The most header lines that are read.
const LINES_MAX: usize = 256;

/// Why a file cannot be decrypted, or a key cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum AgeError {
    #[error("'{0}' is not a public key, which begins with age1 ('ferrobase backup key' creates one)")]
    Recipient(String),
    #[error("it contains no private key: a line beginning with AGE-SECRET-KEY-1 is expected")]
    NoIdentity,
    #[error("it is not encrypted in the age format")]
    NotAge,
    #[error("none of the given private keys opens it: use the one whose public key it was made for")]
    WrongKey,
    #[error("its header was altered")]
    Header,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A public key, `age1…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipient([u8; 32]);

/// A private key, `AGE-SECRET-KEY-1…`. It has no `Debug` output.
#[derive(Clone)]
pub struct Identity([u8; 32]);

impl FromStr for Recipient {
    type Err = AgeError;

    fn from_str(text: &str) -> Result<Self, AgeError> {
        let key = decoded(text.trim(), RECIPIENT_HRP).ok_or_else(|| AgeError::Recipient(text.trim().to_owned()))?;
        Ok(Self(key))
    }
}

impl fmt::Display for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&encoded(RECIPIENT_HRP, &self.0))
    }
}

impl Identity {
    /// Generates a new identity.
    pub fn generate() -> io::Result<Self> {
        Ok(Self(random()?))
    }

    /// Parses a key file: one identity per line, comments after `#`.
    pub fn read_all(text: &str) -> Result<Vec<Self>, AgeError> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let found: Option<Vec<Self>> = lines.map(|line| decoded(line, IDENTITY_HRP).map(Self)).collect();
        found.filter(|found| !found.is_empty()).ok_or(AgeError::NoIdentity)
    }

    pub fn recipient(&self) -> Recipient {
        Recipient(MontgomeryPoint::mul_base_clamped(self.0).to_bytes())
    }

    /// The key as written in a key file.
    pub fn reveal(&self) -> String {
        encoded(IDENTITY_HRP, &self.0).to_ascii_uppercase()
    }

    /// The file key in a stanza, if the stanza was made for this identity.
    fn unwrap(&self, share: &[u8; 32], body: &[u8]) -> Option<[u8; 16]> {
        let shared = shared_secret(self.0, share)?;
        let key = wrap_key(&shared, share, &self.recipient().0)?;
        let mut sealed = body.to_vec();
        key.open_in_place(Nonce::assume_unique_for_key([0; 12]), Aad::empty(), &mut sealed).ok()?;
        sealed.get(..16)?.try_into().ok()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity(…)")
    }
}

fn decoded(text: &str, hrp: &str) -> Option<[u8; 32]> {
    let parsed = bech32::primitives::decode::CheckedHrpstring::new::<Bech32>(text).ok()?;
    if !parsed.hrp().as_str().eq_ignore_ascii_case(hrp) {
        return None;
    }
    let bytes: Vec<u8> = parsed.byte_iter().collect();
    bytes.try_into().ok()
}

fn encoded(hrp: &str, key: &[u8; 32]) -> String {
    // Both prefixes are valid, so this cannot fail.
    Hrp::parse(hrp).ok().and_then(|hrp| bech32::encode::<Bech32>(hrp, key).ok()).unwrap_or_default()
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    OsRng.try_fill_bytes(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

/// `None` if the other side sent a point of low order, which would make the secret predictable.
fn shared_secret(secret: [u8; 32], other: &[u8; 32]) -> Option<[u8; 32]> {
    let shared = MontgomeryPoint(*other).mul_clamped(secret).to_bytes();
    (shared != [0; 32]).then_some(shared)
}

fn derived(secret: &[u8], salt: &[u8], info: &[u8]) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    Hkdf::<Sha256>::new(Some(salt), secret).expand(info, &mut key).ok()?;
    Some(key)
}

fn cipher(key: &[u8; 32]) -> Option<LessSafeKey> {
    UnboundKey::new(&CHACHA20_POLY1305, key).ok().map(LessSafeKey::new)
}

fn wrap_key(shared: &[u8; 32], share: &[u8; 32], recipient: &[u8; 32]) -> Option<LessSafeKey> {
    cipher(&derived(shared, &[share.as_slice(), recipient].concat(), X25519_INFO)?)
}

/// The header's MAC, over everything up to and including its `---`.
fn header_mac(file_key: &[u8; 16], header: &[u8]) -> Option<Hmac<Sha256>> {
    let key = derived(file_key, &[], b"header")?;
    let mac = <Hmac<Sha256> as Mac>::new_from_slice(&key).ok()?;
    Some(mac.chain_update(header))
}

fn internal() -> io::Error {
    io::Error::other("the cipher refused its key")
}

/// The nonce of a chunk: its number, and whether it is the last.
fn nonce(number: u64, is_last: bool) -> Nonce {
    let mut bytes = [0; 12];
    bytes[3..11].copy_from_slice(&number.to_be_bytes());
    bytes[11] = u8::from(is_last);
    Nonce::assume_unique_for_key(bytes)
}

/// Encrypts everything written to it. Call [`finish`](Self::finish) at the end, or readers report a truncated file.
pub struct Encryptor<W: Write> {
    inner: W,
    key: LessSafeKey,
    number: u64,
    plain: Vec<u8>,
    /// A chunk could not be written, so no later one may be written either.
    is_broken: bool,
}

impl<W: Write> Encryptor<W> {
    pub fn new(mut inner: W, recipients: &[Recipient]) -> io::Result<Self> {
        let file_key: [u8; 16] = random()?;
        let mut header = format!("{VERSION}\n");
        for recipient in recipients {
            let ephemeral: [u8; 32] = random()?;
            let share = MontgomeryPoint::mul_base_clamped(ephemeral).to_bytes();
            let shared = shared_secret(ephemeral, &recipient.0).ok_or_else(internal)?;
            let key = wrap_key(&shared, &share, &recipient.0).ok_or_else(internal)?;
            let mut body = file_key.to_vec();
            key.seal_in_place_append_tag(Nonce::assume_unique_for_key([0; 12]), Aad::empty(), &mut body)
                .map_err(|_| internal())?;
            let [share, body] = [share.as_slice(), &body].map(|bytes| STANDARD_NO_PAD.encode(bytes));
            header.push_str(&format!("-> X25519 {share}\n{body}\n"));
        }
        header.push_str("---");
        let mac = header_mac(&file_key, header.as_bytes()).ok_or_else(internal)?.finalize().into_bytes();
        header.push_str(&format!(" {}\n", STANDARD_NO_PAD.encode(mac)));
        inner.write_all(header.as_bytes())?;
        let salt: [u8; 16] = random()?;
        inner.write_all(&salt)?;
        let key = derived(&file_key, &salt, b"payload").and_then(|key| cipher(&key)).ok_or_else(internal)?;
        Ok(Self { inner, key, number: 0, plain: Vec::with_capacity(CHUNK + TAG), is_broken: false })
    }

    fn seal(&mut self, is_last: bool) -> io::Result<()> {
        if std::mem::replace(&mut self.is_broken, true) {
            return Err(ErrorKind::BrokenPipe.into());
        }
        self.key
            .seal_in_place_append_tag(nonce(self.number, is_last), Aad::empty(), &mut self.plain)
            .map_err(|_| internal())?;
        self.inner.write_all(&self.plain)?;
        self.plain.clear();
        self.number += 1;
        self.is_broken = false;
        Ok(())
    }

    pub fn finish(mut self) -> io::Result<W> {
        self.seal(true)?;
        Ok(self.inner)
    }
}

impl<W: Write> Write for Encryptor<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A full chunk waits until more data comes, because the last chunk is sealed differently.
        if self.plain.len() >= CHUNK {
            self.seal(false)?;
        }
        let taken = bytes.len().min(CHUNK - self.plain.len());
        self.plain.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Decrypts what is read. Only authenticated bytes come out, and the end of the stream is where the writer put it.
#[derive(Debug)]
pub struct Decryptor<R: BufRead> {
    inner: R,
    key: LessSafeKey,
    number: u64,
    plain: Vec<u8>,
    at: usize,
    is_over: bool,
}

impl<R: BufRead> Decryptor<R> {
    pub fn new(mut inner: R, identities: &[Identity]) -> Result<Self, AgeError> {
        let file_key = read_header(&mut inner, identities)?;
        let mut salt = [0; 16];
        inner.read_exact(&mut salt).map_err(|_| AgeError::Header)?;
        let key = derived(&file_key, &salt, b"payload").and_then(|key| cipher(&key)).ok_or(AgeError::Header)?;
        Ok(Self { inner, key, number: 0, plain: Vec::new(), at: 0, is_over: false })
    }

    fn open(&mut self) -> io::Result<()> {
        self.plain.clear();
        self.at = 0;
        (&mut self.inner).take((CHUNK + TAG) as u64).read_to_end(&mut self.plain)?;
        let is_last = self.inner.fill_buf()?.is_empty();
        let opened = self.key.open_in_place(nonce(self.number, is_last), Aad::empty(), &mut self.plain);
        let Ok(length) = opened.map(|plain| plain.len()) else {
            let what = if is_last { "it is cut off or was altered" } else { "it was altered" };
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        };
        if length == 0 && self.number > 0 {
            return Err(io::Error::new(ErrorKind::InvalidData, "it was altered"));
        }
        self.plain.truncate(length);
        self.number += 1;
        self.is_over = is_last;
        Ok(())
    }
}

impl<R: BufRead> Read for Decryptor<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.plain.len() && !self.is_over {
            self.open()?;
        }
        let taken = into.len().min(self.plain.len() - self.at);
        into[..taken].copy_from_slice(&self.plain[self.at..self.at + taken]);
        self.at += taken;
        Ok(taken)
    }
}

/// Reads the header and returns the file key.
fn read_header(inner: &mut impl BufRead, identities: &[Identity]) -> Result<[u8; 16], AgeError> {
    let mut header = Vec::new();
    if next_line(inner, &mut header)? != VERSION {
        return Err(AgeError::NotAge);
    }
    let mut file_key = None;
    // The share of the X25519 stanza whose body is on the next line.
    let mut share: Option<[u8; 32]> = None;
    for _ in 0..LINES_MAX {
        let before = header.len();
        let line = next_line(inner, &mut header)?;
        if let Some(mac) = line.strip_prefix("--- ") {
            let file_key = file_key.ok_or(AgeError::WrongKey)?;
            let mac = STANDARD_NO_PAD.decode(mac).map_err(|_| AgeError::Header)?;
            let expected = header_mac(&file_key, &header[..before + "---".len()]).ok_or(AgeError::Header)?;
            return expected.verify_slice(&mac).map(|()| file_key).map_err(|_| AgeError::Header);
        }
        if let Some(arguments) = line.strip_prefix("-> ") {
            let encoded = arguments.strip_prefix("X25519 ");
            share = encoded.and_then(|text| STANDARD_NO_PAD.decode(text).ok()?.try_into().ok());
        } else if let Some(share) = share.take() {
            let body = STANDARD_NO_PAD.decode(&line).map_err(|_| AgeError::Header)?;
            file_key = file_key.or_else(|| identities.iter().find_map(|identity| identity.unwrap(&share, &body)));
        }
    }
    Err(AgeError::Header)
}

/// Returns a line without its line end, and appends the whole line to `header`.
fn next_line(inner: &mut impl BufRead, header: &mut Vec<u8>) -> Result<String, AgeError> {
    let mut line = Vec::new();
    inner.take(LINE_MAX).read_until(b'\n', &mut line)?;
    header.extend_from_slice(&line);
    let text = line.strip_suffix(b"\n").ok_or(AgeError::NotAge)?;
    String::from_utf8(text.to_vec()).map_err(|_| AgeError::NotAge)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(plain: &[u8], recipients: &[Recipient]) -> Vec<u8> {
        let mut out = Encryptor::new(Vec::new(), recipients).expect("begun");
        out.write_all(plain).expect("written");
        out.finish().expect("finished")
    }

    fn opened(sealed: &[u8], identity: &Identity) -> Result<Vec<u8>, AgeError> {
        let mut plain = Vec::new();
        Decryptor::new(sealed, std::slice::from_ref(identity))?.read_to_end(&mut plain)?;
        Ok(plain)
    }

    /// Keys and a file made by the crate `age` 0.12, including a grease stanza.
    #[test]
    fn a_file_made_by_the_age_crate_is_opened() {
        let key = "AGE-SECRET-KEY-146RK984C4RJXUZST6KMDG6ALMKMZ4LNJMYFC99PH0D0YUH3F79HSPPXH7X";
        let sealed = "6167652d656e6372797074696f6e2e6f72672f76310a2d3e205832353531392072542f595a6654723346464871616149\
                           7a426c47415346507674334347547a457561614e326154717658380a6567714962367937732f4b6f72544c6571463777\
                           684663334457364e764e386773576e75777475445942490a2d3e20305f6f412d67726561736520652f29675641206574\
                           722b3a572a0a2b522f706d6a696451673273626645532f424c446132394878674a44456441396458325753634e4c5332\
                           56616d66796d666a41756e68433849565a59366f77670a696f504d704d2b653868656f2b56537a4a5551472b70374648\
                           74384f32706b3358667175467a6e396f6d3576477274614c6369594444633638784a5044670a2d2d2d206341424f4f52\
                           4e4241673265774d7a5a386978432b68575a4b396b756838755a705557745a68307a2f78590a22370877dc0f52dec34c\
                           b3bbd73d0f49249283358847b6197cfef632943c01926c4f23fe8f91c47af6151a94beaddb2aeb43265a4baf35585b9c\
                           e2";
        let identities = Identity::read_all(&format!("# made by age\n\n{key}\n")).expect("a key");
        assert_eq!(identities[0].reveal(), key);
        assert_eq!(
            identities[0].recipient().to_string(),
            "age1dycfj4wnmkyfd2j5jfq44vlxql698mm7apup3f8wtr9c40m5uymsznepg7"
        );
        let sealed = hex::decode(sealed).expect("hexadecimal");
        assert_eq!(opened(&sealed, &identities[0]).expect("opened"), b"a line that age has sealed\n");
    }

    #[test]
    fn each_recipient_opens_files_of_every_length() {
        let identities = [(); 2].map(|()| Identity::generate().expect("a key"));
        let recipients =
            identities.each_ref().map(|identity| identity.recipient().to_string().parse().expect("its own text"));
        for length in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
            let plain: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let sealed = sealed(&plain, &recipients);
            for identity in &identities {
                assert!(opened(&sealed, identity).expect("opened") == plain, "{length}");
            }
        }
        let other = Identity::generate().expect("a key");
        assert!(matches!(opened(&sealed(b"x", &recipients), &other), Err(AgeError::WrongKey)));
    }

    #[test]
    fn truncated_or_altered_files_are_refused() {
        let identity = Identity::generate().expect("a key");
        let plain = vec![7; 2 * CHUNK];
        let whole = sealed(&plain, &[identity.recipient()]);
        let payload = whole.len() - 2 * (CHUNK + TAG);
        // Also at a chunk boundary, where only the last-chunk mark is missing.
        for length in [0, 20, payload - 40, payload, payload + 5, payload + CHUNK + TAG, whole.len() - 1] {
            assert!(opened(&whole[..length], &identity).is_err(), "cut off at {length}");
        }
        for at in [3, 40, 90, payload - 30, payload - 3, payload + 9, whole.len() - 9] {
            let mut altered = whole.clone();
            altered[at] ^= 1;
            assert!(opened(&altered, &identity).is_err(), "altered at {at}");
        }
        assert!(opened(&[whole.as_slice(), b"x"].concat(), &identity).is_err(), "something behind its end");
    }

    /// If a chunk cannot be written because the disk is full for a moment, no later chunk may follow it. The wrapping writers
    /// flush when dropped, and that would leave a gap in the middle.
    #[test]
    fn no_chunk_is_written_after_a_failed_one() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                // Accepts the header, fails on the first chunk, and accepts writes again afterwards.
                self.0 += 1;
                if bytes.len() > CHUNK && self.0 < 4 { Err(ErrorKind::StorageFull.into()) } else { Ok(bytes.len()) }
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let recipient = Identity::generate().expect("a key").recipient();
        let mut out = Encryptor::new(Full(0), &[recipient]).expect("begun");
        let plain = vec![7; 2 * CHUNK];
        assert_eq!(out.write_all(&plain).expect_err("full").kind(), ErrorKind::StorageFull);
        assert_eq!(out.write_all(&plain).expect_err("broken").kind(), ErrorKind::BrokenPipe);
        assert!(out.finish().is_err());
    }

    #[test]
    fn invalid_keys_are_refused() {
        let identity = Identity::generate().expect("a key");
        let (public, private) = (identity.recipient().to_string(), identity.reveal());
        let mistyped = public.replacen(&public[10..11], if &public[10..11] == "q" { "p" } else { "q" }, 1);
        for text in ["", "age1", &mistyped, &private] {
            assert!(text.parse::<Recipient>().is_err(), "{text}");
        }
        for text in ["", "# nothing", &public, &format!("{private}\nx")] {
            assert!(matches!(Identity::read_all(text), Err(AgeError::NoIdentity)), "{text}");
        }
    }
}
