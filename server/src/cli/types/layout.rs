//! Formats TypeScript types as prettier does, with 80 columns and no semicolons.

/// Line width in columns.
const WIDTH: usize = 80;

/// A type expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ts {
    /// A name, literal or path that never breaks.
    Text(String),
    Object(Vec<Member>, Shape),
    /// An element type and `[]`.
    Array(Box<Ts>),
    Union(Vec<Ts>),
    /// An object type `&` a literal.
    Intersection(Box<Ts>, String),
    Tuple(Vec<Ts>),
    /// A named type with its arguments.
    Generic(&'static str, Vec<Ts>),
}

/// Prettier keeps an object expanded if it was written expanded, and otherwise collapses it if it fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Open,
    Fitting,
}

/// `name: type`, `name?: type`, or a raw line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// As printed, with quotes and question mark.
    pub key: String,
    pub value: Ts,
    /// Comment lines above it.
    pub comments: Vec<&'static str>,
}

impl Member {
    pub fn new(name: &str, value: Ts) -> Self {
        Self { key: property(name), value, comments: Vec::new() }
    }

    pub fn optional(name: &str, value: Ts) -> Self {
        Self { key: format!("{}?", property(name)), value, comments: Vec::new() }
    }
}

impl Ts {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub fn literal(text: &str) -> Self {
        Self::Text(quoted(text))
    }

    /// An object with one member per line, `{}` without any.
    pub fn open(members: Vec<Member>) -> Self {
        Self::Object(members, Shape::Open)
    }

    /// An object on one line if it fits.
    pub fn fitting(members: Vec<Member>) -> Self {
        Self::Object(members, Shape::Fitting)
    }

    pub fn array(element: Self) -> Self {
        Self::Array(Box::new(element))
    }

    /// A union of the alternatives, with nested unions flattened; a single alternative stays as it is.
    pub fn union(alternatives: Vec<Self>) -> Self {
        let mut spread: Vec<Self> = alternatives
            .into_iter()
            .flat_map(|ts| match ts {
                Self::Union(inner) => inner,
                other => vec![other],
            })
            .collect();
        match spread.len() {
            1 => spread.remove(0),
            _ => Self::Union(spread),
        }
    }

    /// The type on one line, or `None` if part of it must be expanded.
    fn flat(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Object(members, _) if members.is_empty() => Some("{}".to_owned()),
            Self::Object(_, Shape::Open) => None,
            Self::Object(members, Shape::Fitting) => {
                let members: Option<Vec<String>> =
                    members.iter().map(|m| m.value.flat().map(|value| format!("{}: {value}", m.key))).collect();
                Some(format!("{{ {} }}", members?.join("; ")))
            }
            Self::Array(element) => Some(match &**element {
                union @ Self::Union(_) => format!("({})[]", union.flat()?),
                other => format!("{}[]", other.flat()?),
            }),
            Self::Union(alternatives) => {
                let flat: Option<Vec<String>> = alternatives.iter().map(Self::flat).collect();
                Some(flat?.join(" | "))
            }
            Self::Intersection(object, literal) => Some(format!("{} & {literal}", object.flat()?)),
            Self::Tuple(items) => {
                let flat: Option<Vec<String>> = items.iter().map(Self::flat).collect();
                Some(format!("[{}]", flat?.join(", ")))
            }
            Self::Generic(name, arguments) => {
                let flat: Option<Vec<String>> = arguments.iter().map(Self::flat).collect();
                Some(format!("{name}<{}>", flat?.join(", ")))
            }
        }
    }

    /// Formats from column `column` of a line whose statement is indented by `indent`.
    fn layout(&self, indent: usize, column: usize) -> String {
        if let Some(flat) = self.flat()
            && column + flat.chars().count() <= WIDTH
        {
            return flat;
        }
        match self {
            Self::Text(text) => text.clone(),
            Self::Object(members, _) => object(members, indent),
            Self::Array(element) => match &**element {
                union @ Self::Union(_) => format!("({})[]", union.layout(indent, column)),
                other => format!("{}[]", other.layout(indent, column)),
            },
            Self::Union(alternatives) => alternatives
                .iter()
                .map(|ts| format!("{}| {}", spaces(indent), ts.layout(indent + 2, indent + 2)))
                .collect::<Vec<_>>()
                .join("\n"),
            Self::Intersection(object, literal) => match &**object {
                Self::Object(members, _) => format!("{} & {literal}", self::object(members, indent)),
                other => format!("{} & {literal}", other.layout(indent, column)),
            },
            Self::Tuple(items) => {
                let inner = indent + 2;
                let items: Vec<String> =
                    items.iter().map(|ts| format!("{}{},\n", spaces(inner), ts.layout(inner, inner))).collect();
                format!("[\n{}{}]", items.concat(), spaces(indent))
            }
            Self::Generic(name, arguments) => {
                let inner = indent + 2;
                let lines = arguments.iter().map(|ts| format!("{}{}", spaces(inner), ts.layout(inner, inner)));
                format!("{name}<\n{}\n{}>", lines.collect::<Vec<_>>().join(",\n"), spaces(indent))
            }
        }
    }

    /// Whether prettier keeps `{ … } | null` together instead of listing the alternatives.
    fn hugs(&self) -> Option<&Self> {
        match self {
            Self::Union(alternatives) => match alternatives.as_slice() {
                [object @ Self::Object(..), Self::Text(null)] if null == "null" => Some(object),
                _ => None,
            },
            _ => None,
        }
    }
}

/// An expanded object.
fn object(members: &[Member], indent: usize) -> String {
    let inner = indent + 2;
    let members: Vec<String> = members.iter().map(|member| self::member(member, inner)).collect();
    format!("{{\n{}{}}}", members.concat(), spaces(indent))
}

/// The lines of a member, each with its line end.
pub fn member(member: &Member, indent: usize) -> String {
    let pad = spaces(indent);
    let comments: String = member.comments.iter().map(|line| format!("{pad}// {line}\n")).collect();
    let start = indent + member.key.chars().count() + 2;
    let fits = member.value.flat().is_some_and(|flat| start + flat.chars().count() <= WIDTH);
    let value = match (&member.value, member.value.hugs()) {
        (_, Some(object)) if !fits => format!(" {} | null", object.layout(indent, start)),
        (union @ Ts::Union(_), _) if !fits => format!("\n{}", union.layout(indent + 2, WIDTH)),
        (other, _) => format!(" {}", other.layout(indent, start)),
    };
    format!("{comments}{pad}{}:{value}\n", member.key)
}

fn spaces(count: usize) -> String {
    " ".repeat(count)
}

/// A property name, quoted only if necessary.
pub fn property(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    if name.chars().all(plain) && name.starts_with(|c: char| !c.is_ascii_digit()) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

/// A string literal: double quotes, unless single quotes need fewer escapes.
pub fn quoted(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    if text.matches('"').count() > text.matches('\'').count() {
        let inner = json.trim_start_matches('"').strip_suffix('"').unwrap_or(&json);
        return format!("'{}'", inner.replace('\'', "\\'").replace("\\\"", "\""));
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, value: Ts) -> String {
        member(&Member::new(name, value), 10)
    }

    #[test]
    fn types_that_fit_stay_on_one_line_and_others_are_expanded() {
        let short =
            Ts::fitting(vec![Member::new("Args", Ts::text("never")), Member::new("Returns", Ts::text("number"))]);
        assert_eq!(line("f", short.clone()), "          f: { Args: never; Returns: number }\n");
        assert_eq!(
            line(&"f".repeat(40), short),
            format!(
                "          {}: {{\n            Args: never\n            Returns: number\n          }}\n",
                "f".repeat(40)
            )
        );
    }

    #[test]
    fn a_long_union_lists_its_alternatives_below_the_name() {
        let long = "Database[\"public\"][\"CompositeTypes\"][\"a_name_of_considerable_length\"]";
        assert_eq!(
            line("x", Ts::union(vec![Ts::text(long), Ts::text("null")])),
            format!("          x:\n            | {long}\n            | null\n")
        );
    }

    #[test]
    fn an_expanded_object_or_null_stays_together() {
        let object = Ts::open(vec![Member::new("a-b", Ts::text("number"))]);
        assert_eq!(
            line("x", Ts::union(vec![object, Ts::text("null")])),
            "          x: {\n            \"a-b\": number\n          } | null\n"
        );
    }

    #[test]
    fn literals_take_the_quotes_that_need_fewer_escapes() {
        assert_eq!(quoted("it's"), "\"it's\"");
        assert_eq!(quoted("say \"x\""), "'say \"x\"'");
        assert_eq!(property("0a"), "\"0a\"");
        assert_eq!(property("größe"), "größe");
    }
}
