//! Content negotiation: the media type of the answer, and the handler that produces it.
//!
//! Reference: PostgREST `src/library/PostgREST/Plan/Negotiate.hs`.

use crate::rest::error::ApiError;
use crate::rest::request::media::MediaType;
use crate::rest::request::prefer::Return;
use crate::rest::request::{Action, ApiRequest, CallMethod};
use crate::schema_cache::{HandlerTarget, MediaHandler, QualifiedName, SchemaCache};

/// The handler that turns rows into a body.
#[derive(Clone, Debug, PartialEq)]
pub enum Handler {
    Json,
    ArrayStripped,
    Singular {
        stripped: bool,
    },
    GeoJson,
    Csv,
    /// An aggregate or domain of the database; `row`: the relation its argument is cast to.
    Custom {
        function: QualifiedName,
        row: Option<QualifiedName>,
    },
    /// No body is made.
    Nothing,
}

/// The first acceptable type that can be produced for `relation`. `default_select`: the request asks for
/// `*` without embeds, which is what handlers of a relation need.
pub fn negotiate(
    request: &ApiRequest,
    relation: &QualifiedName,
    cache: &SchemaCache,
    plan_enabled: bool,
    default_select: bool,
) -> Result<(Handler, MediaType), ApiError> {
    let producers = Producers { cache, relation, plan_enabled, default_select };
    let Some((handler, media)) = request.accept.iter().find_map(|media| producers.find(media)) else {
        return Err(ApiError::MediaTypes(request.accept.iter().map(MediaType::mime).collect()));
    };
    let bodiless = match &request.action {
        Action::Mutate { .. } => request.preferences.returning != Some(Return::Representation),
        Action::Read { head, .. } => *head,
        Action::Call { method, .. } => *method == CallMethod::Head,
        _ => false,
    };
    Ok((if bodiless { Handler::Nothing } else { handler }, media))
}

struct Producers<'a> {
    cache: &'a SchemaCache,
    relation: &'a QualifiedName,
    plan_enabled: bool,
    default_select: bool,
}

impl Producers<'_> {
    fn find(&self, media: &MediaType) -> Option<(Handler, MediaType)> {
        match media {
            // Types with parameters of their own cannot be replaced.
            MediaType::Singular { stripped } => Some((Handler::Singular { stripped: *stripped }, media.clone())),
            MediaType::ArrayStripped => Some((Handler::ArrayStripped, media.clone())),
            MediaType::Plan { .. } if !self.plan_enabled => None,
            MediaType::Plan { of, .. } => {
                let handler = match &**of {
                    MediaType::Singular { stripped } => Handler::Singular { stripped: *stripped },
                    MediaType::ArrayStripped => Handler::ArrayStripped,
                    other => self.replaceable(other)?.0,
                };
                Some((handler, media.clone()))
            }
            other => self.replaceable(other),
        }
    }

    fn replaceable(&self, media: &MediaType) -> Option<(Handler, MediaType)> {
        let handlers = self.cache.media_handlers();
        if !handlers.is_empty() {
            let name = media.mime();
            if self.default_select {
                let QualifiedName { schema, name: relation } = self.relation;
                let own = handlers.named(schema, relation, "*/*").or_else(|| handlers.named(schema, relation, &name));
                if let Some(handler) = own {
                    return Some(custom(handler));
                }
            }
            if let Some(handler) = handlers.any(&name) {
                return Some(custom(handler));
            }
        }
        match media {
            MediaType::Json | MediaType::Any => Some((Handler::Json, MediaType::Json)),
            MediaType::Csv => Some((Handler::Csv, MediaType::Csv)),
            MediaType::GeoJson => Some((Handler::GeoJson, MediaType::GeoJson)),
            _ => None,
        }
    }
}

fn custom(handler: &MediaHandler) -> (Handler, MediaType) {
    let row = match &handler.target {
        HandlerTarget::Named(relation) => Some(relation.clone()),
        HandlerTarget::AnyElement => None,
    };
    (Handler::Custom { function: handler.function.clone(), row }, MediaType::parse(&handler.content_type))
}
