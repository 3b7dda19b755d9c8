//! Tracks the HTML context of a value, and escapes it accordingly.

/// The HTML context of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    Text,
    /// In a tag, not in an attribute whose value is a URL.
    Attribute,
    /// In an attribute without quotes.
    Unquoted,
    /// At the beginning of a URL: its scheme is checked.
    UrlStart,
    /// Later in a URL's path.
    UrlPath,
    /// In the query or fragment of a URL.
    UrlQuery,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct HtmlState {
    in_tag: bool,
    /// The attribute being read.
    attribute: String,
    /// `"`, `'`, or a blank for a value without quotes.
    quote: Option<char>,
    /// The known part of the attribute's value.
    value: String,
    value_has_holes: bool,
    after_equals: bool,
}

impl HtmlState {
    pub(super) fn read(&mut self, text: &str) {
        for c in text.chars() {
            match (self.in_tag, self.quote) {
                (false, _) => {
                    if c == '<' {
                        *self = Self { in_tag: true, ..Self::default() };
                    }
                }
                (true, Some(' ')) if c.is_whitespace() => self.close_value(),
                (true, Some(' ')) if c == '>' => *self = Self::default(),
                (true, Some(quote)) if c == quote => self.close_value(),
                (true, Some(_)) => self.value.push(c),
                (true, None) => match c {
                    '>' => *self = Self::default(),
                    '=' => self.after_equals = true,
                    '"' | '\'' if self.after_equals => self.open_value(c),
                    c if c.is_whitespace() => {
                        if !self.after_equals {
                            self.attribute.clear();
                        }
                    }
                    c if self.after_equals => {
                        self.open_value(' ');
                        self.value.push(c);
                    }
                    c => self.attribute.push(c.to_ascii_lowercase()),
                },
            }
        }
    }

    fn open_value(&mut self, quote: char) {
        self.quote = Some(quote);
        self.value.clear();
        self.value_has_holes = false;
        self.after_equals = false;
    }

    fn close_value(&mut self) {
        self.quote = None;
        self.attribute.clear();
    }

    pub(super) fn wrote_value(&mut self) {
        if self.in_tag && self.quote.is_none() && self.after_equals {
            self.open_value(' ');
        }
        self.value_has_holes = true;
    }

    pub(super) fn context(&self) -> Context {
        const URL_ATTRIBUTES: [&str; 10] =
            ["href", "src", "action", "cite", "formaction", "longdesc", "poster", "background", "usemap", "data"];
        if !self.in_tag {
            return Context::Text;
        }
        if self.quote.is_none() || self.quote == Some(' ') {
            return Context::Unquoted;
        }
        if !URL_ATTRIBUTES.contains(&self.attribute.as_str()) {
            return Context::Attribute;
        }
        if self.value.contains(['?', '#']) {
            Context::UrlQuery
        } else if self.value.trim().is_empty() && !self.value_has_holes {
            Context::UrlStart
        } else {
            Context::UrlPath
        }
    }
}

pub(super) fn escape(text: &str, context: Context, out: &mut String) {
    match context {
        Context::Text | Context::Attribute => escape_html(text, out),
        Context::Unquoted => {
            for c in text.chars() {
                match c {
                    ' ' | '\t' | '\n' | '\r' | '=' | '`' | '\0' => out.push_str(&format!("&#{};", c as u32)),
                    c => escape_html(c.encode_utf8(&mut [0; 4]), out),
                }
            }
        }
        Context::UrlStart if has_unsafe_scheme(text) => out.push_str("#ZgotmplZ"),
        Context::UrlStart | Context::UrlPath => escape_html(&encode_url(text, false), out),
        Context::UrlQuery => escape_html(&encode_url(text, true), out),
    }
}

fn escape_html(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '\0' => out.push('\u{fffd}'),
            '"' => out.push_str("&#34;"),
            '&' => out.push_str("&amp;"),
            '\'' => out.push_str("&#39;"),
            '+' => out.push_str("&#43;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
}

/// Only http, https and mailto are allowed in links.
fn has_unsafe_scheme(url: &str) -> bool {
    url.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.contains('/') && !["http", "https", "mailto"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
    })
}

/// Percent-encodes characters that a URL cannot contain; with `all` reserved ones, too.
fn encode_url(text: &str, all: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(bytes.len());
    for (index, &byte) in bytes.iter().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let meaningful = b"!#$&*+,/:;=?@[]".contains(&byte);
        let escaped =
            byte == b'%' && bytes.get(index + 1..index + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
        if plain || (!all && (meaningful || escaped)) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02x}"));
        }
    }
    out
}
