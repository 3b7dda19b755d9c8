//! Warnings about the keys of a project's configuration.

use super::keys::Use::{Flag, NotFlag, NotServed};
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
            Some(Flag(_) | NotFlag(_)) if parse_flag(text).is_none() && values.text(path).is_some() => {
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
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn unsupported_keys_are_reported_only_if_used() {
        let values = Values::parse(
            "[api.tls]\nenabled = false\n[db.pooler]\nenabled = true\npool_mode = \"session\"\n[auth]\nsight_url = \"x\"\n\
             enable_signup = \"maybe\"\n[remotes.x]\nproject_id = \"y\"\n[functions.hello]\nverify_jwt = false\n",
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
