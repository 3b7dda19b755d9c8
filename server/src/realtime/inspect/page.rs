//! The inspector as a page: topics on the left; the channels and frames of one on the right, below each other on a phone.

use std::fmt::Write as _;

use super::{Direction, RecordedFrame};
use crate::http::page::{Page, escape};

/// The data of the page.
pub struct View {
    pub sockets: i64,
    pub channels: i64,
    /// The state of the database's stream.
    pub stream: String,
    /// Those with the most channels.
    pub topics: Vec<Topic>,
    /// Whether there are more than shown.
    pub has_more: bool,
    pub shown: Option<Shown>,
}

/// A topic in the list.
pub struct Topic {
    pub name: String,
    pub private: bool,
    pub channels: usize,
    pub presences: usize,
}

/// The selected topic.
pub struct Shown {
    pub name: String,
    pub channels: Vec<Channel>,
    /// Oldest first.
    pub frames: Vec<RecordedFrame>,
}

/// A joined channel of the topic.
pub struct Channel {
    pub number: u64,
    pub private: bool,
    pub role: String,
    /// `sub` of the token.
    pub subject: String,
    pub version: &'static str,
    /// Its subscriptions to changes.
    pub changes: Vec<String>,
}

/// The whole page.
pub fn render(view: &View) -> String {
    let list = list(view);
    let shown = view.shown.as_ref().map_or_else(
        || r#"<p class="soft">Choose a topic, or name one above. Its frames are shown from then on.</p>"#.to_owned(),
        article,
    );
    let name = view.shown.as_ref().map_or_else(String::new, |shown| escape(&shown.name));
    let head = format!(
        r#"<div><h1>Realtime</h1><p id="figures" data-live>{sockets}, {channels}. {stream}</p></div>
<form action="/realtime"><label>Topic <input name="topic" value="{name}" required maxlength="1024" autocomplete="off" spellcheck="false"></label><button class="button">Watch</button></form>"#,
        sockets = count(view.sockets, "socket"),
        channels = count(view.channels, "channel"),
        stream = escape(&view.stream),
    );
    let columns = format!(
        r#"<nav aria-label="Topics" id="topics" data-live>{list}</nav><div class="shown" id="shown" data-live>{shown}</div>"#
    );
    Page { title: "Realtime", home: "/realtime", files: "/realtime", attributes: "", head: &head, columns: &columns }
        .render()
}

fn count(number: i64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn class(private: bool) -> &'static str {
    if private { "private" } else { "public" }
}

fn list(view: &View) -> String {
    if view.topics.is_empty() {
        return r#"<p class="soft">Nobody has joined a channel.</p>"#.to_owned();
    }
    let mut items = String::from(r#"<ul class="list">"#);
    for topic in &view.topics {
        let is_shown = view.shown.as_ref().is_some_and(|shown| shown.name == topic.name);
        let mark = if is_shown { r#" aria-current="true""# } else { "" };
        let address: String = form_urlencoded(&topic.name);
        let presences = match topic.presences {
            0 => String::new(),
            presences => format!(", {presences} present"),
        };
        // Writing to a String cannot fail.
        let _ = write!(
            items,
            r#"<li><a href="/realtime?topic={address}"{mark}><span class="name">{}</span><span class="soft">{}, {}{presences}</span></a></li>"#,
            escape(&topic.name),
            class(topic.private),
            count(number(topic.channels), "channel"),
        );
    }
    items.push_str("</ul>");
    if view.has_more {
        items.push_str(r#"<p class="soft">These are the fullest. Others can be named above.</p>"#);
    }
    items
}

fn article(shown: &Shown) -> String {
    let mut text = format!(r#"<h2>{}</h2><h3>Channels</h3>"#, escape(&shown.name));
    if shown.channels.is_empty() {
        text.push_str(r#"<p class="soft">Nobody is in it.</p>"#);
    } else {
        text.push_str(r#"<ul class="plain">"#);
        for channel in &shown.channels {
            let subject = match channel.subject.as_str() {
                "" => String::new(),
                subject => format!(" <code>{}</code>", escape(subject)),
            };
            let changes: String =
                channel.changes.iter().map(|change| format!("<br>told of <code>{}</code>", escape(change))).collect();
            let _ = write!(
                text,
                r#"<li>{}{subject} <span class="soft">{}, version {}, number {}{changes}</span></li>"#,
                escape(&channel.role),
                class(channel.private),
                channel.version,
                channel.number,
            );
        }
        text.push_str("</ul>");
    }
    text.push_str("<h3>Frames</h3>");
    if shown.frames.is_empty() {
        text.push_str(r#"<p class="soft">None since you look. They appear here by themselves.</p>"#);
        return text;
    }
    text.push_str(r#"<ol class="frames" reversed>"#);
    for frame in shown.frames.iter().rev() {
        let direction = match frame.direction {
            Direction::In => "from a client".to_owned(),
            Direction::Out => format!("to {}", count(number(frame.receivers), "client")),
        };
        let class = frame.private.map_or("", |private| if private { ", private" } else { ", public" });
        let kind = match frame.direction {
            Direction::In => "in",
            Direction::Out => "out",
        };
        let _ = write!(
            text,
            r#"<li class="{kind}" value="{}"><p class="soft"><time datetime="{}">{}</time> {direction}{class}, {size} bytes</p><pre tabindex="0">{}</pre></li>"#,
            frame.number,
            frame.at.to_rfc3339(),
            frame.at.format("%H:%M:%S%.3f UTC"),
            escape(&frame.text),
            size = frame.size,
        );
    }
    text.push_str("</ol>");
    text
}

fn form_urlencoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_input_is_escaped_on_the_page() {
        let evil = || "\"><script>alert(1)</script>&'".to_owned();
        let frame = RecordedFrame {
            number: 1,
            at: chrono::Utc::now(),
            direction: Direction::In,
            private: None,
            text: evil(),
            size: 1,
            receivers: 1,
        };
        let channel = Channel {
            number: 1,
            private: true,
            role: evil(),
            subject: evil(),
            version: "2.0.0",
            changes: vec![evil()],
        };
        let page = render(&View {
            sockets: 1,
            channels: 2,
            stream: evil(),
            topics: vec![Topic { name: evil(), private: true, channels: 1, presences: 3 }],
            has_more: true,
            shown: Some(Shown { name: evil(), channels: vec![channel], frames: vec![frame] }),
        });
        assert!(!page.contains("<script>alert") && !page.contains("\"><script"), "{page}");
        assert_eq!(page.matches("&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;&#39;").count(), 8, "{page}");
        assert!(page.contains("1 socket, 2 channels.") && page.contains("private, 1 channel, 3 present"), "{page}");
    }
}
