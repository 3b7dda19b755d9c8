//! The claims of an access token that this API reads.

use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::auth::error::{AuthError, AuthResult, Code};

/// What a token says about its user.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Claims {
    pub sub: String,
    pub aud: Audience,
    pub role: String,
    pub session_id: String,
    pub is_anonymous: bool,
    pub client_id: String,
    pub scope: String,
}

/// One audience or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Audience {
    One(String),
    Many(Vec<String>),
}

impl Default for Audience {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl Claims {
    /// `None` if a claim of an access token has a wrong type, even if it is not read here.
    pub fn read(mut claims: Map<String, Value>) -> Option<Self> {
        claims.retain(|_, value| !value.is_null());
        let fits = claims.iter().all(|(name, value)| match name.as_str() {
            "email" | "phone" | "aal" => value.is_string(),
            "app_metadata" | "user_metadata" => value.is_object(),
            "amr" => value.is_array(),
            _ => true,
        });
        if !fits {
            return None;
        }
        serde_json::from_value(Value::Object(claims)).ok()
    }

    /// Whether the claim is missing. An empty text is an audience: that of a server without one.
    pub fn has_no_audience(&self) -> bool {
        matches!(&self.aud, Audience::Many(many) if many.is_empty())
    }

    /// The first audience, `""` if there is none.
    pub fn first_audience(&self) -> &str {
        match &self.aud {
            Audience::One(aud) => aud,
            Audience::Many(many) => many.first().map_or("", String::as_str),
        }
    }

    /// The session the token belongs to; `None` for the zero uuid.
    pub fn session(&self) -> AuthResult<Option<Uuid>> {
        if self.session_id.is_empty() {
            return Ok(None);
        }
        let id = Uuid::parse_str(&self.session_id)
            .map_err(|_| AuthError::forbidden(Code::BadJwt, "invalid claim: session_id claim must be a UUID"))?;
        Ok((!id.is_nil()).then_some(id))
    }
}
