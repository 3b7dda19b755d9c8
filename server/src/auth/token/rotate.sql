-- A refresh in the common case: if session $8 is still there and token $6 of it not spent, that token is revoked for $7,
-- with audit entries ($3, $4, $5: ids, payloads, times; none if only the log keeps them). One row when it did so, else
-- none. The session's row comes first, as where sessions end: whoever ends one waits for this, or this for them.
with refreshed as (
  update auth.sessions
  set refreshed_at = $2::timestamptz at time zone 'UTC', updated_at = $2::timestamptz, user_agent = $9::text, ip = $10::inet
  where id = $8::uuid
  returning id
), revoked as (
  update auth.refresh_tokens t set revoked = true, updated_at = $2::timestamptz
  from refreshed
  where t.id = $6::bigint and t.session_id = refreshed.id and t.revoked is not true
  returning t.token, t.user_id, t.session_id
), noted as (
  insert into auth.audit_log_entries (instance_id, id, payload, created_at, ip_address)
  select $1::uuid, entry.id, entry.payload, entry.noted_at, ''
  from revoked cross join unnest($3::uuid[], $4::json[], $5::timestamptz[]) as entry (id, payload, noted_at)
)
insert into auth.refresh_tokens (instance_id, token, user_id, parent, session_id, revoked, created_at, updated_at)
select $1::uuid, $7::varchar, revoked.user_id, revoked.token, revoked.session_id, false, $2::timestamptz, $2::timestamptz
from revoked
