//! The inbox as a page: the list on the left, the message on the right, below each other on a phone.

use std::fmt::Write;

use chrono::{DateTime, Local};

use super::queries::Stored;
use crate::http::page::{Page, escape};

/// The view of the shown message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    Html,
    Text,
    Source,
}

impl View {
    const ALL: [(Self, &'static str, &'static str); 3] =
        [(Self::Html, "html", "HTML"), (Self::Text, "text", "Text"), (Self::Source, "source", "Source")];

    /// HTML unless another is named.
    pub fn parse(name: Option<&str>) -> Self {
        Self::ALL.iter().find(|(_, n, _)| Some(*n) == name).map_or(Self::Html, |(view, _, _)| *view)
    }
}

const TRASH: &str = r#"<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d="M10 11v6M14 11v6M19 6v14a2 2 0 0 1-2 2H7a2 2 0 0 1-2-2V6M3 6h18M8 6V4a2 2 0 0 1 2-2h4a2 2 0 0 1 2 2v2"/></svg>"#;

/// The whole page; `now` determines how times are shown.
///
/// `source`: of a shown message that came by SMTP.
pub fn render(
    messages: &[Stored],
    shown: Option<&Stored>,
    source: Option<&[u8]>,
    view: View,
    now: DateTime<Local>,
) -> String {
    let newest = messages.first().map_or("", |m| m.id.as_str());
    let list = list(messages, shown, now);
    let article = shown.map_or_else(String::new, |message| article(message, source, view));
    let delete = if messages.is_empty() {
        String::new()
    } else {
        format!(r#"<form method="post" action="/delete"><button class="button">{TRASH}Delete all</button></form>"#)
    };
    let head = format!(
        "<div><h1>Inbox</h1><p>Mail caught in development. Nothing here was sent to anybody.</p></div>{delete}"
    );
    let attributes = format!(r#" data-newest="{newest}""#);
    let columns = format!("{list}{article}");
    Page { title: "Inbox", home: "/", files: "/inbox", attributes: &attributes, head: &head, columns: &columns }
        .render()
}

fn list(messages: &[Stored], shown: Option<&Stored>, now: DateTime<Local>) -> String {
    if messages.is_empty() {
        return r#"<p class="empty">No mail yet. What the server would send appears here by itself.</p>"#.to_owned();
    }
    let mut items = String::from(r#"<ul class="list">"#);
    for message in messages {
        let current = shown.is_some_and(|s| s.id == message.id);
        let class = if message.opened || current { "" } else { r#" class="unread""# };
        let mark = if current { r#" aria-current="true""# } else { "" };
        let received = message.received_at.with_timezone(&Local);
        // Writing to a String cannot fail.
        let _ = write!(
            items,
            r#"<li{class}><a href="/?id={}"{mark}><span class="line"><span class="subject">{}</span><time datetime="{}">{}</time></span><span class="soft">{}</span></a></li>"#,
            message.id,
            escape(subject(message)),
            received.to_rfc3339(),
            when(received, now),
            escape(&message.to),
        );
    }
    items.push_str("</ul>");
    items
}

fn subject(message: &Stored) -> &str {
    if message.subject.is_empty() { "(no subject)" } else { &message.subject }
}

fn article(message: &Stored, received: Option<&[u8]>, view: View) -> String {
    let tabs: String = View::ALL
        .iter()
        .map(|(tab, name, label)| {
            let current = if *tab == view { r#" aria-current="page""# } else { "" };
            format!(r#"<a href="/?id={}&amp;view={name}"{current}>{label}</a>"#, message.id)
        })
        .collect();
    let body = match view {
        View::Html if message.html.is_empty() => r#"<p class="soft">This mail has no HTML part.</p>"#.to_owned(),
        View::Html => format!(
            r#"<iframe title="The mail" src="/messages/{}/html" sandbox="allow-popups allow-popups-to-escape-sandbox"></iframe>"#,
            message.id
        ),
        View::Text if message.text.is_empty() => r#"<p class="soft">This mail has no text part.</p>"#.to_owned(),
        View::Text => format!("<pre tabindex=\"0\">{}</pre>", linked(&message.text)),
        View::Source => {
            let source =
                received.map_or_else(|| source(message), |source| String::from_utf8_lossy(source).into_owned());
            format!("<pre tabindex=\"0\">{}</pre>", escape(&source))
        }
    };
    let from = if message.from.is_empty() { String::new() } else { format!("<br>From {}", escape(&message.from)) };
    format!(
        r#"<article class="panel"><header><h2>{}</h2><p class="soft">To {}{from}</p><nav class="tabs" aria-label="Parts of the mail">{tabs}</nav></header><div class="body">{body}</div></article>"#,
        escape(subject(message)),
        escape(&message.to),
    )
}

/// Headers and HTML as they are.
fn source(message: &Stored) -> String {
    let mut text = format!(
        "Date: {}\nFrom: {}\nTo: {}\nSubject: {}\n",
        message.received_at.to_rfc2822(),
        message.from,
        message.to,
        message.subject
    );
    for (name, value) in message.headers.as_object().into_iter().flatten() {
        let _ = writeln!(text, "{name}: {}", value.as_str().unwrap_or_default());
    }
    format!("{text}\n{}", if message.html.is_empty() { &message.text } else { &message.html })
}

/// Escaped text with links for web addresses.
fn linked(text: &str) -> String {
    text.split_inclusive(char::is_whitespace)
        .map(|word| {
            let bare = word.trim_end();
            if bare.starts_with("http://") || bare.starts_with("https://") {
                let rest = word.get(bare.len()..).unwrap_or("");
                let url = escape(bare);
                format!(r#"<a href="{url}" target="_blank" rel="noopener noreferrer">{url}</a>{rest}"#)
            } else {
                escape(word)
            }
        })
        .collect()
}

/// The time if it is today, else the day.
fn when(received: DateTime<Local>, now: DateTime<Local>) -> String {
    match (now.date_naive() - received.date_naive()).num_days() {
        0 => received.format("%-I:%M %p").to_string(),
        1 => "Yesterday".to_owned(),
        days if days < 300 => received.format("%b %-d").to_string(),
        _ => received.format("%b %-d, %Y").to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{TimeZone, Utc};

    fn message() -> Stored {
        Stored {
            id: "7".to_owned(),
            from: "AidBridge, a@b.example".to_owned(),
            to: "<x>@y.example".to_owned(),
            subject: "A & B <script>".to_owned(),
            text: "see https://x.example/?a=1&b=2 \n<b>".to_owned(),
            html: "<p>hello</p>".to_owned(),
            headers: serde_json::json!({"X-Kind": "test"}),
            received_at: Utc::now(),
            opened: false,
            details: None,
            size: None,
        }
    }

    #[test]
    fn mail_content_is_escaped_on_the_page() {
        for view in [View::Html, View::Text, View::Source] {
            let page = render(&[message()], Some(&message()), Some(b"<script>"), view, Local::now());
            assert!(page.contains("A &amp; B &lt;script&gt;") && !page.contains("<script>"), "{page}");
            assert!(!page.contains("<p>hello</p>"), "the HTML part is only shown in its frame");
        }
    }

    #[test]
    fn links_in_text_can_be_followed() {
        assert_eq!(
            linked("go https://x.example/?a=1&b=2\n"),
            "go <a href=\"https://x.example/?a=1&amp;b=2\" target=\"_blank\" rel=\"noopener noreferrer\">\
             https://x.example/?a=1&amp;b=2</a>\n"
        );
        assert_eq!(linked("javascript:alert(1)"), "javascript:alert(1)");
    }

    #[test]
    fn times_are_human_readable() {
        let now = Local.with_ymd_and_hms(2026, 11, 21, 12, 0, 0).single().expect("a time");
        for (hours, told) in [(2, "10:00 AM"), (20, "Yesterday"), (80, "Nov 18"), (24 * 400, "Oct 17, 2025")] {
            assert_eq!(when(now - chrono::Duration::hours(hours), now), told);
        }
    }
}
