//! `/auth/v1`: GoTrue's API, a file per flow.
