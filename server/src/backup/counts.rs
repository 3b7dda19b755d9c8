//! The number of rows of each table.

use std::collections::BTreeMap;

use tokio_postgres::{Client, Error};

/// How many tables and indexes are locked at once. Counting locks them until its transaction ends, and the memory for locks is shared by
/// all sessions.
const LOCKS: i64 = 500;

/// The permanent tables that can be read, in parts with about [`LOCKS`] tables and indexes each. A materialized view without rows yet
/// cannot be read.
const PARTS: &str = "
  select array_agg(oid) from (
    select c.oid, sum(1 + (select count(*) from pg_catalog.pg_index i where i.indrelid = c.oid)) over (order by c.oid)::bigint / $1 as part
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'm') and c.relispopulated and c.relpersistence = 'p'
      and pg_catalog.has_table_privilege(c.oid, 'select') and n.nspname not in ('pg_catalog', 'information_schema')) tables
  group by part order by part";

/// A query that counts the rows of those of these tables that are still there.
const QUERY: &str = "
  select string_agg(format('select %L, count(*) from only %s', c.oid::regclass, c.oid::regclass), ' union all ')
  from pg_catalog.pg_class c where c.oid = any($1)";

/// The first transaction that may be missing from counts that follow.
pub async fn counted_xid(client: &Client) -> Result<String, Error> {
    let xid = "select pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::text";
    Ok(client.query_one(xid, &[]).await?.get(0))
}

/// Row counts of all permanent tables, each part of them in a snapshot of its own.
pub async fn count_rows(client: &Client) -> Result<BTreeMap<String, i64>, Error> {
    let mut counts = BTreeMap::new();
    for part in client.query(PARTS, &[&LOCKS]).await? {
        let tables: Vec<u32> = part.get(0);
        client.batch_execute("begin isolation level repeatable read read only; set local search_path = ''").await?;
        let query: Option<String> = client.query_one(QUERY, &[&tables]).await?.get(0);
        if let Some(query) = query {
            let rows = client.query(&query, &[]).await?;
            counts.extend(rows.iter().map(|row| (row.get(0), row.get(1))));
        }
        client.batch_execute("commit").await?;
    }
    Ok(counts)
}
