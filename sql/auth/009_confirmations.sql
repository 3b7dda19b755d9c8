-- What a confirmation brings along. Whoever signs up with an address that waits for its confirmation may not be who signed
-- up with it first: each attempt keeps its password and metadata beside the link and code that were sent for it, and the
-- one that is used brings its own. auth.users holds those of the first attempt until then.

create table if not exists auth.pending_confirmations (
  id uuid not null constraint pending_confirmations_pkey primary key,
  user_id uuid not null
    constraint pending_confirmations_user_id_fkey references auth.users (id) on delete cascade,
  -- As in auth.one_time_tokens, which has the newest alone.
  token_hash text not null constraint pending_confirmations_token_hash_check check (char_length(token_hash) > 0),
  sent_at timestamptz not null,
  -- Who asked: an IPv4 address, the network of an IPv6 address, or ''.
  client text not null default '',
  -- The account was made by this attempt and has its password and metadata, unless somebody with a right to changed them.
  made_account boolean not null,
  -- NULL: the password that was set before the address was proved ends, and none takes its place.
  encrypted_password text,
  -- NULL: what the account has stays.
  user_metadata jsonb,
  -- Of the PKCE flow that the attempt began.
  flow_state_id uuid
);
create index if not exists pending_confirmations_token_hash_idx on auth.pending_confirmations using hash (token_hash);
create index if not exists pending_confirmations_user_id_idx on auth.pending_confirmations (user_id, sent_at);
alter table auth.pending_confirmations enable row level security;
