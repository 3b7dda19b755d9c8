//! The SQL of a rotation, for single and batched refreshes.

/// `sql` with the rotation's statements inserted for `{rotation}`; `now` is the SQL expression for its time.
pub fn within(sql: &str, now: &str) -> String {
    let writes = include_str!("rotation.sql").lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>();
    sql.replace("{rotation}", &writes.join("\n")).replace("{now}", now)
}
