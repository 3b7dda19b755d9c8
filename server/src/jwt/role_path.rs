//! The path to the role in a token: the setting `jwt-role-claim-key`.
//!
//! An RFC 9535 JSONPath, or the older syntax `.a."b-c"[0][?(@ == "x")]`. Reference: PostgREST `Config/JSPath.hs`,
//! `Config/DeprecatedJSPath.hs`.

use serde_json::Value;
use serde_json_path::JsonPath;

use super::Claims;

/// A path to the role among the claims.
#[derive(Clone, Debug)]
pub enum RolePath {
    /// A member at the top: the usual `$.role`.
    Member(String),
    JsonPath(Box<JsonPath>),
    Older(Vec<Step>),
}

/// A step of the older syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Member(String),
    Index(usize),
    /// Only as the last step: the first text of a list that compares.
    First(Comparison, String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    StartsWith,
    EndsWith,
    Contains,
}

impl Default for RolePath {
    fn default() -> Self {
        Self::Member("role".to_owned())
    }
}

impl RolePath {
    /// The error is a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix("$.")
            && !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_')
        {
            return Ok(Self::Member(name.to_owned()));
        }
        match JsonPath::parse(text) {
            Ok(path) => Ok(Self::JsonPath(Box::new(path))),
            Err(error) => {
                parse_older(text).map(Self::Older).ok_or_else(|| format!("'{text}' is not a JSONPath: {error}"))
            }
        }
    }

    /// The role, if the path matches; values that are not texts are returned as JSON text.
    pub fn find(&self, claims: &Claims) -> Option<String> {
        let found = match self {
            Self::Member(name) => claims.get(name)?.clone(),
            Self::JsonPath(path) => path.query(&Value::Object(claims.as_object().clone())).first()?.clone(),
            Self::Older(steps) => follow(steps, &Value::Object(claims.as_object().clone()))?.clone(),
        };
        Some(match found {
            Value::String(role) => role,
            other => other.to_string(),
        })
    }
}

fn follow<'a>(steps: &[Step], value: &'a Value) -> Option<&'a Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(value) };
    match step {
        Step::Member(name) => follow(rest, value.as_object()?.get(name)?),
        Step::Index(index) => follow(rest, value.as_array()?.get(*index)?),
        Step::First(comparison, wanted) => value.as_array()?.iter().find(|item| {
            item.as_str().is_some_and(|text| match comparison {
                Comparison::Equal => text == wanted,
                Comparison::NotEqual => text != wanted,
                Comparison::StartsWith => text.starts_with(wanted),
                Comparison::EndsWith => text.ends_with(wanted),
                Comparison::Contains => text.contains(wanted),
            })
        }),
    }
}

fn parse_older(text: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("[?(") {
            let after = after.strip_prefix('@')?.trim_start();
            let (comparison, after) = [
                ("==^", Comparison::EndsWith),
                ("==", Comparison::Equal),
                ("!=", Comparison::NotEqual),
                ("^==", Comparison::StartsWith),
                ("*==", Comparison::Contains),
            ]
            .into_iter()
            .find_map(|(sign, comparison)| after.strip_prefix(sign).map(|after| (comparison, after)))?;
            let (wanted, after) = quoted(after.trim_start())?;
            if after != ")]" {
                return None;
            }
            steps.push(Step::First(comparison, wanted.to_owned()));
            rest = "";
        } else if let Some(after) = rest.strip_prefix('[') {
            let (digits, after) = after.split_once(']')?;
            if !digits.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            steps.push(Step::Index(digits.parse().ok()?));
            rest = after;
        } else {
            let after = rest.strip_prefix('.')?;
            let bare =
                after.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$' | '@'))).unwrap_or(after.len());
            let (name, after) = if bare > 0 { after.split_at(bare) } else { quoted(after)? };
            steps.push(Step::Member(name.to_owned()));
            rest = after;
        }
    }
    (!steps.is_empty()).then_some(steps)
}

fn quoted(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('"')?.split_once('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(path: &str, claims: &str) -> Option<String> {
        RolePath::parse(path).expect("path").find(&Claims::parse(claims.as_bytes()).expect("object"))
    }

    #[test]
    fn both_path_syntaxes_find_the_role() {
        let claims = r#"{"role":"top","a":{"b-c":["x","y-admin","admin-z"]},"grants":[{"name":"n","main":true}]}"#;
        for (path, found) in [
            ("$.role", Some("top")),
            (".role", Some("top")),
            ("$['role']", Some("top")),
            ("$.a['b-c'][1]", Some("y-admin")),
            (r#".a."b-c"[0]"#, Some("x")),
            (r#".a."b-c"[?(@ == "x")]"#, Some("x")),
            (r#".a."b-c"[?(@ != "x")]"#, Some("y-admin")),
            (r#".a."b-c"[?(@ ^== "admin")]"#, Some("admin-z")),
            (r#".a."b-c"[?(@ ==^ "admin")]"#, Some("y-admin")),
            (r#".a."b-c"[?(@*=="dmin")]"#, Some("y-admin")),
            ("$.grants[?@.main == true].name", Some("n")),
            ("$.a['b-c'][?search(@, '^admin')]", Some("admin-z")),
            ("$.none", None),
            (".role[0]", None),
        ] {
            assert_eq!(role(path, claims).as_deref(), found, "{path}");
        }
    }

    #[test]
    fn non_string_roles_become_json_text() {
        assert_eq!(role("$.role", r#"{"role":null}"#).as_deref(), Some("null"));
        assert_eq!(role("$.role", r#"{"role":{"a":1}}"#).as_deref(), Some(r#"{"a":1}"#));
        assert_eq!(role("$.role", "{}"), None);
    }

    #[test]
    fn other_paths_are_refused() {
        for path in ["role", "", ".a[", r#".a[?(@ == "x")].b"#, "$..[", ".a-b"] {
            assert!(RolePath::parse(path).is_err(), "{path}");
        }
    }
}
