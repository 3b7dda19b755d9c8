//! The embedded web app and its run-time settings.
//!
//! `frontend/dist` is compiled into the binary together with its precompressed files (`.br`, `.gz`). Pages that people
//! arrive at are there in each language (`pages/<path>.<language>.html`). A path without a file answers `index.html`, so that the app's
//! router handles it. A missing file below `/assets/` is a 404.

mod assets;
mod settings;

use actix_web::web::{self, ServiceConfig};

pub use settings::{AppSettings, Providers};

/// Mounts `/app-config.json` and all remaining paths.
pub fn configure(settings: AppSettings, service: &mut ServiceConfig) {
    service
        .app_data(web::Data::new(settings))
        .route("/app-config.json", web::get().to(settings::app_config))
        .default_service(web::to(assets::serve));
}
