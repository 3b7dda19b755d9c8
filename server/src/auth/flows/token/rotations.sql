-- The common case of a refresh, for several tokens at a time. Each token of $1 gives way to the successor in its place of
-- $3, and its session notes when ($8), by which agent ($4) and from where ($5) that was. $6 and $7 are the ids of the
-- audit entries, NULL if only the process's log keeps them. A row comes back for each that was done. Passed over are tokens
-- that are unknown or spent, sessions with a limit, or of another client than in $2 (NULL: of any at all), the banned, the
-- deleted, and rows that somebody else holds: no row is waited for, and nobody waits for another's session.
with asked as (
  select *
  from unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::inet[], $6::uuid[], $7::uuid[])
    as asked (token, client, successor, agent, address, refresh_entry, revocation_entry)
), found as (
  select {columns}, t.id as token_id, t.user_id as token_user, s.id as token_session,
    asked.successor, asked.agent, asked.address, asked.refresh_entry, asked.revocation_entry
  from asked
  join auth.refresh_tokens t on t.token = asked.token
  join auth.sessions s on s.id = t.session_id
  join auth.users u on u.id = s.user_id and u.id::text = t.user_id
  where t.revoked is not true and s.oauth_client_id is not distinct from asked.client and u.banned_until is null
    and u.deleted_at is null
    -- Written so that an index on it, which leads to nearly all sessions, is of no use to the planner.
    and (s.not_after is null) is true and {of_instance}
  for no key update of t, s skip locked
), due as materialized (
  -- Few columns: an update keeps a copy of each row that it is joined with.
  select found.token_id, found.token_session, found.successor, found.agent, found.address from found
), {rotation}, noted as (
  insert into auth.audit_log_entries (instance_id, id, payload, created_at, ip_address)
  select '00000000-0000-0000-0000-000000000000', entry.id,
    -- As the other entries are: with a name only for who has told it.
    case
      when found.raw_user_meta_data -> 'full_name' is null then (
        select row_to_json(payload) from (
          select entry.action as action, found.token_user as actor_id,
            coalesce(nullif(found.phone, ''), found.email) as actor_username, found.is_sso_user as actor_via_sso,
            'token' as log_type
        ) payload)
      else (
        select row_to_json(payload) from (
          select entry.action as action, found.token_user as actor_id, found.raw_user_meta_data -> 'full_name' as actor_name,
            coalesce(nullif(found.phone, ''), found.email) as actor_username, found.is_sso_user as actor_via_sso,
            'token' as log_type
        ) payload)
    end,
    $8::timestamptz + entry.number * interval '1 microsecond', ''
  from found
  join revoked on revoked.successor = found.successor
  cross join lateral (
    values (found.refresh_entry, 'token_refreshed', 0), (found.revocation_entry, 'token_revoked', 1)
  ) as entry (id, action, number)
  where entry.id is not null
)
select found.* from found join revoked on revoked.successor = found.successor
