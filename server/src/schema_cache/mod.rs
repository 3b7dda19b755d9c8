//! What the database looks like: tables, relationships, functions; reloaded on NOTIFY.
