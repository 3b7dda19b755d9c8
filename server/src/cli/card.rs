//! The card that `up` prints: where everything is.

use crate::config::{ServerConfig, SqlSource};
use crate::embedded_pg::EmbeddedPostgres;
use crate::gateway::ApiKeys;

/// The demo accounts of `sql/seed`; all have [`DEMO_PASSWORD`].
const DEMO_ACCOUNTS: [(&str, &str); 5] = [
    ("requester@demo.aidbridge.test", "asks for help"),
    ("admin@demo.aidbridge.test", "runs a nonprofit"),
    ("manager@demo.aidbridge.test", "decides on requests"),
    ("employee@demo.aidbridge.test", "reads requests"),
    ("donor@demo.aidbridge.test", "gives"),
];
const DEMO_PASSWORD: &str = "aidbridge-demo1A";

/// Prints it to stdout; the demo accounts only where the database holds them.
pub(super) fn print(config: &ServerConfig, keys: &ApiKeys, embedded: Option<&EmbeddedPostgres>, has_demo: bool) {
    let site = format!("http://{}", config.listen);
    let database = embedded.map_or("the one of DATABASE_URL", |e| e.url.as_str());
    println!();
    let is_ours = config.migrations == SqlSource::Embedded;
    println!("  {} is running.", if is_ours { "AidBridge on Ferrobase" } else { "Ferrobase" });
    println!();
    println!("  Web app           {site}");
    println!("  API               {site}/{{auth,rest,storage,functions}}/v1");
    println!("  Inbox             http://{}   every mail that would be sent", config.inbox_listen);
    println!("  Database          {database}");
    if let Some(folder) = embedded.and_then(|e| e.relocated.as_deref()) {
        println!("  Database files    {}   (PostgreSQL's user cannot reach this folder)", folder.display());
    }
    println!("  anon key          {}", keys.anon());
    println!("  service_role key  {}", keys.service_role());
    println!();
    if has_demo {
        println!("  Demo accounts, password {DEMO_PASSWORD}");
        for (email, role) in DEMO_ACCOUNTS {
            println!("    {email:<32} {role}");
        }
        println!();
    }
    println!("  Ctrl-C stops everything.");
    println!();
}
