-- Codes of the OAuth server that were exchanged: whoever presents one again has it from somewhere else, and the session that
-- it opened ends (RFC 6749, 4.1.2). Rows go with their session, or an hour later.

create table if not exists auth.oauth_spent_codes (
  -- SHA-256 of the code.
  code_hash bytea not null constraint oauth_spent_codes_pkey primary key,
  client_id uuid not null,
  session_id uuid not null
    constraint oauth_spent_codes_session_id_fkey references auth.sessions (id) on delete cascade,
  created_at timestamptz not null default now()
);
create index if not exists oauth_spent_codes_session_id_idx on auth.oauth_spent_codes (session_id);
alter table auth.oauth_spent_codes enable row level security;

-- Where the table of refresh tokens is older than that of sessions.
do $$ begin
  if not exists (select from pg_constraint
      where conrelid = 'auth.refresh_tokens'::regclass and conname = 'refresh_tokens_session_id_fkey') then
    alter table auth.refresh_tokens add constraint refresh_tokens_session_id_fkey
      foreign key (session_id) references auth.sessions (id) on delete cascade;
  end if;
end $$;
