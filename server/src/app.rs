//! Builds the server: state of each API, middleware order, one `configure` call per API.
