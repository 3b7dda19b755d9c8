//! Media types: what `Accept` and `Content-Type` name.
//!
//! Reference: PostgREST `src/library/PostgREST/MediaType.hs`; order of `Accept` as in wai-extra's
//! `parseHttpAccept`.

/// A media type that this API distinguishes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MediaType {
    Json,
    GeoJson,
    Csv,
    PlainText,
    Xml,
    OpenApi,
    UrlEncoded,
    OctetStream,
    /// `*/*`
    Any,
    /// `application/vnd.pgrst.array+json;nulls=stripped`
    ArrayStripped,
    /// `application/vnd.pgrst.object+json`, with `;nulls=stripped` or not.
    Singular {
        stripped: bool,
    },
    /// `application/vnd.pgrst.plan`: the query plan of the answer in `of`.
    Plan {
        of: Box<MediaType>,
        json: bool,
        options: Vec<PlanOption>,
    },
    /// Any other, as written.
    Other(String),
}

/// The options of EXPLAIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlanOption {
    Analyze,
    Verbose,
    Settings,
    Buffers,
    Wal,
}

impl PlanOption {
    const ALL: [PlanOption; 5] =
        [PlanOption::Analyze, PlanOption::Verbose, PlanOption::Settings, PlanOption::Buffers, PlanOption::Wal];

    pub fn word(self) -> &'static str {
        match self {
            PlanOption::Analyze => "analyze",
            PlanOption::Verbose => "verbose",
            PlanOption::Settings => "settings",
            PlanOption::Buffers => "buffers",
            PlanOption::Wal => "wal",
        }
    }
}

impl MediaType {
    /// Parses a media type with its parameters; unknown ones are [`MediaType::Other`].
    pub fn parse(text: &str) -> Self {
        if text == "application/json" {
            return Self::Json;
        }
        let Some((main, sub, params)) = tokenize(text) else { return Self::Other(text.to_owned()) };
        let param = |name: &str| params.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let stripped = param("nulls") == Some("stripped");
        let plan = |json: bool| {
            let wanted: Vec<&str> = param("options").unwrap_or_default().split('|').collect();
            let options = PlanOption::ALL.into_iter().filter(|option| wanted.contains(&option.word())).collect();
            let of = Box::new(Self::parse(param("for").unwrap_or("application/json")));
            Self::Plan { of, json, options }
        };
        match (main.to_lowercase().as_str(), sub.to_lowercase().as_str()) {
            ("application", "json") => Self::Json,
            ("application", "geo+json") => Self::GeoJson,
            ("text", "csv") => Self::Csv,
            ("text", "plain") => Self::PlainText,
            ("text", "xml") => Self::Xml,
            ("application", "openapi+json") => Self::OpenApi,
            ("application", "x-www-form-urlencoded") => Self::UrlEncoded,
            ("application", "octet-stream") => Self::OctetStream,
            ("application", "vnd.pgrst.plan" | "vnd.pgrst.plan+text") => plan(false),
            ("application", "vnd.pgrst.plan+json") => plan(true),
            ("application", "vnd.pgrst.object+json" | "vnd.pgrst.object") => Self::Singular { stripped },
            ("application", "vnd.pgrst.array+json" | "vnd.pgrst.array") if stripped => Self::ArrayStripped,
            ("application", "vnd.pgrst.array+json" | "vnd.pgrst.array") => Self::Json,
            ("*", "*") => Self::Any,
            _ => Self::Other(text.to_owned()),
        }
    }

    /// The name without charset.
    pub fn mime(&self) -> String {
        match self {
            Self::Json => "application/json".to_owned(),
            Self::GeoJson => "application/geo+json".to_owned(),
            Self::Csv => "text/csv".to_owned(),
            Self::PlainText => "text/plain".to_owned(),
            Self::Xml => "text/xml".to_owned(),
            Self::OpenApi => "application/openapi+json".to_owned(),
            Self::UrlEncoded => "application/x-www-form-urlencoded".to_owned(),
            Self::OctetStream => "application/octet-stream".to_owned(),
            Self::Any => "*/*".to_owned(),
            Self::ArrayStripped => "application/vnd.pgrst.array+json;nulls=stripped".to_owned(),
            Self::Singular { stripped: false } => "application/vnd.pgrst.object+json".to_owned(),
            Self::Singular { stripped: true } => "application/vnd.pgrst.object+json;nulls=stripped".to_owned(),
            Self::Plan { of, json, options } => {
                let format = if *json { "json" } else { "text" };
                let mut mime = format!("application/vnd.pgrst.plan+{format}; for=\"{}\"", of.mime());
                if !options.is_empty() {
                    let words: Vec<&str> = options.iter().map(|option| option.word()).collect();
                    mime.push_str(&format!("; options={}", words.join("|")));
                }
                mime
            }
            Self::Other(text) => text.clone(),
        }
    }

    /// The value of `Content-Type`.
    pub fn content_type(&self) -> String {
        match self {
            Self::OctetStream | Self::Other(_) => self.mime(),
            _ => format!("{}; charset=utf-8", self.mime()),
        }
    }

    pub fn is_singular(&self) -> bool {
        matches!(self, Self::Singular { .. })
    }
}

type Tokens = (String, String, Vec<(String, String)>);

/// `main/sub; key=value; key="value"`; trailing text is ignored.
fn tokenize(text: &str) -> Option<Tokens> {
    let take = |text: &str, test: fn(char) -> bool| text.find(|c| !test(c)).unwrap_or(text.len());
    let end = take(text, |c| c.is_alphanumeric() || matches!(c, '.' | '*'));
    let main = text.get(..end).filter(|t| !t.is_empty())?;
    let rest = text.get(end..)?.strip_prefix('/')?;
    let end = take(rest, |c| c.is_alphanumeric() || matches!(c, '.' | '*' | '+' | '-'));
    let sub = rest.get(..end).filter(|t| !t.is_empty())?;
    let mut rest = &rest[end..];
    let mut params = Vec::new();
    while let Some((key, value, next)) = parameter(rest) {
        params.push((key.to_lowercase(), value.to_owned()));
        rest = next;
    }
    Some((main.to_owned(), sub.to_owned(), params))
}

fn parameter(text: &str) -> Option<(&str, &str, &str)> {
    let text = text.trim_start().strip_prefix(';')?.trim_start();
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '-')).unwrap_or(text.len());
    let (key, rest) = text.split_at(end);
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    if key.is_empty() {
        return None;
    }
    if let Some((value, next)) = rest.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
        return Some((key, value, next));
    }
    let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '|' | '-'))).unwrap_or(rest.len());
    (end > 0).then(|| (key, &rest[..end], &rest[end..]))
}

/// The types of an `Accept` header, most preferred first.
pub fn parse_accept(header: &str) -> Vec<MediaType> {
    if header.is_empty() {
        return Vec::new();
    }
    // What most clients send.
    match header {
        "application/json" => return vec![MediaType::Json],
        "*/*" => return vec![MediaType::Any],
        _ => {}
    }
    let mut ranked: Vec<(f64, isize, String)> = header
        .split(',')
        .map(|item| {
            let item: String = item.chars().filter(|c| *c != ' ').collect();
            let (name, quality) = item.split_once(";q=").map_or((item.as_str(), None), |(n, q)| (n, Some(q)));
            let quality = quality.and_then(read_quality).unwrap_or(1.0);
            let specificity = name.matches(';').count() as isize - name.matches('*').count() as isize;
            (quality, specificity, name.to_owned())
        })
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    ranked.into_iter().map(|(_, _, name)| MediaType::parse(&name)).collect()
}

/// The number at the beginning of a text, as Haskell reads one: digits on both sides of the point, optionally in
/// brackets.
fn read_quality(text: &str) -> Option<f64> {
    fn digits(text: &str) -> usize {
        text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
    }
    let text = text.split(';').next().unwrap_or_default();
    if let Some(inner) = text.strip_prefix('(') {
        return read_quality(inner.split_once(')')?.0);
    }
    let sign = usize::from(text.starts_with('-'));
    let mut end = sign + digits(&text[sign..]);
    if end == sign {
        return None;
    }
    if let Some(fraction) = text[end..].strip_prefix('.').map(digits).filter(|length| *length > 0) {
        end += 1 + fraction;
    }
    if let Some(exponent) = text[end..].strip_prefix(['e', 'E']) {
        let sign = usize::from(exponent.starts_with(['-', '+']));
        let length = digits(&exponent[sign..]);
        end += if length > 0 { 1 + sign + length } else { 0 };
    }
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_read_in_any_case_and_with_parameters() {
        let plan =
            |of, json, options: &[PlanOption]| MediaType::Plan { of: Box::new(of), json, options: options.to_vec() };
        let cases = [
            ("APPLICATION/JSON", MediaType::Json),
            ("application/json; charset=utf-8", MediaType::Json),
            ("application/vnd.pgrst.array+json", MediaType::Json),
            ("application/vnd.pgrst.array;nulls=stripped", MediaType::ArrayStripped),
            ("application/vnd.pgrst.object+json", MediaType::Singular { stripped: false }),
            ("application/vnd.pgrst.object;nulls=stripped", MediaType::Singular { stripped: true }),
            ("application/vnd.pgrst.plan;", plan(MediaType::Json, false, &[])),
            (
                "application/vnd.pgrst.plan+json ; for=\"text/csv\" ; options=analyze|wal;",
                plan(MediaType::Csv, true, &[PlanOption::Analyze, PlanOption::Wal]),
            ),
            ("garbage", MediaType::Other("garbage".into())),
            ("", MediaType::Other(String::new())),
            ("application/vnd.twkb", MediaType::Other("application/vnd.twkb".into())),
        ];
        for (text, media) in cases {
            assert_eq!(MediaType::parse(text), media, "{text}");
        }
    }

    #[test]
    fn accept_is_sorted_by_quality_then_specificity_then_order() {
        let cases = [
            ("text/csv;q=0.5, application/json", vec![MediaType::Json, MediaType::Csv]),
            ("*/*, text/csv", vec![MediaType::Csv, MediaType::Any]),
            ("text/csv, application/json", vec![MediaType::Csv, MediaType::Json]),
            ("", vec![]),
        ];
        for (header, types) in cases {
            assert_eq!(parse_accept(header), types, "{header}");
        }
    }

    #[test]
    fn a_quality_is_parsed_up_to_the_first_invalid_character() {
        let cases = [
            ("0.5", Some(0.5)),
            ("0.5;level=1", Some(0.5)),
            ("1.", Some(1.0)),
            (".5", None),
            ("1e-1", Some(0.1)),
            ("2e", Some(2.0)),
            ("-1", Some(-1.0)),
            ("(0.3)", Some(0.3)),
            ("x", None),
            ("", None),
        ];
        for (text, quality) in cases {
            assert_eq!(read_quality(text), quality, "{text}");
        }
    }

    #[test]
    fn a_plan_states_its_media_type_and_options() {
        let media = MediaType::parse("application/vnd.pgrst.plan; options=verbose|analyze");
        assert_eq!(media.mime(), "application/vnd.pgrst.plan+text; for=\"application/json\"; options=analyze|verbose");
    }
}
