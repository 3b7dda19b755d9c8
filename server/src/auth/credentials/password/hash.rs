//! Password hashes: bcrypt for new ones; argon2 and Firebase's scrypt are verified as well. Recovery codes: argon2id.
//!
//! Hashing takes tens of milliseconds of processor time. It runs on dedicated threads, as many as configured, with a
//! lower priority than all others ([`schedule`](super::schedule)). Reference: supabase/auth
//! `internal/crypto/password.go`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aes::Aes256;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ctr::cipher::{KeyIvInit as _, StreamCipher as _};
use subtle::ConstantTimeEq as _;
use tokio::runtime::Runtime;

use super::queue::Queue;
use super::schedule::give_way;
use crate::auth::credentials::lenient_base64;
use crate::auth::error::{AuthError, AuthResult};

/// Salt and digest of the dummy hash.
const NOBODY: &str = "N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy";

/// Computes and compares hashes. Cheap to clone.
#[derive(Clone)]
pub struct Hasher {
    threads: Arc<Threads>,
    /// A slot per thread. A request that goes away while it waits costs nothing.
    queue: Queue,
    /// bcrypt's cost of new hashes.
    cost: u32,
    /// Compared if there is no real hash, so that both cases take equally long.
    dummy: Arc<str>,
    verifications: Arc<AtomicU64>,
}

/// The threads that hash. They end with the last [`Hasher`], which does not wait for them.
struct Threads(Option<Runtime>);

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(threads) = self.0.take() {
            threads.shutdown_background();
        }
    }
}

/// The text is not a password hash of a known kind.
#[derive(Debug, thiserror::Error)]
#[error("not a password hash of a known kind")]
pub struct InvalidHash;

impl Hasher {
    /// Computes at most `threads` hashes at once, new ones with bcrypt's `cost` (4 to 31). `longest_wait` and `refuses` are
    /// as at [`Queue::new`]. Fails if the threads cannot be created.
    pub fn new(threads: usize, cost: u32, longest_wait: Duration, refuses: bool) -> std::io::Result<Self> {
        let count = threads.max(1);
        let threads = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(count)
            .thread_name("hash")
            .on_thread_start(give_way)
            .build()?;
        let threads = Arc::new(Threads(Some(threads)));
        let queue = Queue::new(count, longest_wait, refuses);
        let dummy = format!("$2a${cost:02}${NOBODY}").into();
        Ok(Self { threads, queue, cost, dummy, verifications: Arc::default() })
    }

    /// The number of comparisons since the start, including those with the dummy hash.
    pub fn verifications(&self) -> u64 {
        self.verifications.load(Ordering::Relaxed)
    }

    /// A new hash. Only the first 72 bytes of a password count in bcrypt; longer ones are refused before.
    /// `client` takes its turn among others.
    pub async fn hash(&self, client: &str, password: &str) -> AuthResult<String> {
        let (password, cost) = (password.to_owned(), self.cost);
        self.run(client, move || {
            bcrypt::hash_with_result(password, cost).map(|parts| parts.format_for_version(bcrypt::Version::TwoA))
        })
        .await?
        .map_err(|error| {
            AuthError::internal("Error hashing the password")
                .caused_by(crate::auth::error::Fault::new(error.to_string()))
        })
    }

    /// Whether `password` matches `hash`. Without a hash the dummy is compared, and never matches.
    pub async fn verify(&self, client: &str, password: &str, hash: Option<&str>) -> AuthResult<bool> {
        self.verifications.fetch_add(1, Ordering::Relaxed);
        let known = hash.is_some_and(|hash| !hash.is_empty());
        let hash = hash.filter(|_| known).unwrap_or(&self.dummy).to_owned();
        let password = password.to_owned();
        Ok(self.run(client, move || compare(&password, &hash)).await? && known)
    }

    /// Hashes of recovery codes, in one turn of `client`.
    pub async fn hash_codes(&self, client: &str, codes: &[String]) -> AuthResult<Vec<String>> {
        let codes = codes.to_owned();
        let hashed =
            self.run(client, move || codes.iter().map(|code| hash_code(code)).collect::<Option<Vec<_>>>()).await?;
        hashed.ok_or_else(|| AuthError::internal("Error generating recovery codes"))
    }

    /// The place of the first hash that `code` matches. All are compared, so the time does not tell which.
    pub async fn find_code(&self, client: &str, code: &str, hashes: Vec<String>) -> AuthResult<Option<usize>> {
        let code = code.to_owned();
        self.run(client, move || {
            let compared: Vec<bool> = hashes.iter().map(|hash| is_code_of(&code, hash)).collect();
            compared.iter().position(|is_met| *is_met)
        })
        .await
    }

    async fn run<T: Send + 'static>(&self, client: &str, work: impl FnOnce() -> T + Send + 'static) -> AuthResult<T> {
        let unavailable = || AuthError::internal("Unable to process the password");
        let threads = self.threads.0.as_ref().ok_or_else(unavailable)?;
        let slot = self.queue.enter(client).await?;
        let work = async move {
            let done = work();
            slot.used();
            done
        };
        threads.spawn(work).await.map_err(|_| unavailable())
    }
}

/// Checks that a hash can be imported.
pub fn check(hash: &str) -> Result<(), InvalidHash> {
    if hash.starts_with("$argon2") {
        Argon2Hash::parse(hash).map(|_| ()).ok_or(InvalidHash)
    } else if hash.starts_with("$fbscrypt") {
        FirebaseHash::parse(hash).map(|_| ()).ok_or(InvalidHash)
    } else {
        hash.parse::<bcrypt::HashParts>().map(|_| ()).map_err(|_| InvalidHash)
    }
}

impl Hasher {
    /// See [`check`].
    pub fn check_import(hash: &str) -> Result<(), InvalidHash> {
        check(hash)
    }
}

/// The costs of a recovery code's hash: less than a password's, because nobody can guess 65 bits and more.
const CODE_MEMORY_KIB: u32 = 19_456;
const CODE_ITERATIONS: u32 = 1;

/// `$argon2id$v=19$m=19456,t=1,p=1$salt$hash`; `None` if there is no memory for it.
fn hash_code(code: &str) -> Option<String> {
    let salt: [u8; 16] = rand::random();
    let params = argon2::Params::new(CODE_MEMORY_KIB, CODE_ITERATIONS, 1, Some(32)).ok()?;
    let argon2 = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
    let mut hash = [0; 32];
    argon2.hash_password_into(code.as_bytes(), &salt, &mut hash).ok()?;
    let (salt, hash) = (STANDARD_NO_PAD.encode(salt), STANDARD_NO_PAD.encode(hash));
    Some(format!("$argon2id$v=19$m={CODE_MEMORY_KIB},t={CODE_ITERATIONS},p=1${salt}${hash}"))
}

/// Whether the hash is that of a recovery code. An unreadable hash matches none.
fn is_code_of(code: &str, hash: &str) -> bool {
    hash.starts_with("$argon2id$") && Argon2Hash::parse(hash).is_some_and(|parsed| parsed.is_met_by(code))
}

fn compare(password: &str, hash: &str) -> bool {
    if hash.starts_with("$argon2") {
        Argon2Hash::parse(hash).is_some_and(|parsed| parsed.is_met_by(password))
    } else if hash.starts_with("$fbscrypt") {
        FirebaseHash::parse(hash).is_some_and(|parsed| parsed.is_met_by(password))
    } else {
        // More than 72 bytes never match: upstream compares the first 72 only.
        password.len() <= 72 && bcrypt::verify(password, hash).unwrap_or(false)
    }
}

/// Digits and nothing else.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

/// `$argon2i$v=19$m=…,t=…,p=…$salt$hash`, or argon2id; within the limits upstream sets on cost.
struct Argon2Hash {
    argon2: argon2::Argon2<'static>,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

impl Argon2Hash {
    fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('$').collect();
        let ["", algorithm, "v=19", costs, salt, hash] = parts[..] else { return None };
        let algorithm = match algorithm {
            "argon2i" => argon2::Algorithm::Argon2i,
            "argon2id" => argon2::Algorithm::Argon2id,
            _ => return None,
        };
        let costs: Vec<&str> = costs.split(',').collect();
        let [memory, time, threads] = costs[..] else { return None };
        let cost = |text: &str, key: &str| number(text.strip_prefix(key)?);
        let (memory, time, threads) = (cost(memory, "m=")?, cost(time, "t=")?, cost(threads, "p=")?);
        if memory > 1024 * 1024 || time > 20 || threads > 16 {
            return None;
        }
        let decode = |text: &str| lenient_base64::standard_no_pad(text).filter(|bytes| !bytes.is_empty());
        let (salt, hash) = (decode(salt)?, decode(hash)?);
        let params = argon2::Params::new(memory, time, threads, Some(hash.len())).ok()?;
        Some(Self { argon2: argon2::Argon2::new(algorithm, argon2::Version::V0x13, params), salt, hash })
    }

    fn is_met_by(&self, password: &str) -> bool {
        let mut derived = vec![0; self.hash.len()];
        self.argon2.hash_password_into(password.as_bytes(), &self.salt, &mut derived).is_ok()
            && bool::from(derived.ct_eq(&self.hash))
    }
}

/// `$fbscrypt$v=1,n=…,r=…,p=…,ss=…,sk=…$salt$hash`: Firebase's scrypt, whose key encrypts the project's signer
/// key. Reference: <https://github.com/firebase/scrypt>.
struct FirebaseHash {
    params: scrypt::Params,
    salt: Vec<u8>,
    signer_key: Vec<u8>,
    hash: Vec<u8>,
}

impl FirebaseHash {
    fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('$').collect();
        let ["", "fbscrypt", settings, salt, hash] = parts[..] else { return None };
        // In this order, the last two if they are there.
        let mut settings = settings.split(',').peekable();
        let mut setting = |key: &str| Some(&settings.next_if(|pair| pair.starts_with(key))?[key.len()..]);
        if setting("v=")? != "1" || salt.is_empty() || hash.is_empty() {
            return None;
        }
        let costs = [setting("n=")?, setting("r=")?, setting("p=")?];
        let (separator, signer_key) = (setting("ss="), setting("sk="));
        if settings.next().is_some() || separator == Some("") || signer_key == Some("") {
            return None;
        }
        let [log_n, rounds, threads] = costs.map(|text| number(text).filter(|n| *n > 0));
        // Takes 128 · r · 2^n bytes of memory: 16 MiB for Firebase's parameters (n = 14, r = 8); nobody needs more than
        // 1 GiB.
        let log_n = u8::try_from(log_n?).ok().filter(|n| *n <= 20)?;
        let (rounds, threads) = (rounds?, threads?);
        if rounds > 8 || threads > 16 {
            return None;
        }
        let mut salt = lenient_base64::standard(salt)?;
        salt.extend(lenient_base64::standard(separator.unwrap_or_default())?);
        Some(Self {
            params: scrypt::Params::new(log_n, rounds, threads, 32).ok()?,
            salt,
            signer_key: lenient_base64::standard(signer_key.unwrap_or_default())?,
            hash: lenient_base64::standard(hash)?,
        })
    }

    fn is_met_by(&self, password: &str) -> bool {
        let mut key = [0_u8; 32];
        if scrypt::scrypt(password.as_bytes(), &self.salt, &self.params, &mut key).is_err() {
            return false;
        }
        let mut derived = self.signer_key.clone();
        ctr::Ctr128BE::<Aes256>::new(&key.into(), &[0; 16].into()).apply_keystream(&mut derived);
        !derived.is_empty() && bool::from(derived.ct_eq(&self.hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Of the reference implementations: `htpasswd -B`, `argon2`.
    const ARGON2ID: &str = "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$";

    #[test]
    fn bcrypt_is_verified_in_each_of_its_spellings_but_not_beyond_72_bytes() {
        let hash = bcrypt::hash_with_result("secret", 4).expect("hash").format_for_version(bcrypt::Version::TwoA);
        for version in ["$2a$", "$2b$", "$2y$"] {
            let hash = hash.replacen("$2a$", version, 1);
            assert!(compare("secret", &hash), "{version}");
            assert!(!compare("Secret", &hash), "{version}");
        }
        let long = "x".repeat(72);
        let hash = bcrypt::hash(&long, 4).expect("hash");
        assert!(compare(&long, &hash));
        assert!(!compare(&format!("{long}y"), &hash));
    }

    #[test]
    fn a_recovery_code_matches_its_own_hash_only() {
        let (one, two) = (hash_code("abcd2345abcd2345").expect("hash"), hash_code("abcd2345abcd2345").expect("hash"));
        assert!(one.starts_with("$argon2id$v=19$m=19456,t=1,p=1$"), "{one}");
        assert_ne!(one, two, "each has its salt");
        assert!(is_code_of("abcd2345abcd2345", &one) && is_code_of("abcd2345abcd2345", &two));
        assert!(!is_code_of("abcd2345abcd2346", &one));
        let other_kind = one.replacen("argon2id", "argon2i", 1);
        for unreadable in ["", "$argon2id$", "abcd2345abcd2345", &other_kind] {
            assert!(!is_code_of("abcd2345abcd2345", unreadable), "{unreadable}");
        }
    }

    #[test]
    fn argon2_is_verified_with_the_costs_of_its_text() {
        let parsed = Argon2Hash::parse(&format!("{ARGON2ID}{}", STANDARD_NO_PAD.encode([0; 32]))).expect("parsed");
        let mut derived = vec![0; 32];
        parsed.argon2.hash_password_into(b"secret", b"somesalt", &mut derived).expect("derived");
        let hash = format!("{ARGON2ID}{}", STANDARD_NO_PAD.encode(&derived));
        assert!(compare("secret", &hash));
        assert!(!compare("other", &hash));
    }

    #[test]
    fn firebases_scrypt_is_verified() {
        // The example of firebase/scrypt.
        let hash = "$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk=jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==\
            $42xEC+ixf3L2lw==$lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==";
        assert!(compare("user1password", hash));
        assert!(!compare("user2password", hash));
    }

    #[test]
    fn stray_bits_of_a_stored_hash_are_ignored() {
        // 32 bytes leave two bits of the last character to spare, 8 bytes two.
        let hash = |last| format!("{ARGON2ID}{}{last}", &STANDARD_NO_PAD.encode([0; 32])[..42]);
        let parsed = |text: &str| Argon2Hash::parse(text).expect("parsed").hash;
        assert_eq!(parsed(&hash('A')), parsed(&hash('D')));
        assert_ne!(parsed(&hash('A')), parsed(&hash('E')));
    }

    #[test]
    fn unusable_hashes_are_not_imported() {
        for bad in [
            "",
            "plain",
            "$2a$10$short",
            "$argon2d$v=19$m=64,t=1,p=1$c29tZXNhbHQ$AAAA",
            "$argon2id$v=19$m=9999999,t=1,p=1$c29tZXNhbHQ$AAAA",
            "$argon2id$v=16$m=64,t=1,p=1$c29tZXNhbHQ$AAAA",
            "$argon2id$v=19$m=+64,t=1,p=1$c29tZXNhbHQ$AAAA",
            "$fbscrypt$v=2,n=14,r=8,p=1,ss=Bw==,sk=AAAA$AAAA$AAAA",
            "$fbscrypt$v=1,r=8,n=14,p=1,ss=Bw==,sk=AAAA$AAAA$AAAA",
            "$fbscrypt$v=1,n=0,r=8,p=1,ss=Bw==,sk=AAAA$AAAA$AAAA",
            "$fbscrypt$v=1,n=14,r=8,p=1,ss=,sk=AAAA$AAAA$AAAA",
            "$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw,sk=AAAA$AAAA$AAAA",
            "$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk=AAAA,x=1$AAAA$AAAA",
            "$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk=AAAA$AAAA$",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn without_a_hash_a_dummy_hash_of_the_same_cost_is_compared() {
        let hasher = Hasher::new(1, 5, Duration::from_secs(60), false).expect("a thread");
        let cost = |hash: &str| hash.parse::<bcrypt::HashParts>().expect("a hash").get_cost();
        let hash = hasher.hash("", "secret").await.expect("hashed");
        assert_eq!((cost(&hash), cost(&hasher.dummy)), (5, 5));
        assert!(!hasher.verify("", "x", None).await.expect("verified"));
        assert!(!hasher.verify("", "x", Some("")).await.expect("verified"));
        assert_eq!(hasher.verifications(), 2);
    }
}
