//! The connection budget of an instance of the full server, and its split.

use super::Reader;

/// `FERROBASE_DB_CONNECTIONS` and its split. `PGRST_DB_POOL` and `GOTRUE_DB_MAX_POOL_SIZE` overrule their part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Requests at `/rest/v1`.
    pub rest: usize,
    /// The authentication API.
    pub auth: usize,
    /// Storage, functions and the REST API's root document.
    pub requests: usize,
}

/// Three instances fit into PostgreSQL's default of 100, of which three are reserved for superusers, with some room
/// left.
const DEFAULT: usize = 30;
const _: () = assert!(3 * DEFAULT + 3 < 100);

/// Opened regardless of the budget: two listeners (reloads, mail), two for loading the schema, three for refreshes
/// and one for counting messages, two for mail, one for health, and two for realtime.
const FIXED: usize = 13;

/// With fewer, the APIs would wait for each other.
const LEAST: usize = FIXED + 6;

impl Connections {
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let total = reader.parse_or(&["FERROBASE_DB_CONNECTIONS"], "a number of connections", DEFAULT);
        if total < LEAST {
            reader.problem(format!("FERROBASE_DB_CONNECTIONS must be at least {LEAST}"));
        }
        Self::of(total.max(LEAST))
    }

    fn of(total: usize) -> Self {
        let free = total - FIXED;
        // At least two, because functions leave one of theirs to storage.
        let (auth, requests) = (free * 3 / 10, (free / 4).max(2));
        Self { rest: free - auth - requests, auth, requests }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Source;

    #[test]
    fn the_shares_add_up_to_the_total_and_none_is_empty() {
        for total in LEAST..200 {
            let Connections { rest, auth, requests } = Connections::of(total);
            assert_eq!(rest + auth + requests + FIXED, total);
            assert!(rest >= 2 && auth >= 1 && requests >= 2, "{total}");
        }
        assert_eq!(Connections::of(DEFAULT), Connections { rest: 8, auth: 5, requests: 4 });
    }

    #[test]
    fn too_few_are_refused() {
        let source = Source::from_pairs([("FERROBASE_DB_CONNECTIONS", "5")]);
        let mut reader = Reader::new(&source);
        let connections = Connections::read(&mut reader);
        assert!(reader.finish(connections).expect_err("refused").to_string().contains("at least 19"));
    }
}
