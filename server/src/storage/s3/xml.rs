//! XML of the S3 protocol: writes answers, and parses the two requests with XML bodies.

use actix_web::http::StatusCode;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::{HttpResponse, HttpResponseBuilder};
use quick_xml::Reader;
use quick_xml::events::Event;

use super::refused;
use crate::storage::StorageError;

const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// A document being written.
pub struct Xml {
    text: String,
    root: &'static str,
}

impl Xml {
    pub fn new(root: &'static str) -> Self {
        Self { text: format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{root} xmlns=\"{NAMESPACE}\">"), root }
    }

    pub fn element(&mut self, name: &str, text: impl AsRef<str>) -> &mut Self {
        self.text.push_str(&format!("<{name}>{}</{name}>", escaped(text.as_ref())));
        self
    }

    /// Writes an element unless its value is absent.
    pub fn given(&mut self, name: &str, text: Option<impl AsRef<str>>) -> &mut Self {
        if let Some(text) = text {
            self.element(name, text);
        }
        self
    }

    /// An element with child elements.
    pub fn group(&mut self, name: &str, fill: impl FnOnce(&mut Self)) -> &mut Self {
        self.text.push_str(&format!("<{name}>"));
        fill(self);
        self.text.push_str(&format!("</{name}>"));
        self
    }

    pub fn into_text(mut self) -> String {
        self.text.push_str(&format!("</{}>", self.root));
        self.text
    }

    pub fn answer(self) -> HttpResponse {
        self.answer_with(HttpResponse::Ok())
    }

    pub fn answer_with(self, mut response: HttpResponseBuilder) -> HttpResponse {
        response.insert_header((CONTENT_TYPE, "application/xml")).body(self.into_text())
    }
}

/// An error in S3's format.
pub fn error(status: u16, code: &str, message: &str, resource: &str) -> HttpResponse {
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Resource>{}</Resource><Code>{}</Code><Message>{}</Message></Error>",
        escaped(resource),
        escaped(code),
        escaped(message)
    );
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    HttpResponse::build(status).insert_header((CONTENT_TYPE, "application/xml")).body(text)
}

/// XML 1.0 cannot represent control characters, not even escaped.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\r' => escaped.push_str("&#xD;"),
            '\t' | '\n' => escaped.push(c),
            c if c < ' ' || c == '\u{fffe}' || c == '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The content of a repeated element: names and texts.
pub type Record = Vec<(String, String)>;

/// A text in a record, by name.
pub fn text_of<'a>(record: &'a Record, name: &str) -> Option<&'a str> {
    record.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str())
}

/// The elements `item` directly below the root `root`, and the root's other texts.
pub fn read(body: &[u8], root: &str, item: &str) -> Result<(Vec<Record>, Record), StorageError> {
    let malformed = || {
        let message = "The XML you provided was not well-formed or did not validate against our published schema";
        refused(400, "MalformedXML", message)
    };
    let body = std::str::from_utf8(body).map_err(|_| malformed())?;
    let mut reader = Reader::from_str(body);
    let (mut items, mut others, mut path): (Vec<Record>, Record, Vec<String>) = (Vec::new(), Vec::new(), Vec::new());
    let mut text = String::new();
    let mut ended = false;
    loop {
        match reader.read_event().map_err(|_| malformed())? {
            Event::Start(element) => {
                let name = element.local_name().as_ref().to_owned();
                if ended || (path.is_empty() && name != root) || path.len() > 8 {
                    return Err(malformed());
                }
                if path.len() == 1 && name == item {
                    items.push(Vec::new());
                }
                text.clear();
                path.push(name);
            }
            Event::Text(piece) => text.push_str(&piece),
            Event::CData(piece) => text.push_str(&piece),
            Event::GeneralRef(reference) => match reference.resolve_char_ref().map_err(|_| malformed())? {
                Some(c) => text.push(c),
                None => {
                    let known = quick_xml::escape::resolve_predefined_entity(&reference).ok_or_else(malformed)?;
                    text.push_str(known);
                }
            },
            Event::End(_) => {
                let name = path.pop().ok_or_else(malformed)?;
                match (path.len(), items.last_mut()) {
                    (2, Some(record)) if path.get(1).is_some_and(|parent| parent == item) => {
                        record.push((name, std::mem::take(&mut text)));
                    }
                    (1, _) if name != item => others.push((name, std::mem::take(&mut text))),
                    _ => {}
                }
                ended = path.is_empty();
            }
            Event::Empty(element) => {
                let name = element.local_name().as_ref().to_owned();
                match (path.len(), items.last_mut()) {
                    (0, _) if !ended && name == root => ended = true,
                    (0, _) => return Err(malformed()),
                    (2, Some(record)) => record.push((name, String::new())),
                    _ => {}
                }
            }
            // Custom entities make billion-laughs attacks possible.
            Event::DocType(_) => return Err(malformed()),
            Event::Eof => return if ended { Ok((items, others)) } else { Err(malformed()) },
            Event::Decl(_) | Event::Comment(_) | Event::PI(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_text_is_escaped() {
        let mut xml = Xml::new("A");
        xml.group("B", |xml| {
            xml.element("C", "<&\u{1}>");
        });
        assert!(xml.into_text().ends_with("<B><C>&lt;&amp;\u{fffd}&gt;</C></B></A>"));
    }

    #[test]
    fn keys_and_parts_are_read_in_any_namespace() {
        let body = br#"<?xml version="1.0"?><Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
            <Quiet>true</Quiet><Object><Key>a &amp; b&#x41;</Key></Object><Object><Key>c</Key><VersionId/></Object></Delete>"#;
        let (objects, others) = read(body, "Delete", "Object").expect("read");
        let keys: Vec<_> = objects.iter().map(|object| text_of(object, "Key")).collect();
        assert_eq!(keys, [Some("a & bA"), Some("c")]);
        assert_eq!(text_of(&others, "Quiet"), Some("true"));
        for refused in [
            &b""[..],
            b"<Delete>",
            b"<Other></Other>",
            b"<Delete><Object></Delete>",
            b"<!DOCTYPE a [<!ENTITY b \"c\">]><Delete>&b;</Delete>",
            b"<Delete>&b;</Delete>",
            b"\xff",
        ] {
            assert!(read(refused, "Delete", "Object").is_err(), "{}", String::from_utf8_lossy(refused));
        }
    }
}
