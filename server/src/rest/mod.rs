//! `/rest/v1`: PostgREST's API. The road: `ApiRequest → Plan → Sql → ResultSet → HttpResponse`.

pub mod authenticate;
pub mod cors;
pub mod live;
pub mod openapi;
