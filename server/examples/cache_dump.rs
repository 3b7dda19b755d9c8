use ferrobase::schema_cache::introspect::{Scope, load};
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let url = std::env::args().nth(1).unwrap();
    let mut clients = vec![];
    for _ in 0..2 {
        let (c, conn) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(conn);
        clients.push(c);
    }
    let scope = Scope {
        schemas: vec!["public".into(), "reporting".into()],
        extra_search_path: vec!["public".into(), "extensions".into()],
        hoisted_settings: vec!["statement_timeout".into()],
    };
    let t = std::time::Instant::now();
    let cache = load(&clients[0], &clients[1], &scope).await.unwrap();
    eprintln!("{} in {:?}", cache.summary(), t.elapsed());
    let mut tables: Vec<_> = cache.tables().collect();
    tables.sort_by(|a, b| a.name.cmp(&b.name));
    for t in tables {
        println!(
            "{} view={} i{} u{} d{} pk={:?}",
            t.name, t.is_view, t.insertable, t.updatable, t.deletable, t.primary_key
        );
        for c in t.columns() {
            println!(
                "    {} {} | {} null={} len={:?} default={:?} enum={:?}",
                c.name, c.base_type, c.nominal_type, c.nullable, c.max_length, c.default, c.enum_labels
            );
        }
    }
    let mut rels: Vec<_> = cache.relationships().collect();
    rels.sort();
    for r in rels {
        println!("REL {}", serde_json::to_string(r).unwrap());
    }
    let mut fs: Vec<_> = cache.functions().collect();
    fs.sort();
    for f in fs {
        println!("FN {}", serde_json::to_string(f).unwrap());
    }
    for r in cache.representations().iter() {
        println!("REP {r:?}");
    }
    for r in cache.media_handlers().iter() {
        println!("MEDIA {r:?}");
    }
}
