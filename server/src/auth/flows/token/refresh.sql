-- The end of a refresh at $1: audit entries ($2, $3, $4: ids, payloads, times; none if only the log keeps them), and the
-- rotation of the session $7 by the agent $8 from $9. Its stored token $5 gives way to $6; both are NULL if the tokens stay.
with due as (
  select $5::bigint as token_id, $7::uuid as token_session, $6::varchar as successor, $8::text as agent, $9::inet as address
), {rotation}, noted as (
  insert into auth.audit_log_entries (instance_id, id, payload, created_at, ip_address)
  select '00000000-0000-0000-0000-000000000000', entry.id, entry.payload, entry.noted_at, ''
  from unnest($2::uuid[], $3::json[], $4::timestamptz[]) as entry (id, payload, noted_at)
)
select from due
