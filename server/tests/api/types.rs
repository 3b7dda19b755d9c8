//! The web app's types match the schema.

use ferrobase::cli::types::{FormArgs, typescript};

use crate::support::TestApp;

/// `just types` regenerates the file.
#[actix_web::test]
async fn the_web_apps_database_types_match_the_schema() {
    let app = TestApp::start().await;
    let wanted = FormArgs::default().of(vec!["public".to_owned()]);
    let made = typescript(&app.owner_url, &wanted).await.expect("types");
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../frontend/src/types/database.ts");
    let kept = std::fs::read_to_string(&file).expect("frontend/src/types/database.ts");
    let differs = made.lines().zip(kept.lines()).position(|(made, kept)| made != kept);
    assert_eq!(differs, None, "frontend/src/types/database.ts is stale: run 'just types'");
    assert_eq!(made.lines().count(), kept.lines().count(), "frontend/src/types/database.ts is stale: run 'just types'");
}
