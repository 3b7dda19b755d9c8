//! The embedded web app and its run-time settings.
