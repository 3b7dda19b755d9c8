//! The summary that `up` prints to stdout: addresses, keys and accounts.

use crate::app::Settings;
use crate::config::SqlSource;
use crate::embedded_pg::EmbeddedPostgres;
use crate::gateway::ApiKeys;
use crate::mail::MailConfig;

/// The demo accounts of `sql/seed`; all have [`DEMO_PASSWORD`].
const DEMO_ACCOUNTS: [(&str, &str); 5] = [
    ("requester@demo.aidbridge.test", "asks for help"),
    ("admin@demo.aidbridge.test", "runs a nonprofit"),
    ("manager@demo.aidbridge.test", "decides on requests"),
    ("employee@demo.aidbridge.test", "reads requests"),
    ("donor@demo.aidbridge.test", "gives"),
];
const DEMO_PASSWORD: &str = "aidbridge-demo1A";

/// The summary. Demo accounts are listed only if the database has them.
pub(super) fn text(settings: &Settings, keys: &ApiKeys, embedded: Option<&EmbeddedPostgres>, has_demo: bool) -> String {
    let config = &settings.server;
    let site = format!("http://{}", config.listen);
    let is_ours = config.migrations == SqlSource::Embedded;
    let mut lines = vec![
        String::new(),
        format!("{} is running.", if is_ours { "AidBridge on Ferrobase" } else { "Ferrobase" }),
        String::new(),
        format!("Web app           {site}"),
        format!("API               {site}/{{auth,rest,storage,functions}}/v1"),
    ];
    lines.push(match &settings.mail {
        MailConfig::Inbox(_) => {
            format!("Inbox             http://{}   every mail that would be sent", config.inbox_listen)
        }
        MailConfig::Smtp(smtp) => format!("Mail              sent through {}:{}", smtp.host, smtp.port),
        MailConfig::Drop => "Mail              not sent (FERROBASE_MAIL=drop)".to_owned(),
    });
    lines.push(format!("Database          {}", embedded.map_or("the one in DATABASE_URL", |e| e.url.as_str())));
    if let Some(folder) = embedded.and_then(|e| e.relocated.as_deref()) {
        let folder = folder.display();
        lines.push(format!("Database files    {folder}   (PostgreSQL's user cannot reach this folder)"));
    }
    lines.push(format!("anon key          {}", keys.anon()));
    lines.push(format!("service_role key  {}", keys.service_role()));
    lines.push(String::new());
    if has_demo {
        lines.push(format!("Demo accounts, password {DEMO_PASSWORD}"));
        lines.extend(DEMO_ACCOUNTS.iter().map(|(email, role)| format!("  {email:<32} {role}")));
        lines.push(String::new());
    }
    lines.push("Ctrl-C stops everything.".to_owned());
    lines.push(String::new());
    lines.iter().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") }).collect()
}
