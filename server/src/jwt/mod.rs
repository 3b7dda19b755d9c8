//! JSON Web Tokens: keys, claims, verification, signing.
