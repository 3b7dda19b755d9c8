-- The end of a refresh: audit entries ($3, $4, $5: ids, payloads, times; none if only the log keeps them), the stored
-- token $6 revoked for $7 (both NULL if the tokens stay as they are), and the session's last refresh.
with noted as (
  insert into auth.audit_log_entries (instance_id, id, payload, created_at, ip_address)
  select $1::uuid, entry.id, entry.payload, entry.noted_at, ''
  from unnest($3::uuid[], $4::json[], $5::timestamptz[]) as entry (id, payload, noted_at)
), revoked as (
  update auth.refresh_tokens set revoked = true, updated_at = $2::timestamptz where id = $6::bigint
), issued as (
  insert into auth.refresh_tokens (instance_id, token, user_id, parent, session_id, revoked, created_at, updated_at)
  select $1::uuid, $7::varchar, $8::varchar, $9::varchar, $10::uuid, false, $2::timestamptz, $2::timestamptz
  where $7::varchar is not null
)
update auth.sessions
set refreshed_at = $2::timestamptz at time zone 'UTC', updated_at = $2::timestamptz, user_agent = $11::text, ip = $12::inet
where id = $10::uuid
