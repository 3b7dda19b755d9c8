//! Reads mails that came by SMTP: what the inbox stores of one, and its parts.

use std::collections::BTreeMap;

use mail_parser::{Address, Message, MessageParser, MessagePart, MimeHeaders, PartType};
use serde_json::{Value, json};

use super::queries::Received;

/// The most attachments that are listed of one mail.
const MAX_ATTACHMENTS: usize = 100;

/// A mail as its sender handed it over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    /// Empty for notifications (RFC 5321, 4.5.5).
    pub sender: String,
    pub recipients: Vec<String>,
    /// The mail itself, without the dots that SMTP adds.
    pub source: Vec<u8>,
}

/// A part of a mail, decoded.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    pub content_type: String,
    /// Empty if it has none.
    pub name: String,
    pub bytes: Vec<u8>,
}

pub fn read(envelope: Envelope) -> Received {
    let parsed = MessageParser::default().parse(&envelope.source[..]).filter(|parsed| !parsed.parts.is_empty());
    let Some(parsed) = parsed else { return unreadable(envelope) };
    let Envelope { sender, recipients, .. } = &envelope;
    let (to, cc) = (addresses(parsed.to()), addresses(parsed.cc()));
    let mut bcc = addresses(parsed.bcc());
    // Recipients that the mail does not name (Bcc).
    for recipient in recipients {
        let is_named = [&to, &cc, &bcc]
            .into_iter()
            .flatten()
            .any(|known| known["Address"].as_str().is_some_and(|address| address.eq_ignore_ascii_case(recipient)));
        if !is_named {
            bcc.push(json!({ "Name": "", "Address": clean(recipient) }));
        }
    }
    let from = addresses(parsed.from()).into_iter().next();
    let (inline, attachments) = attached(&parsed);
    let details = json!({
        "MessageID": clean(parsed.message_id().unwrap_or_default()),
        "From": from,
        "To": to,
        "Cc": cc,
        "Bcc": bcc,
        "ReplyTo": addresses(parsed.reply_to()),
        "ReturnPath": clean(sender),
        "Recipients": lowercase(recipients),
        "Date": parsed.date().filter(|date| date.is_valid()).map(mail_parser::DateTime::to_rfc3339),
        "Headers": headers(&parsed),
        "Inline": inline,
        "Attachments": attachments,
    });
    let (shown_sender, shown_recipient) =
        (from.as_ref().map(named), Some(listed(&to)).filter(|addresses| !addresses.is_empty()));
    let subject = clean(parsed.subject().unwrap_or_default());
    let text = texts(&parsed, &parsed.text_body, |part| match &part.body {
        PartType::Text(text) => Some(text),
        _ => None,
    });
    let html = texts(&parsed, &parsed.html_body, |part| match &part.body {
        PartType::Html(html) => Some(html),
        _ => None,
    });
    Received {
        sender: shown_sender.unwrap_or_else(|| clean(sender)),
        recipient: shown_recipient.unwrap_or_else(|| clean(&recipients.join(", "))),
        subject,
        text,
        html,
        details,
        source: envelope.source,
    }
}

/// What cannot be parsed as a mail is kept as text.
fn unreadable(envelope: Envelope) -> Received {
    let Envelope { sender, recipients, source } = envelope;
    Received {
        sender: clean(&sender),
        recipient: clean(&recipients.join(", ")),
        subject: String::new(),
        text: clean(&String::from_utf8_lossy(&source)),
        html: String::new(),
        details: json!({ "ReturnPath": clean(&sender), "Recipients": lowercase(&recipients) }),
        source,
    }
}

fn lowercase(addresses: &[String]) -> Vec<String> {
    addresses.iter().map(|address| clean(&address.to_lowercase())).collect()
}

/// The part with this number, as [`attached`] gives it.
pub fn part(source: &[u8], number: &str) -> Option<Part> {
    let parsed = MessageParser::default().parse(source)?;
    let parents = parents(&parsed);
    let (_, part) =
        (0..).zip(&parsed.parts).find(|(index, part)| !part.is_multipart() && number_of(&parents, *index) == number)?;
    Some(Part {
        content_type: content_type(part),
        name: clean(part.attachment_name().unwrap_or_default()),
        bytes: part.contents().to_vec(),
    })
}

/// PostgreSQL stores no NUL.
fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

fn addresses(header: Option<&Address<'_>>) -> Vec<Value> {
    let all = header.into_iter().flat_map(Address::iter);
    all.filter_map(|found| {
        let address = found.address()?;
        Some(json!({ "Name": clean(found.name().unwrap_or_default()), "Address": clean(address) }))
    })
    .collect()
}

/// `Name, address`, or only the address.
fn named(address: &Value) -> String {
    let text = |key: &str| address[key].as_str().unwrap_or_default();
    match text("Name") {
        "" => text("Address").to_owned(),
        name => format!("{name}, {}", text("Address")),
    }
}

fn listed(addresses: &[Value]) -> String {
    addresses.iter().filter_map(|address| address["Address"].as_str()).collect::<Vec<_>>().join(", ")
}

/// The texts of the body parts that `pick` chooses, below each other.
fn texts<'m>(
    parsed: &'m Message<'m>,
    parts: &[u32],
    pick: impl Fn(&'m MessagePart<'m>) -> Option<&'m std::borrow::Cow<'m, str>>,
) -> String {
    let parts = parts.iter().filter_map(|index| parsed.part(*index));
    let texts: Vec<&str> = parts.filter_map(pick).map(AsRef::as_ref).collect();
    clean(&texts.join("\n"))
}

/// Header lines unfolded, by their names; a header that occurs twice has two values.
fn headers(parsed: &Message<'_>) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in parsed.headers_raw() {
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        all.entry(canonical(name)).or_default().push(clean(&value));
    }
    all
}

/// `message-id` is `Message-Id`, as Go's `net/textproto` and so Mailpit writes it.
fn canonical(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        first.to_ascii_uppercase() + &rest.to_ascii_lowercase()
    });
    clean(&words.collect::<Vec<_>>().join("-"))
}

/// What Mailpit lists as inline parts and as attachments.
fn attached(parsed: &Message<'_>) -> (Vec<Value>, Vec<Value>) {
    let parents = parents(parsed);
    let listed = parsed.attachments.iter().take(MAX_ATTACHMENTS).filter_map(|index| {
        let part = parsed.part(*index)?;
        let is_inline = matches!(part.body, PartType::InlineBinary(_))
            || part.content_disposition().is_some_and(|found| found.is_inline());
        let described = json!({
            "PartID": number_of(&parents, *index),
            "FileName": clean(part.attachment_name().unwrap_or_default()),
            "ContentType": content_type(part),
            "ContentID": clean(part.content_id().unwrap_or_default()),
            "Size": part.contents().len(),
        });
        Some((is_inline, described))
    });
    let (inline, attachments): (Vec<_>, Vec<_>) = listed.partition(|(is_inline, _)| *is_inline);
    let values = |parts: Vec<(bool, Value)>| parts.into_iter().map(|(_, described)| described).collect();
    (values(inline), values(attachments))
}

fn content_type(part: &MessagePart<'_>) -> String {
    let found = part.content_type().map(|found| match found.subtype() {
        Some(subtype) => format!("{}/{subtype}", found.ctype()),
        None => found.ctype().to_owned(),
    });
    clean(&found.unwrap_or_else(|| "text/plain".to_owned()))
}

/// Of each part the multipart that holds it, and its place there, from 1.
fn parents(parsed: &Message<'_>) -> BTreeMap<u32, (u32, usize)> {
    let mut parents = BTreeMap::new();
    for (index, part) in (0..).zip(&parsed.parts) {
        if let PartType::Multipart(children) = &part.body {
            parents.extend(children.iter().zip(1..).map(|(child, place)| (*child, (index, place))));
        }
    }
    parents
}

/// `2.1`: the first part within the second one. A mail of a single part has number 0.
fn number_of(parents: &BTreeMap<u32, (u32, usize)>, index: u32) -> String {
    let mut places = Vec::new();
    let mut at = index;
    while let Some((parent, place)) = parents.get(&at)
        && places.len() < parents.len()
    {
        places.push(place.to_string());
        at = *parent;
    }
    places.reverse();
    if places.is_empty() { "0".to_owned() } else { places.join(".") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(source: &str, recipients: &[&str]) -> Received {
        read(Envelope {
            sender: "bounce@x.example".to_owned(),
            recipients: recipients.iter().map(|address| (*address).to_owned()).collect(),
            source: source.replace('\n', "\r\n").into_bytes(),
        })
    }

    const INVITATION: &str = "From: =?utf-8?Q?Ren=C3=A9e?= <renee@x.example>
To: Ada <ada@x.example>, bob@x.example
Cc: Carl <carl@x.example>
Reply-To: team@x.example
Subject: =?utf-8?B?SGVsbG8g8J+YgA==?=
Message-ID: <m1@x.example>
Date: Tue, 24 Nov 2026 10:00:00 +0100
X-Kind: one
 two
Content-Type: multipart/mixed; boundary=outer

--outer
Content-Type: multipart/alternative; boundary=inner

--inner
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

caf=E9
--inner
Content-Type: text/html; charset=utf-8
Content-Transfer-Encoding: base64

PHA+Y2Fmw6k8L3A+
--inner--
--outer
Content-Type: application/pdf; name=paper.pdf
Content-Disposition: attachment; filename=paper.pdf
Content-Transfer-Encoding: base64

AAEC
--outer--
";

    #[test]
    fn a_mail_is_parsed_into_texts_addresses_and_attachments() {
        let mail = received(INVITATION, &["ADA@x.example", "bob@x.example", "carl@x.example", "dora@x.example"]);
        assert_eq!(
            (
                mail.sender.as_str(),
                mail.recipient.as_str(),
                mail.subject.as_str(),
                mail.text.trim(),
                mail.html.as_str()
            ),
            ("Renée, renee@x.example", "ada@x.example, bob@x.example", "Hello 😀", "café", "<p>café</p>")
        );
        let details = &mail.details;
        assert_eq!(
            details["To"],
            json!([{"Name": "Ada", "Address": "ada@x.example"}, {"Name": "", "Address": "bob@x.example"}])
        );
        // Only the envelope tells of her.
        assert_eq!(details["Bcc"], json!([{"Name": "", "Address": "dora@x.example"}]));
        assert_eq!(details["Recipients"][0], "ada@x.example");
        assert_eq!(
            (&details["MessageID"], &details["ReturnPath"]),
            (&json!("m1@x.example"), &json!("bounce@x.example"))
        );
        assert_eq!(details["Date"], "2026-11-24T10:00:00+01:00");
        assert_eq!(details["Headers"]["X-Kind"], json!(["one two"]));
        assert_eq!(details["Headers"]["Message-Id"], json!(["<m1@x.example>"]));
        assert_eq!(
            details["Attachments"],
            json!([{"PartID": "2", "FileName": "paper.pdf", "ContentType": "application/pdf", "ContentID": "", "Size": 3}])
        );
        let paper = part(&mail.source, "2").expect("the part");
        assert_eq!((paper.bytes, paper.name.as_str()), (vec![0, 1, 2], "paper.pdf"));
        assert_eq!(part(&mail.source, "1.2").map(|part| part.bytes), Some("<p>café</p>".into()));
        assert_eq!((part(&mail.source, "1"), part(&mail.source, "3")), (None, None), "a multipart has no content");
    }

    #[test]
    fn any_input_is_parsed_as_a_mail() {
        for source in
            ["", "\n", "no header", "Subject", "From: \0\nSubject: a\0b\n\n\0", "Content-Type: multipart/mixed\n\n"]
        {
            let mail = received(source, &["ada@x.example"]);
            assert_eq!(mail.recipient, "ada@x.example", "{source:?}");
            let all = format!("{}{}{}{}{}", mail.sender, mail.subject, mail.text, mail.html, mail.details);
            assert!(!all.contains('\0') && !all.contains("\\u0000"), "PostgreSQL stores no NUL: {all:?}");
        }
        let plain = received("Subject: s\n\nthe text", &["ada@x.example"]);
        assert_eq!((plain.text.as_str(), plain.html.as_str()), ("the text", ""));
        let html = received("Content-Type: text/html\n\n<p>x</p>", &["ada@x.example"]);
        assert_eq!((html.text.as_str(), html.html.as_str()), ("", "<p>x</p>"));
        let nested =
            (0..2000).map(|n| format!("Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n")).collect::<String>();
        assert_eq!(received(&nested, &["ada@x.example"]).recipient, "ada@x.example");
    }
}
