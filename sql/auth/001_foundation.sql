-- Types, claim functions and the table of applied migrations. Names and types are Supabase Auth's, so that a
-- dump of a project restores and its policies find what they name. Every statement may run again.

create table if not exists auth.schema_migrations (
  version varchar(255) not null constraint schema_migrations_pkey primary key
);
-- Where Supabase Auth made the table itself it holds 14 characters: too few for the names of these files.
alter table auth.schema_migrations alter column version type varchar(255);

do $$
declare
  wanted constant jsonb := '{
    "aal_level": ["aal1", "aal2", "aal3"],
    "code_challenge_method": ["s256", "plain"],
    "factor_status": ["unverified", "verified"],
    "factor_type": ["totp", "webauthn", "phone"],
    "oauth_authorization_status": ["pending", "approved", "denied", "expired"],
    "oauth_client_type": ["public", "confidential"],
    "oauth_registration_type": ["dynamic", "manual"],
    "oauth_response_type": ["code"],
    "one_time_token_type": ["confirmation_token", "reauthentication_token", "recovery_token",
                            "email_change_token_new", "email_change_token_current", "phone_change_token"]
  }';
  type_name text;
  labels text;
begin
  for type_name in select jsonb_object_keys(wanted) loop
    if to_regtype('auth.' || type_name) is null then
      select string_agg(quote_literal(label), ', ' order by place) into labels
        from jsonb_array_elements_text(wanted -> type_name) with ordinality as l (label, place);
      execute format('create type auth.%I as enum (%s)', type_name, labels);
    end if;
  end loop;
end $$;

-- Older projects know two kinds of factor only.
alter type auth.factor_type add value if not exists 'phone';

-- Who asks: the single settings of old gateways first, then the JSON of all claims.
create or replace function auth.uid() returns uuid language sql stable as $$
  select coalesce(
    nullif(current_setting('request.jwt.claim.sub', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub'
  )::uuid
$$;

create or replace function auth.role() returns text language sql stable as $$
  select coalesce(
    nullif(current_setting('request.jwt.claim.role', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'role'
  )
$$;

create or replace function auth.email() returns text language sql stable as $$
  select coalesce(
    nullif(current_setting('request.jwt.claim.email', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'email'
  )
$$;

create or replace function auth.jwt() returns jsonb language sql stable as $$
  select coalesce(
    nullif(current_setting('request.jwt.claim', true), ''),
    nullif(current_setting('request.jwt.claims', true), '')
  )::jsonb
$$;
