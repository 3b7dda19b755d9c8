//! Warnings about the keys of a project's configuration.

use std::collections::BTreeMap;

use super::keys::Use::{AlwaysOn, Flag, NotFlag, NotServed};
use super::keys::use_of;
use super::values::{Value, Values, parse_flag};

/// Sentences about keys that are unknown, have no effect here, or have an invalid value.
pub fn warnings(values: &Values) -> Vec<String> {
    let mut warnings = Vec::new();
    for (path, value) in values.iter() {
        if path.starts_with("remotes.") {
            continue;
        }
        let text = match value {
            Value::Text(text) => text.as_str(),
            Value::List(_) => "",
        };
        match use_of(path) {
            None => warnings.push(format!("supabase/config.toml: unknown key {path}")),
            Some(NotServed(why)) if !matches!(text, "" | "false" | "0") => {
                warnings.push(format!("supabase/config.toml: {path} is not supported: {why}"));
            }
            Some(AlwaysOn(what)) if parse_flag(text) == Some(false) => {
                warnings.push(format!("supabase/config.toml: {path} cannot be turned off: {what} is always served"));
            }
            Some(Flag(_) | NotFlag(_) | AlwaysOn(_)) if parse_flag(text).is_none() && values.text(path).is_some() => {
                warnings.push(format!("supabase/config.toml: {path} must be true or false, not '{text}'"));
            }
            Some(_) => {}
        }
    }
    let limits: Vec<&str> = values.iter().filter_map(|(path, value)| other_limit(path, value)).collect();
    if !limits.is_empty() {
        warnings.push(format!(
            "supabase/config.toml: auth.rate_limit has no effect on a local server, which has no limits ({})",
            limits.join(", ")
        ));
    }
    warnings.extend(remotes(values));
    warnings
}

/// What the Supabase CLI refuses in `[remotes.*]`, which has no effect here: ids that are none, and ids that stand twice.
fn remotes(values: &Values) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for (path, value) in values.iter() {
        let name = path.strip_prefix("remotes.").and_then(|rest| rest.strip_suffix(".project_id"));
        let (Some(name), Value::Text(id)) = (name, value) else { continue };
        if id.len() != 20 || !id.bytes().all(|byte| byte.is_ascii_lowercase()) {
            warnings.push(format!(
                "supabase/config.toml: {path} must be the 20 lower-case letters of a hosted project's id, not '{id}'"
            ));
        } else if let Some(other) = seen.insert(id, name) {
            warnings.push(format!("supabase/config.toml: remotes.{other} and remotes.{name} have the same project_id"));
        }
    }
    warnings
}

/// The name of a rate limit that the configuration changes.
fn other_limit<'a>(path: &'a str, value: &Value) -> Option<&'a str> {
    let name = path.strip_prefix("auth.rate_limit.")?;
    // The values that `supabase init` writes are not worth a warning.
    let default = match name {
        "email_sent" => "2",
        "token_refresh" => "150",
        _ => "30",
    };
    (*value != Value::Text(default.to_owned())).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_remotes_are_checked() {
        let (one, other) = ("abcdefghijklmnopqrst", "tsrqponmlkjihgfedcba");
        let text = format!(
            "[remotes.dev]\nproject_id = \"{one}\"\n[remotes.live]\nproject_id = \"{other}\"\n[remotes.old]\nproject_id = \"{one}\"\n\
             [remotes.short]\nproject_id = \"abc\"\n[remotes.upper]\nproject_id = \"Abcdefghijklmnopqrst\"\n[remotes.dev.db]\nport = 1\n"
        );
        assert_eq!(
            warnings(&Values::parse(&text, &BTreeMap::new()).expect("values")),
            [
                "supabase/config.toml: remotes.dev and remotes.old have the same project_id",
                "supabase/config.toml: remotes.short.project_id must be the 20 lower-case letters of a hosted project's id, not 'abc'",
                "supabase/config.toml: remotes.upper.project_id must be the 20 lower-case letters of a hosted project's id, not 'Abcdefghijklmnopqrst'",
            ]
        );
    }

    /// Regression: a service that was turned off was served without a word.
    #[test]
    fn services_that_cannot_be_turned_off_are_named() {
        let of = |text: &str| warnings(&Values::parse(text, &BTreeMap::new()).expect("values"));
        for (text, warning) in [
            ("[auth]\nenabled = false", "auth.enabled cannot be turned off: the auth API is always served"),
            ("[api]\nenabled = false", "api.enabled cannot be turned off: the REST API is always served"),
            ("[realtime]\nenabled = 0", "realtime.enabled cannot be turned off: the realtime API is always served"),
            ("[storage]\nenabled = false", "storage.enabled cannot be turned off: the storage API is always served"),
            (
                "[storage.s3_protocol]\nenabled = false",
                "storage.s3_protocol.enabled cannot be turned off: the S3 protocol is always served",
            ),
            ("[inbucket]\nenabled = false", "local_smtp.enabled cannot be turned off: the inbox is always served"),
            ("[realtime]\nenabled = \"no\"", "realtime.enabled must be true or false, not 'no'"),
            (
                "[db]\nroot_key = \"abc\"",
                "db.root_key is not supported: the vault encrypts with a key of its own, which is in the data folder",
            ),
        ] {
            assert_eq!(of(text), [format!("supabase/config.toml: {warning}")]);
        }
        let on =
            "[auth]\nenabled = true\n[realtime]\nenabled = true\n[storage]\nenabled = true\n[db]\nroot_key = \"\"\n";
        assert!(of(on).is_empty());
    }

    #[test]
    fn unsupported_keys_are_reported_only_if_used() {
        let values = Values::parse(
            "[api.tls]\nenabled = false\n[db.pooler]\nenabled = true\npool_mode = \"session\"\n[auth]\nsight_url = \"x\"\n\
             enable_signup = \"maybe\"\n[remotes.x]\nproject_id = \"abcdefghijklmnopqrst\"\n[functions.hello]\nverify_jwt = false\n",
            &BTreeMap::new(),
        )
        .expect("values");
        let limits = "[auth.rate_limit]\nemail_sent = 2\nsms_sent = 5\nweb3 = 30\ntoken_refresh = 1\n";
        assert_eq!(
            warnings(&Values::parse(limits, &BTreeMap::new()).expect("values")),
            [
                "supabase/config.toml: auth.rate_limit has no effect on a local server, which has no limits (sms_sent, token_refresh)"
            ]
        );
        assert_eq!(
            warnings(&values),
            [
                "supabase/config.toml: auth.enable_signup must be true or false, not 'maybe'",
                "supabase/config.toml: unknown key auth.sight_url",
                "supabase/config.toml: db.pooler.enabled is not supported: there is no pooler: connect to the database itself",
            ]
        );
    }
}
