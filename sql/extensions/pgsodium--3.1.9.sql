-- Keys by id, and encryption with them. The keys are derived from the vault's, so data encrypted by another server
-- cannot be read here.

\i own_schema.sql
create schema if not exists pgsodium_masks;

create type pgsodium.key_status as enum ('default', 'valid', 'invalid', 'expired');
create type pgsodium.key_type as enum (
  'aead-ietf', 'aead-det', 'hmacsha512', 'hmacsha256', 'auth', 'shorthash', 'generichash', 'kdf', 'secretbox',
  'secretstream', 'stream_xchacha20');
create sequence pgsodium.key_key_id_seq;

create table pgsodium.key (
  id              uuid primary key default gen_random_uuid(),
  status          pgsodium.key_status default 'valid',
  created         timestamptz not null default current_timestamp,
  expires         timestamptz,
  key_type        pgsodium.key_type,
  key_id          bigint default nextval('pgsodium.key_key_id_seq'),
  key_context     bytea default '\x7067736f6469756d' check (length(key_context) = 8),
  name            text unique,
  associated_data text default 'associated',
  raw_key         bytea,
  raw_key_nonce   bytea,
  parent_key      uuid references pgsodium.key (id),
  comment         text,
  user_data       text
);

create view pgsodium.valid_key as
select id, name, status, key_type, key_id, key_context, created, expires, associated_data
from pgsodium.key
where status in ('valid', 'default') and (expires is null or expires > now());

create function pgsodium.create_key(
  key_type pgsodium.key_type default 'aead-det', name text default null, raw_key bytea default null,
  raw_key_nonce bytea default null, parent_key uuid default null, key_context bytea default '\x7067736f6469756d',
  expires timestamptz default null, associated_data text default ''
) returns pgsodium.valid_key
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
  with made as (
    insert into pgsodium.key (key_type, name, raw_key, raw_key_nonce, parent_key, key_context, expires, associated_data)
    values (key_type, name, raw_key, raw_key_nonce, parent_key, key_context, expires, associated_data)
    returning *
  )
  select id, name, status, key_type, key_id, key_context, created, expires, associated_data from made
$$;

-- pgcrypto's code. The project owns the schema of that extension, so what runs as the superuser cannot call its functions by name.
create function pgsodium._pgp_sym_encrypt(bytea, text, text) returns bytea
language c strict parallel safe as '$libdir/pgcrypto', 'pgp_sym_encrypt_bytea';
create function pgsodium._pgp_sym_decrypt(bytea, text) returns bytea
language c immutable strict parallel safe as '$libdir/pgcrypto', 'pgp_sym_decrypt_bytea';
create function pgsodium._hmac(text, text, text) returns bytea
language c immutable strict parallel safe as '$libdir/pgcrypto', 'pg_hmac';
create function pgsodium._random_bytes(integer) returns bytea
language c strict parallel safe as '$libdir/pgcrypto', 'pg_random_bytes';

create function pgsodium._secret(key_uuid uuid) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if key_uuid is null or not exists (select from pgsodium.valid_key where id = key_uuid) then
    raise exception 'there is no valid key %', key_uuid using errcode = '22023';
  end if;
  return pg_catalog.encode(pgsodium._hmac(
    key_uuid::text, pg_catalog.btrim(pg_catalog.pg_read_file('vault.key'), E' \n'), 'sha256'), 'hex');
end $$;

create function pgsodium.crypto_aead_det_noncegen() returns bytea
language sql security definer set search_path = pg_catalog, pg_temp
as $$ select pgsodium._random_bytes(32) $$;

create function pgsodium.crypto_aead_det_encrypt(message bytea, additional bytea, key_uuid uuid, nonce bytea default null)
returns bytea
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select pgsodium._pgp_sym_encrypt(message,
    pgsodium._secret(key_uuid) || encode(coalesce(additional, ''), 'hex') || encode(coalesce(nonce, ''), 'hex'),
    'cipher-algo=aes256, s2k-mode=0, compress-algo=0')
$$;

create function pgsodium.crypto_aead_det_decrypt(message bytea, additional bytea, key_uuid uuid, nonce bytea default null)
returns bytea
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select pgsodium._pgp_sym_decrypt(message,
    pgsodium._secret(key_uuid) || encode(coalesce(additional, ''), 'hex') || encode(coalesce(nonce, ''), 'hex'))
$$;

create function pgsodium.randombytes_buf(size integer) returns bytea
language sql security definer set search_path = pg_catalog, pg_temp
as $$ select pgsodium._random_bytes(size) $$;

create function pgsodium.crypto_generichash(message bytea, key bytea default null) returns bytea
language sql immutable set search_path = pg_catalog, pg_temp
as $$ select pg_catalog.sha256(coalesce(key, '') || message) $$;

revoke all on all functions in schema pgsodium from public;
do $$
declare
  user_role text;
begin
  foreach user_role in array array['pgsodium_keyiduser', 'pgsodium_keyholder', 'pgsodium_keymaker'] loop
    if not exists (select from pg_catalog.pg_roles where rolname = user_role) then
      begin
        execute pg_catalog.format('create role %I', user_role);
      -- Another database of this cluster gets the extension at the same time.
      exception when duplicate_object or unique_violation then null;
      end;
    end if;
  end loop;
  foreach user_role in array array['pgsodium_keyiduser', 'pgsodium_keyholder', 'pgsodium_keymaker', 'postgres', 'service_role'] loop
    continue when not exists (select from pg_catalog.pg_roles where rolname = user_role);
    execute pg_catalog.format('grant usage on schema pgsodium, pgsodium_masks to %I', user_role);
    execute pg_catalog.format('grant select on pgsodium.key, pgsodium.valid_key to %I', user_role);
    -- Dumps of rows set it.
    if user_role in ('postgres', 'pgsodium_keymaker') then
      execute pg_catalog.format('grant usage, select, update on sequence pgsodium.key_key_id_seq to %I', user_role);
    end if;
    execute pg_catalog.format('grant execute on all functions in schema pgsodium to %I', user_role);
    execute pg_catalog.format('revoke execute on function pgsodium._secret(uuid) from %I', user_role);
  end loop;
end $$;
select pg_catalog.pg_extension_config_dump('pgsodium.key', '');
