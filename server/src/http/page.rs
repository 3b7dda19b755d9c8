//! The layout of the server's own pages: the inbox and the realtime inspector.

/// The shared style; each page adds its own.
pub const STYLE: &str = include_str!("page.css");

const MARK: &str = r#"<svg viewBox="0 0 32 32" aria-hidden="true"><path class="mark-iron" d="M10 22.5V5.6M10 5.6h14.5M10 13.8h10" stroke-width="4.6"/><path class="mark-base" d="M3.5 28.2h25" stroke-width="3.2"/></svg>"#;

/// A page. Its parts are markup, so text from outside must be [escaped](escape).
pub struct Page<'a> {
    pub title: &'a str,
    /// The link of the name at the top.
    pub home: &'a str,
    /// Paths of its style and script, without `.css` and `.js`.
    pub files: &'a str,
    /// Attributes of `body`, with a space before each.
    pub attributes: &'a str,
    /// The part beside the heading: text and actions.
    pub head: &'a str,
    pub columns: &'a str,
}

impl Page<'_> {
    pub fn render(&self) -> String {
        let Self { title, home, files, attributes, head, columns } = self;
        format!(
            r##"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · Ferrobase</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{files}.css">
<script src="{files}.js" defer></script>
</head>
<body{attributes}>
<a class="skip" href="#main">Skip to main content</a>
<header class="top"><div class="wrap"><a class="brand" href="{home}">{MARK}<span>Ferrobase</span></a></div></header>
<main id="main" class="wrap">
<div class="head">{head}</div>
<div class="columns">{columns}</div>
</main>
</body>
</html>
"##
        )
    }
}

/// Escapes text for HTML.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}
