//! What a rotation writes, whether tokens are refreshed one by one or many at a time.

/// `sql` with what a rotation writes in the place of `{rotation}`; `now` is when that is, in SQL.
pub fn within(sql: &str, now: &str) -> String {
    let writes = include_str!("rotation.sql").lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>();
    sql.replace("{rotation}", &writes.join("\n")).replace("{now}", now)
}
