//! Which template a mail has: inline, from a file, from a URL, or the default.
//!
//! All are read at start. The server does not start with a subject, inline template or file template that
//! does not parse. A URL that does not answer causes a warning; the default is used, and it is fetched
//! again later.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use serde_json::{Map, Value};

use super::defaults::{default_mail, frame};
use super::go_template::{Template, TemplateError};
use crate::config::{AuthConfig, MAILS};
use crate::http::answer_body::read_start;
use crate::outgoing;

/// Subject and bodies of one mail. A missing text body is made from the HTML.
pub struct Templates {
    subject: Template,
    html: Template,
    text: Option<Template>,
}

/// A rendered mail.
pub struct Rendered {
    pub subject: String,
    pub html: String,
    pub text: String,
}

impl Templates {
    pub fn render(&self, data: &Map<String, Value>) -> Result<Rendered, TemplateError> {
        let html = self.html.render(data)?;
        let text = match &self.text {
            Some(text) => unescape(&text.render(data)?),
            None => plain_text(&html),
        };
        // A subject is always one line.
        let subject = self.subject.render(data)?.replace(['\r', '\n'], " ");
        Ok(Rendered { subject, html, text })
    }
}

struct Entry {
    templates: Arc<Templates>,
    fetched: Instant,
    checked: Instant,
}

/// The templates of all mails.
pub struct TemplateStore {
    entries: RwLock<HashMap<&'static str, Entry>>,
    client: reqwest::Client,
    config: Arc<AuthConfig>,
}

/// Where a template comes from.
enum Origin<'a> {
    Default,
    Inline(&'a str),
    Url(String),
}

impl TemplateStore {
    /// Reads every template.
    pub async fn load(config: Arc<AuthConfig>) -> anyhow::Result<Self> {
        let client = outgoing::client().timeout(Duration::from_secs(10)).build()?;
        let store = Self { entries: RwLock::default(), client, config };
        for mail in MAILS {
            let templates = match store.origin(mail)? {
                Origin::Url(url) => match store.fetch(mail, &url).await {
                    Ok(templates) => templates,
                    Err(error @ FetchError::Parse(_)) => {
                        anyhow::bail!("the template of the mail '{mail}' at {url} does not parse: {error}")
                    }
                    Err(error) => {
                        tracing::warn!(mail, url, %error, "a mail template cannot be fetched; the default stands in");
                        store.of_default(mail)?
                    }
                },
                Origin::Inline(text) => store.of_html(mail, text)?,
                Origin::Default => store.of_default(mail)?,
            };
            store.put(mail, templates);
        }
        Ok(store)
    }

    /// The templates of `mail`.
    pub fn get(&self, mail: &'static str) -> Option<Arc<Templates>> {
        self.entries.read().get(mail).map(|entry| Arc::clone(&entry.templates))
    }

    /// Whether the templates of `mail` come from a URL and are old.
    pub fn is_due(&self, mail: &'static str) -> bool {
        let limits = &self.config.mailer;
        let is_old = self.entries.read().get(mail).is_some_and(|entry| {
            entry.fetched.elapsed() >= limits.template_max_age
                && entry.checked.elapsed() >= limits.template_retry_interval
        });
        is_old && matches!(self.origin(mail), Ok(Origin::Url(_)))
    }

    /// Fetches the templates of `mail` again, and keeps the old ones if that fails.
    pub async fn refresh(&self, mail: &'static str) {
        let Ok(Origin::Url(url)) = self.origin(mail) else { return };
        if let Some(entry) = self.entries.write().get_mut(mail) {
            entry.checked = Instant::now();
        }
        match self.fetch(mail, &url).await {
            Ok(fresh) => drop(self.put(mail, fresh)),
            Err(error) => {
                tracing::warn!(mail, url, %error, "a mail template cannot be fetched again; the last one is used");
            }
        }
    }

    fn put(&self, mail: &'static str, templates: Templates) -> Arc<Templates> {
        let templates = Arc::new(templates);
        let now = Instant::now();
        let entry = Entry { templates: Arc::clone(&templates), fetched: now, checked: now };
        self.entries.write().insert(mail, entry);
        templates
    }

    fn origin(&self, mail: &str) -> anyhow::Result<Origin<'_>> {
        let Some(setting) = self.config.mailer.templates.get(mail) else { return Ok(Origin::Default) };
        if setting.contains('<') || setting.contains("{{") {
            Ok(Origin::Inline(setting))
        } else if setting.starts_with("http://") || setting.starts_with("https://") {
            Ok(Origin::Url(setting.clone()))
        } else {
            Ok(Origin::Url(format!("{}{setting}", self.config.site_url)))
        }
    }

    fn subject(&self, mail: &str) -> anyhow::Result<Template> {
        let text = self.config.mailer.subjects.get(mail).map_or(default_mail(mail).subject, String::as_str);
        Template::parse(text)
            .map_err(|error| anyhow::anyhow!("the subject of the mail '{mail}' does not parse: {error}"))
    }

    fn of_default(&self, mail: &str) -> anyhow::Result<Templates> {
        let default = default_mail(mail);
        Ok(Templates {
            subject: self.subject(mail)?,
            html: Template::parse(&frame(default.html))?,
            text: Some(Template::parse(default.text)?),
        })
    }

    fn of_html(&self, mail: &str, html: &str) -> anyhow::Result<Templates> {
        let html = Template::parse(html)
            .map_err(|error| anyhow::anyhow!("the template of the mail '{mail}' does not parse: {error}"))?;
        Ok(Templates { subject: self.subject(mail)?, html, text: None })
    }

    async fn fetch(&self, mail: &str, url: &str) -> Result<Templates, FetchError> {
        if let Some(path) = url.strip_prefix(&format!("{}file:", self.config.site_url)) {
            let text = tokio::fs::read_to_string(path).await.map_err(|e| FetchError::Parse(e.to_string()))?;
            return self.of_html(mail, &text).map_err(|e| FetchError::Parse(e.to_string()));
        }
        let answer = self.client.get(url).send().await?;
        if answer.status() != reqwest::StatusCode::OK {
            return Err(FetchError::Status(answer.status().as_u16()));
        }
        let most = self.config.mailer.template_max_size;
        // With the rest of a character that begins within the limit.
        let start = read_start(answer, most.saturating_add(3)).await?;
        let text = String::from_utf8_lossy(&start);
        let end = text.floor_char_boundary(most.min(text.len()));
        self.of_html(mail, &text[..end]).map_err(|e| FetchError::Parse(e.to_string()))
    }
}

#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("the server answered {0}")]
    Status(u16),
    #[error(transparent)]
    Http(#[from] reqwest::Error),
    #[error("{0}")]
    Parse(String),
}

/// Undoes the HTML escaping of values in a text body.
fn unescape(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&#34;", "\"")
        .replace("&#39;", "'")
        .replace("&#43;", "+")
        .replace("&amp;", "&")
}

/// The text of an HTML body without markup; links keep their targets.
fn plain_text(html: &str) -> String {
    let mut out = String::new();
    let mut rest = html;
    while let Some((before, after)) = rest.split_once('<') {
        out.push_str(before);
        let Some((tag, tail)) = after.split_once('>') else { break };
        let name = tag.trim_start_matches('/').split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or("");
        rest = tail;
        match name.to_ascii_lowercase().as_str() {
            "style" | "script" | "head" if !tag.starts_with('/') => {
                let close = format!("</{name}");
                rest =
                    rest.split_once(close.as_str()).map_or("", |(_, after)| after.split_once('>').map_or("", |x| x.1));
            }
            "a" if !tag.starts_with('/') => {
                let target = tag.split_once("href=").map(|(_, value)| value.trim_start());
                if let Some(target) = target.and_then(|value| {
                    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
                    value[1..].split(quote).next()
                }) {
                    out.push_str(target);
                    out.push(' ');
                }
            }
            "p" | "br" | "div" | "h1" | "h2" | "h3" | "li" | "tr" | "ul" => out.push('\n'),
            _ => {}
        }
    }
    out.push_str(if rest.contains('<') { "" } else { rest });
    let text = unescape(&out);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut compact: Vec<&str> = Vec::new();
    for line in lines {
        if !(line.is_empty() && compact.last().is_none_or(|last| last.is_empty())) {
            compact.push(line);
        }
    }
    compact.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_body_is_derived_from_the_html() {
        let html = "<style>x{}</style><h2>Hi</h2><p>Go <a href=\"https://x/?a=1&amp;b=2\">there</a></p><p>a &lt; b</p>";
        assert_eq!(plain_text(html), "Hi\n\nGo https://x/?a=1&b=2 there\n\na < b");
    }
}
