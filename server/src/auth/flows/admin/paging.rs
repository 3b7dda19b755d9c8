//! Pagination of lists, with its headers. Reference: supabase/auth `internal/api/pagination.go`.

use actix_web::HttpResponse;
use actix_web::http::header::{HeaderName, HeaderValue};
use url::form_urlencoded::Serializer;

use crate::auth::door::request::Request;
use crate::auth::error::{AuthError, AuthResult};

/// One page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// From 1; 0 is the first as well.
    pub number: u64,
    pub size: u64,
}

impl Page {
    /// Reads `page` and `per_page`; empty ones are 1 and 50.
    pub fn read(request: &Request) -> AuthResult<Self> {
        let number = |name: &str, default: u64| match request.query(name).unwrap_or("") {
            "" => Ok(default),
            text if text.starts_with('+') => Err(bad(text, "invalid syntax")),
            text => text.parse::<u64>().map_err(|error| {
                let range = *error.kind() == std::num::IntErrorKind::PosOverflow;
                bad(text, if range { "value out of range" } else { "invalid syntax" })
            }),
        };
        let page = Self { number: number("page", 1)?, size: number("per_page", 50)? };
        if page.size == 0 {
            // Upstream divides by it.
            return Err(AuthError::invalid("Bad Pagination Parameters: per_page must be at least 1"));
        }
        Ok(page)
    }

    pub fn limit(&self) -> i64 {
        i64::try_from(self.size).unwrap_or(i64::MAX)
    }

    pub fn offset(&self) -> i64 {
        i64::try_from(self.number.saturating_sub(1).saturating_mul(self.size)).unwrap_or(i64::MAX)
    }

    /// Adds `Link` and `X-Total-Count` for a list of `total` entries.
    pub fn add_headers(&self, response: &mut HttpResponse, request: &Request, total: u64) {
        let last = total.div_ceil(self.size);
        let link = |page: u64, rel: &str| {
            let mut pairs: Vec<(String, String)> =
                request.query_pairs().iter().filter(|(name, _)| name != "page").cloned().collect();
            pairs.push(("page".to_owned(), page.to_string()));
            pairs.sort_by(|a, b| a.0.cmp(&b.0));
            let query = Serializer::new(String::new()).extend_pairs(pairs).finish();
            format!("<{}?{query}>; rel=\"{rel}\"", request.path())
        };
        let mut header = String::new();
        if last > self.number {
            header = format!("{}, ", link(self.number + 1, "next"));
        }
        header.push_str(&link(last, "last"));
        for (name, value) in [("link", header), ("x-total-count", total.to_string())] {
            if let Ok(value) = HeaderValue::from_str(&value) {
                response.headers_mut().insert(HeaderName::from_static(name), value);
            }
        }
    }
}

fn bad(text: &str, why: &str) -> AuthError {
    AuthError::invalid(format!("Bad Pagination Parameters: strconv.ParseUint: parsing {text:?}: {why}"))
}
