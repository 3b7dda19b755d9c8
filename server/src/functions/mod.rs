//! `/functions/v1/{name}`: PostgreSQL functions of the schema `functions`.
