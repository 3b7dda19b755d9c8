//! PostgREST's configuration file: `name = value` per line, `#` begins a comment.
//!
//! Values are texts in quotes, numbers, `true`/`on`/`false`/`off`. Reference: PostgREST's manual, "Configuration", and the
//! package configurator-pg that reads it.

use std::collections::BTreeMap;

/// The settings of a file under their environment names: `db-uri` is `PGRST_DB_URI`, and
/// `app.settings.x` is `PGRST_APP_SETTINGS_x`. The error names the line.
pub fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut settings = BTreeMap::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
        rest = &rest[start..];
        let line = 1 + text[..text.len() - rest.len()].matches('\n').count();
        if rest.starts_with('#') {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
            continue;
        }
        let end = rest.find(|c: char| !(c.is_alphanumeric() || "-_.".contains(c))).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let after = after.trim_start_matches([' ', '\t']);
        let value =
            after.strip_prefix('=').filter(|_| !name.is_empty()).ok_or(format!("line {line}: no 'name = value'"))?;
        let (value, after) = read_value(value.trim_start()).map_err(|what| format!("line {line}: {what}"))?;
        let line_rest = after.split('\n').next().unwrap_or_default().trim();
        if !(line_rest.is_empty() || line_rest.starts_with('#')) {
            return Err(format!("line {line}: '{line_rest}' after a value"));
        }
        settings.insert(in_environment(name), value);
        rest = after;
    }
    Ok(settings)
}

/// Names of application settings keep their case.
fn in_environment(name: &str) -> String {
    match name.strip_prefix("app.settings.") {
        Some(name) => format!("PGRST_APP_SETTINGS_{name}"),
        None => format!("PGRST_{}", name.replace(['-', '.'], "_").to_uppercase()),
    }
}

/// A value and the rest of the text.
fn read_value(text: &str) -> Result<(String, &str), String> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|c: char| c.is_whitespace() || c == '#').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        return match word {
            "true" | "on" => Ok(("true".to_owned(), rest)),
            "false" | "off" => Ok(("false".to_owned(), rest)),
            number if number.parse::<f64>().is_ok() => Ok((number.to_owned(), rest)),
            other => Err(format!("'{other}' is not a value: strings must be quoted")),
        };
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Ok((value, &quoted[at + 1..])),
            '\\' => match characters.next().map(|(_, c)| c) {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('r') => value.push('\r'),
                Some(c @ ('"' | '\\')) => value.push(c),
                Some('u') => {
                    let digits: String = characters.by_ref().take(4).map(|(_, c)| c).collect();
                    let c = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                    value.push(c.ok_or_else(|| format!("'\\u{digits}' is not a character"))?);
                }
                Some(other) => return Err(format!("'\\{other}' is not an escape")),
                None => break,
            },
            c => value.push(c),
        }
    }
    Err("a text has no end".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_the_names_of_the_environment() {
        let text = "# PostgREST\ndb-uri = \"postgres://a:b@c/d\" # the database\n\ndb-pool=10\ndb-aggregates-enabled = on\n\
                    app.settings.jwt_Exp = \"a \\\"b\\\" \\u00e9\\\\\"\nopenapi-mode = \"a\"\nopenapi-mode = \"disabled\"\n\
                    log-query = false\njwt-secret = \"two\nlines\"";
        let settings = parse(text).expect("settings");
        let wanted = [
            ("PGRST_APP_SETTINGS_jwt_Exp", "a \"b\" é\\"),
            ("PGRST_DB_AGGREGATES_ENABLED", "true"),
            ("PGRST_DB_POOL", "10"),
            ("PGRST_DB_URI", "postgres://a:b@c/d"),
            ("PGRST_JWT_SECRET", "two\nlines"),
            ("PGRST_LOG_QUERY", "false"),
            ("PGRST_OPENAPI_MODE", "disabled"),
        ];
        let found: Vec<_> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(found, wanted);
    }

    #[test]
    fn errors_are_reported_with_their_line() {
        for (text, what) in [
            ("db-uri = postgres://x", "line 1: 'postgres://x' is not a value"),
            ("\n\ndb-uri", "line 3: no 'name = value'"),
            ("a = \"x", "line 1: a text has no end"),
            ("a = 1\nb = \"x\" y", "line 2: 'y' after a value"),
            ("= 1", "line 1: no 'name = value'"),
            ("a = \"\\q\"", "line 1: '\\q' is not an escape"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.starts_with(what), "{text}: {error}");
        }
    }
}
