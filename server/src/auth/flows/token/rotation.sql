-- What a rotation writes, of each row of `due` (token_id, token_session, successor, agent, address) at {now}: the session notes
-- by which agent and from where it was refreshed, the token gives way to its successor. Without a token nothing does.
refreshed as (
  update auth.sessions s
  set refreshed_at = {now} at time zone 'UTC', updated_at = {now}, user_agent = due.agent, ip = due.address
  from due
  where s.id = due.token_session
), revoked as (
  update auth.refresh_tokens t set revoked = true, updated_at = {now}
  from due
  where t.id = due.token_id
  returning t.token, t.user_id, t.session_id, due.successor
), issued as (
  insert into auth.refresh_tokens (instance_id, token, user_id, parent, session_id, revoked, created_at, updated_at)
  select '00000000-0000-0000-0000-000000000000', successor, user_id, token, session_id, false, {now}, {now}
  from revoked
)
