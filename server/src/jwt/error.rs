//! Why a token was refused.

/// A token that is not accepted. The message is the reference's and safe to show (PostgREST `Error.hs`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwtError {
    /// There is a token, but no key to check it with.
    #[error("Server lacks JWT secret")]
    NoSecret,
    /// The token has no role, and anonymous access is disabled.
    #[error("Anonymous access is disabled")]
    TokenRequired,
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    Claims(#[from] ClaimsError),
}

impl JwtError {
    /// PostgREST's code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSecret => "PGRST300",
            Self::Decode(_) => "PGRST301",
            Self::TokenRequired => "PGRST302",
            Self::Claims(_) => "PGRST303",
        }
    }

    /// HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            Self::NoSecret => 500,
            Self::TokenRequired | Self::Decode(_) | Self::Claims(_) => 401,
        }
    }

    pub fn message(&self) -> String {
        self.to_string()
    }

    pub fn details(&self) -> Option<String> {
        match self {
            Self::Decode(error) => error.details().map(str::to_owned),
            Self::NoSecret | Self::TokenRequired | Self::Claims(_) => None,
        }
    }

    /// The `WWW-Authenticate` header of the refusal.
    pub fn www_authenticate(&self) -> Option<String> {
        match self {
            Self::NoSecret => None,
            Self::TokenRequired => Some("Bearer".to_owned()),
            Self::Decode(_) | Self::Claims(_) => {
                Some(format!("Bearer error=\"invalid_token\", error_description=\"{self}\""))
            }
        }
    }
}

/// Faults of form, key or signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("Empty JWT is sent in Authorization header")]
    Empty,
    #[error("Expected 3 parts in JWT; got {0}")]
    Parts(usize),
    /// No key has the token's algorithm and `kid`.
    #[error("No suitable key or wrong key type")]
    NoSuitableKey,
    /// There are such keys, but none of them signed the token.
    #[error("No suitable key or wrong key type")]
    NoKeyFits,
    #[error("Wrong or unsupported encoding algorithm")]
    Unsecured,
    /// The parts are not base64url, or the header is not that of a signed token.
    #[error("JWT cryptographic operation failed")]
    Unreadable,
}

impl DecodeError {
    pub fn details(&self) -> Option<&'static str> {
        match self {
            Self::NoSuitableKey => Some("No suitable key was found to decode the JWT"),
            Self::NoKeyFits => Some("None of the keys was able to decode the JWT"),
            Self::Unsecured => Some("JWT is unsecured but expected 'alg' was not 'none'"),
            Self::Empty | Self::Parts(_) | Self::Unreadable => None,
        }
    }
}

/// Claims that are not acceptable, now or ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimsError {
    #[error("JWT expired")]
    Expired,
    #[error("JWT not yet valid")]
    NotYetValid,
    #[error("JWT issued at future")]
    IssuedAtFuture,
    #[error("JWT not in audience")]
    NotInAudience,
    /// An ID token of the OAuth server identifies its user to a client and is no access token.
    #[error("JWT is an ID token")]
    IdToken,
    #[error("Parsing claims failed")]
    Unreadable,
    #[error("The JWT 'exp' claim must be a number")]
    ExpNotNumber,
    #[error("The JWT 'nbf' claim must be a number")]
    NbfNotNumber,
    #[error("The JWT 'iat' claim must be a number")]
    IatNotNumber,
    #[error("The JWT 'aud' claim must be a string or an array of strings")]
    AudNotString,
}
