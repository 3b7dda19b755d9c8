//! `/render/image`: transformed images, for public, authenticated and signed URLs.
//!
//! The rows are looked up as for plain downloads. Then the source is read within limits and transformed on a bounded pool, which
//! limits both threads and total pixel memory. Results are cached for a while by version and options. The ETag is the source's,
//! so a conditional request costs no transformation. Builds without Cargo's feature `images` answer all of it with 400.
//!
//! Reference: supabase/storage `src/http/routes/render`, `src/storage/renderer/image.ts`.

#[cfg_attr(not(feature = "images"), expect(dead_code, reason = "only pictures are cropped"))]
mod options;
#[cfg(feature = "images")]
mod picture;
#[cfg(not(feature = "images"))]
#[path = "no_picture.rs"]
mod picture;
mod rate_limiter;
mod rendered;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::http::header::{self, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::TryStreamExt;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tokio::sync::Semaphore;

use self::options::Accepted;
pub use self::options::{Options, SideLimits, SourceLimits};
use self::picture::{MOST_MEMORY, Source, decoded};
use self::rate_limiter::RateLimiter;
use self::rendered::{Fault, Rendered};
use super::download::{Found, check_match, is_unchanged, no_body, send_found};
use super::error::{StorageError, no_such_route};
use super::fields::Fields;
use super::per_client::PerClientLimit;
use super::{Storage, header_text};
use crate::config::Reader;
use crate::http::client::client_address;

/// Source files in memory at once.
const SOURCES: usize = 6;
/// Pixel memory of all transformations together, in units of 1 MiB.
const MEMORY_UNITS: u32 = (MOST_MEMORY / UNIT) as u32;
const UNIT: u64 = 1 << 20;
/// How long a request waits for a slot.
const TURN_WAIT: Duration = Duration::from_secs(10);
/// Bytes of cached results, and of the largest one that is cached.
const KEPT_BYTES: u64 = 8 << 20;
const LARGEST_KEPT: usize = 1 << 20;
/// What a build without image transformation calls it.
const ABSENT: &str = "image transformation, which this build leaves out (`just build` has it),";
/// Approximate number of cached results.
const KEPT: usize = 1000;

/// Settings of image transformation.
#[derive(Clone, Copy, Debug)]
pub struct ImageConfig {
    /// `IMAGE_TRANSFORMATION_ENABLED` (`ENABLE_IMAGE_TRANSFORMATION`), default true; `serve --only storage` has Supabase's
    /// default, false.
    pub enabled: bool,
    /// `IMAGE_TRANSFORMATION_LIMIT_MIN_SIZE` and `…_MAX_SIZE`, pixels, default 1 and 2000.
    pub sides: SideLimits,
    /// `IMGPROXY_MAX_SRC_RESOLUTION`, megapixels, default 50, and `IMGPROXY_MAX_SRC_FILE_SIZE`, bytes, default 25 MB.
    pub source: SourceLimits,
    /// `IMGPROXY_ENABLE_AVIF_DETECTION` (`IMGPROXY_AUTO_AVIF`), default false: whether clients that accept AVIF get it.
    pub avif_by_accept: bool,
    /// `RATE_LIMITER_ENABLED`, default false, and `RATE_LIMITER_RENDER_PATH_MAX_REQ_SEC`, default 5: requests per second of one
    /// client for one path.
    pub rate_limit: Option<u64>,
}

impl ImageConfig {
    pub fn read(reader: &mut Reader<'_>, enabled: bool) -> Self {
        let side = |reader: &mut Reader<'_>, names: &[&'static str], default| {
            reader.parse_or(names, "a whole number of pixels", default)
        };
        let least = side(reader, &["IMAGE_TRANSFORMATION_LIMIT_MIN_SIZE", "IMG_LIMITS_MIN_SIZE"], 1);
        let most = side(reader, &["IMAGE_TRANSFORMATION_LIMIT_MAX_SIZE", "IMG_LIMITS_MAX_SIZE"], 2000);
        if least < 1 || most < least || most > 16_384 {
            reader.problem("IMAGE_TRANSFORMATION_LIMIT_MIN_SIZE and _MAX_SIZE must be between 1 and 16384");
        }
        let is_limited = reader.flag(&["RATE_LIMITER_ENABLED", "ENABLE_RATE_LIMITER"], false);
        let rate_limit = reader.parse_or(&["RATE_LIMITER_RENDER_PATH_MAX_REQ_SEC"], "a number of requests", 5);
        let megapixels: f64 = reader.parse_or(&["IMGPROXY_MAX_SRC_RESOLUTION"], "a number of megapixels", 50.0);
        Self {
            enabled: reader.flag(&["IMAGE_TRANSFORMATION_ENABLED", "ENABLE_IMAGE_TRANSFORMATION"], enabled),
            sides: SideLimits { least: least.max(1), most: most.max(least.max(1)) },
            source: SourceLimits {
                pixels: (megapixels * 1e6).max(0.0) as u64,
                bytes: reader.parse_or(&["IMGPROXY_MAX_SRC_FILE_SIZE"], "a whole number of bytes", 25_000_000),
            },
            avif_by_accept: reader.flag(&["IMGPROXY_ENABLE_AVIF_DETECTION", "IMGPROXY_AUTO_AVIF"], false),
            rate_limit: is_limited.then_some(rate_limit),
        }
    }
}

/// Cache key of a result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Recipe {
    place: String,
    etag: String,
    options: String,
    accepted: Accepted,
}

#[derive(Clone)]
struct ByLength;

impl Weighter<Recipe, Arc<Rendered>> for ByLength {
    fn weight(&self, recipe: &Recipe, rendered: &Arc<Rendered>) -> u64 {
        (rendered.bytes.len() + recipe.place.len() + recipe.options.len() + 200) as u64
    }
}

/// Performs transformations. Cheap to clone.
#[derive(Clone)]
pub struct Renderer {
    sources: Arc<Semaphore>,
    memory: Arc<Semaphore>,
    threads: Arc<Semaphore>,
    /// Transformations in progress per client.
    clients: PerClientLimit,
    kept: Arc<Cache<Recipe, Arc<Rendered>, ByLength>>,
    rate_limiter: Arc<RateLimiter>,
}

impl Default for Renderer {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            sources: Arc::new(Semaphore::new(SOURCES)),
            memory: Arc::new(Semaphore::new(MEMORY_UNITS as usize)),
            threads: Arc::new(Semaphore::new(threads)),
            clients: PerClientLimit::half_of(SOURCES),
            kept: Arc::new(Cache::with_weighter(KEPT, KEPT_BYTES, ByLength)),
            rate_limiter: Arc::default(),
        }
    }
}

impl From<Fault> for StorageError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Internal => Self::Internal("a picture could not be made".to_owned()),
            Fault::Absent => Self::FeatureNotEnabled(ABSENT),
            Fault::Source | Fault::Resolution | Fault::FileSize | Fault::Rejected => {
                Self::InvalidRequest(fault.to_string())
            }
        }
    }
}

/// `/render/image/public/…`.
pub async fn public(storage: web::Data<Storage>, request: HttpRequest) -> Result<HttpResponse, StorageError> {
    let options = storage.asked_of(&request)?;
    let find = async || storage.find_public(&request, "/render/image/public/").await;
    send_found(find().await?, find, async |found| storage.render(&request, found, &options).await).await
}

/// `/render/image/authenticated/…`.
pub async fn authenticated(storage: web::Data<Storage>, request: HttpRequest) -> Result<HttpResponse, StorageError> {
    let options = storage.asked_of(&request)?;
    storage.require_token(&request)?;
    let literal = "/render/image/authenticated/";
    let find = async || storage.find_own(&request, literal, true, "storage.render.image_authenticated").await;
    send_found(find().await?, find, async |found| storage.render(&request, found, &options).await).await
}

/// `/render/image/sign/…?token=`: with the token's transformations, regardless of the query.
pub async fn signed(storage: web::Data<Storage>, request: HttpRequest) -> Result<HttpResponse, StorageError> {
    storage.require_images(&request)?;
    let (found, transformations) = storage.find_signed(&request, "/render/image/sign/").await?;
    let options = Options::of_text(transformations.as_deref().unwrap_or_default());
    let find = async || Ok(storage.find_signed(&request, "/render/image/sign/").await?.0);
    send_found(found, find, async |found| storage.render(&request, found, &options).await).await
}

impl Storage {
    /// Checks that image transformation is enabled and that the client is within its rate limit.
    fn require_images(&self, request: &HttpRequest) -> Result<(), StorageError> {
        let method = if *request.method() == Method::HEAD { &Method::GET } else { request.method() };
        self.config.images.enabled.then_some(()).ok_or_else(|| no_such_route(method, request))?;
        if !cfg!(feature = "images") {
            return Err(Fault::Absent.into());
        }
        let Some(rate_limit) = self.config.images.rate_limit else { return Ok(()) };
        let most = rate_limit.saturating_mul(rate_limiter::WINDOW.as_secs());
        let client = client_address(request, &self.config.trusted_proxies);
        let in_time = self.renderer.rate_limiter.allows(client, request.path(), most, Instant::now());
        if in_time { Ok(()) } else { Err(StorageError::TooOften) }
    }

    fn asked_of(&self, request: &HttpRequest) -> Result<Options, StorageError> {
        self.require_images(request)?;
        Options::of_fields(&Fields::of_query(request.query_string()))
    }

    /// The transformations in a signing request, as stored in the token; `None` for a plain URL.
    pub fn transformations(&self, body: &Fields) -> Result<Option<String>, StorageError> {
        let Some(asked) = body.object("transform")? else { return Ok(None) };
        let text = Options::of_fields(&asked)?.text(self.config.images.sides, true);
        // The original format alone is the file itself.
        Ok(Some(text).filter(|text| self.config.images.enabled && !["", "format:origin"].contains(&text.as_str())))
    }

    async fn render(
        &self,
        request: &HttpRequest,
        found: &Found,
        options: &Options,
    ) -> Result<HttpResponse, StorageError> {
        let mut response = self.headers(request, found);
        check_match(request, &found.object)?;
        let by_accept = options.format.is_none();
        if by_accept {
            response.append_header((header::VARY, "Accept"));
        }
        if is_unchanged(request, &found.object) {
            return Ok(response.status(StatusCode::NOT_MODIFIED).finish());
        }
        let accept = header_text(request, "accept").unwrap_or_default();
        let accepted = Accepted {
            webp: by_accept && accept.contains("image/webp"),
            avif: by_accept && self.config.images.avif_by_accept && accept.contains("image/avif"),
        };
        let client = client_address(request, &self.config.trusted_proxies);
        let rendered = self.picture(found, options, accepted, client).await?;
        response.insert_header((header::CONTENT_TYPE, rendered.mime)).insert_header((header::ACCEPT_RANGES, "none"));
        let shown = options.text(self.config.images.sides, false);
        if let Ok(value) = HeaderValue::from_str(&shown)
            && !shown.is_empty()
        {
            response.insert_header(("X-Transformations", value));
        }
        if *request.method() == Method::HEAD {
            return Ok(no_body(response, rendered.bytes.len() as u64));
        }
        Ok(response.body(rendered.bytes.clone()))
    }

    async fn picture(
        &self,
        found: &Found,
        options: &Options,
        accepted: Accepted,
        client: Option<IpAddr>,
    ) -> Result<Arc<Rendered>, StorageError> {
        let (limits, sides) = (self.config.images.source, self.config.images.sides);
        let recipe = Recipe {
            place: found.place().as_str().to_owned(),
            etag: found.object.text("eTag").to_owned(),
            options: options.text(sides, true),
            accepted,
        };
        if let Some(rendered) = self.renderer.kept.get(&recipe) {
            return Ok(rendered);
        }
        if found.object.size() > limits.bytes {
            return Err(Fault::FileSize.into());
        }
        let turn = |sought: Arc<Semaphore>, units: u32| async move {
            let turn = tokio::time::timeout(TURN_WAIT, sought.acquire_many_owned(units)).await;
            let turn = turn.map_err(|_| StorageError::TooManyRequests)?;
            turn.map_err(|error| StorageError::Internal(error.to_string()))
        };
        // Always acquired in this order, which prevents deadlocks.
        let share = self.renderer.clients.take(client, TURN_WAIT).await.ok_or(StorageError::TooManyRequests)?;
        let source = turn(Arc::clone(&self.renderer.sources), 1).await?;
        let mut held = (share, source);
        let mut file = self.gather(found, limits.bytes).await?;
        let codings = found.object.text("contentEncoding").to_owned();
        if !codings.is_empty() {
            let thread = turn(Arc::clone(&self.renderer.threads), 1).await?;
            // The thread keeps the places if the client leaves meanwhile.
            let image = tokio::task::spawn_blocking(move || {
                let _thread = thread;
                (decoded(file, &codings, limits.bytes), held)
            });
            let image = image.await.map_err(|error| StorageError::Internal(error.to_string()))?;
            (file, held) = (image.0?, image.1);
        }
        let needed = Source::open(&file, &limits)?.memory().div_ceil(UNIT);
        let units = u32::try_from(needed).unwrap_or(MEMORY_UNITS).clamp(1, MEMORY_UNITS);
        let memory = turn(Arc::clone(&self.renderer.memory), units).await?;
        let thread = turn(Arc::clone(&self.renderer.threads), 1).await?;
        let options = options.clone();
        let made = tokio::task::spawn_blocking(move || {
            let _held = (held, memory, thread);
            Source::open(&file, &limits)?.render(&options, sides, &accepted)
        });
        let rendered = made.await.map_err(|error| StorageError::Internal(error.to_string()))??;
        let rendered = Arc::new(rendered);
        if rendered.bytes.len() <= LARGEST_KEPT {
            self.renderer.kept.insert(recipe, Arc::clone(&rendered));
        }
        Ok(rendered)
    }

    /// The whole file, at most `most` bytes.
    async fn gather(&self, found: &Found, most: u64) -> Result<Vec<u8>, StorageError> {
        let mut file = self.files.open(&found.place(), None).await?.ok_or(StorageError::NoSuchFile)?;
        if file.size > most {
            return Err(Fault::FileSize.into());
        }
        let mut bytes = Vec::with_capacity(usize::try_from(file.size).unwrap_or(0));
        while let Some(piece) = file.bytes.try_next().await? {
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }
}
