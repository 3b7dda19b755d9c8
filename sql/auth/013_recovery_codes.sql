-- Recovery codes: a factor of its own type, a set per user, a row per code. As upstream has them, so that a dump of a project restores.

alter type auth.factor_type add value if not exists 'recovery_code';

create table if not exists auth.mfa_recovery_code_sets (
  id uuid not null constraint mfa_recovery_code_sets_pkey primary key,
  user_id uuid not null constraint mfa_recovery_code_sets_user_id_key unique
    constraint mfa_recovery_code_sets_user_id_fkey references auth.users (id) on delete cascade,
  mfa_factor_id uuid not null constraint mfa_recovery_code_sets_mfa_factor_id_key unique
    constraint mfa_recovery_code_sets_mfa_factor_id_fkey references auth.mfa_factors (id) on delete cascade,
  failed_verification_count integer not null default 0
    constraint mfa_recovery_code_sets_failed_verification_count_check check (failed_verification_count >= 0),
  verification_locked_until timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
alter table auth.mfa_recovery_code_sets enable row level security;

create table if not exists auth.mfa_recovery_codes (
  id uuid not null constraint mfa_recovery_codes_pkey primary key,
  mfa_recovery_code_set_id uuid not null
    constraint mfa_recovery_codes_mfa_recovery_code_set_id_fkey
    references auth.mfa_recovery_code_sets (id) on delete cascade,
  -- Argon2id.
  code_hash text not null,
  consumed_at timestamptz,
  created_at timestamptz not null default now()
);
create index if not exists mfa_recovery_codes_set_id_idx on auth.mfa_recovery_codes (mfa_recovery_code_set_id);
alter table auth.mfa_recovery_codes enable row level security;

-- Supabase Auth finds nothing to do here, see 006.
insert into auth.schema_migrations (version) values ('20260824000000'), ('20260824000001') on conflict do nothing;
