-- What a refresh costs. Spending a token changes `revoked` and `updated_at`: while an index holds one of them, every index
-- of the table gets a new entry. The indexes below that no statement here asks for go (they lead to all rows, to a
-- user's by a text, to a token's successor); what those on `revoked` and `updated_at` were for is found by the
-- session and by the time of creation. The tables leave room for the new version of a row beside the old one.

create index if not exists refresh_tokens_session_id_id_idx on auth.refresh_tokens (session_id, id);
create index if not exists refresh_tokens_created_at_idx on auth.refresh_tokens (created_at);
drop index if exists
  auth.refresh_tokens_instance_id_idx,
  auth.refresh_tokens_instance_id_user_id_idx,
  auth.refresh_tokens_parent_idx,
  auth.refresh_tokens_session_id_revoked_idx,
  auth.refresh_tokens_updated_at_idx,
  auth.audit_logs_instance_id_idx;
alter table auth.refresh_tokens set (fillfactor = 80);
alter table auth.sessions set (fillfactor = 80);
