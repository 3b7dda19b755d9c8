-- What this server remembers beyond Supabase Auth: steps of time whose codes were used, messages counted for all
-- instances together. Both may be lost without harm to accounts.

create table if not exists auth.totp_steps (
  factor_id uuid not null constraint totp_steps_pkey primary key
    constraint totp_steps_factor_id_fkey references auth.mfa_factors (id) on delete cascade,
  -- Of the last accepted code: unix seconds / 30.
  step bigint not null
);
alter table auth.totp_steps enable row level security;

create table if not exists auth.message_counts (
  -- 'email' or 'sms'.
  kind text not null constraint message_counts_pkey primary key,
  -- Start of the window, or when the bucket was last looked at.
  since timestamptz not null,
  counted double precision not null
);
alter table auth.message_counts enable row level security;
