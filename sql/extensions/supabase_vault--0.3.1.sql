-- Secrets that are encrypted in the table, in dumps and in backups. The names are supabase/vault's. The server creates
-- the key with the cluster, in a file beside its data that no statement of a project can read. Ciphertexts of other
-- projects cannot be decrypted with it.

-- PostgreSQL runs this as a superuser, in a schema chosen by the caller, so objects in that schema must not be found.
set local search_path = pg_catalog, pg_temp;

create schema if not exists vault;

create table vault.secrets (
  id          uuid primary key default gen_random_uuid(),
  name        text,
  description text not null default '',
  secret      text not null,
  key_id      uuid,
  nonce       bytea default @extschema:pgcrypto@.gen_random_bytes(16),
  created_at  timestamptz not null default current_timestamp,
  updated_at  timestamptz not null default current_timestamp
);
create unique index secrets_name_idx on vault.secrets (name) where name is not null;
comment on table vault.secrets is 'Table with encrypted `secret` column for storing sensitive information on disk.';

-- pgcrypto's code. The project owns the schema of that extension, so what runs as the superuser cannot call its functions by name.
create function vault._pgp_sym_encrypt(bytea, text, text) returns bytea
language c strict parallel safe as '$libdir/pgcrypto', 'pgp_sym_encrypt_bytea';
create function vault._pgp_sym_decrypt(bytea, text) returns bytea
language c immutable strict parallel safe as '$libdir/pgcrypto', 'pgp_sym_decrypt_bytea';
create function vault._random_bytes(integer) returns bytea
language c strict parallel safe as '$libdir/pgcrypto', 'pg_random_bytes';

-- The encryption key. Only the owner of these functions may call this.
create function vault._key() returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return pg_catalog.btrim(pg_catalog.pg_read_file('vault.key'), E' \n');
exception when undefined_file then
  raise exception 'the vault has no key: the file vault.key is missing in the data directory' using errcode = '55000';
end $$;

-- Encrypts with AES-256 and authenticates id, key and nonce along with the secret.
create function vault._crypto_aead_det_encrypt(
  message bytea, additional bytea, key_id bigint, context bytea default 'pgsodium', nonce bytea default null
) returns bytea
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select vault._pgp_sym_encrypt(
    message, vault._key() || encode(coalesce(additional, ''), 'hex') || encode(coalesce(nonce, ''), 'hex'),
    'cipher-algo=aes256, s2k-mode=0, compress-algo=0')
$$;

create function vault._crypto_aead_det_decrypt(
  message bytea, additional bytea, key_id bigint, context bytea default 'pgsodium', nonce bytea default null
) returns bytea
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select vault._pgp_sym_decrypt(
    message, vault._key() || encode(coalesce(additional, ''), 'hex') || encode(coalesce(nonce, ''), 'hex'))
$$;

create function vault._crypto_aead_det_noncegen() returns bytea
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
  select vault._random_bytes(16)
$$;

create function vault.encrypt_secret() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  -- A value written directly to the column, as earlier versions allowed, is an unencrypted secret.
  if tg_op = 'INSERT' or new.secret is distinct from old.secret then
    new.nonce := coalesce(new.nonce, vault._crypto_aead_det_noncegen());
    new.secret := pg_catalog.translate(pg_catalog.encode(vault._crypto_aead_det_encrypt(
      pg_catalog.convert_to(new.secret, 'utf8'), pg_catalog.convert_to(new.id::text, 'utf8'), 0, 'pgsodium', new.nonce
    ), 'base64'), E'\n', '');
  end if;
  return new;
end $$;
create trigger encrypt_secret before insert or update on vault.secrets
  for each row execute function vault.encrypt_secret();

create function vault._decrypt(id uuid, secret text, nonce bytea) returns text
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select pg_catalog.convert_from(vault._crypto_aead_det_decrypt(
    pg_catalog.decode(secret, 'base64'), pg_catalog.convert_to(id::text, 'utf8'), 0, 'pgsodium', nonce), 'utf8')
$$;

create view vault.decrypted_secrets as
select id, name, description, secret, vault._decrypt(id, secret, nonce) as decrypted_secret, key_id, nonce,
       created_at, updated_at
from vault.secrets;

create function vault.create_secret(
  new_secret text, new_name text default null, new_description text default '', new_key_id uuid default null
) returns uuid
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
  insert into vault.secrets (secret, name, description, key_id)
  values (new_secret, new_name, coalesce(new_description, ''), new_key_id)
  returning id
$$;

-- Null arguments change nothing.
create function vault.update_secret(
  secret_id uuid, new_secret text default null, new_name text default null, new_description text default null,
  new_key_id uuid default null
) returns void
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
  update vault.secrets s
  set secret = coalesce(new_secret, s.secret),
      nonce = case when new_secret is null then s.nonce else vault._crypto_aead_det_noncegen() end,
      name = coalesce(new_name, s.name),
      description = coalesce(new_description, s.description),
      key_id = coalesce(new_key_id, s.key_id),
      updated_at = now()
  where s.id = secret_id
$$;

revoke all on all functions in schema vault from public;
-- Whoever may refer to a table chooses the types of the keys, and with them functions that run with its owner's rights.
do $$
declare
  reader text;
  passed_on text;
begin
  if exists (select from pg_catalog.pg_roles where rolname = 'supabase_vault_admin') then
    grant usage on schema vault to supabase_vault_admin;
    alter table vault.secrets owner to supabase_vault_admin;
  end if;
  foreach reader in array array['postgres', 'service_role'] loop
    continue when not exists (select from pg_catalog.pg_roles where rolname = reader);
    passed_on := case reader when 'postgres' then ' with grant option' else '' end;
    execute pg_catalog.format('grant usage on schema vault to %I', reader) || passed_on;
    execute pg_catalog.format('grant select, insert, update, delete on vault.secrets to %I', reader) || passed_on;
    execute pg_catalog.format('grant select, delete on vault.decrypted_secrets to %I', reader) || passed_on;
    execute pg_catalog.format('grant execute on function vault.create_secret(text, text, text, uuid),
      vault.update_secret(uuid, text, text, text, uuid), vault._decrypt(uuid, text, bytea),
      vault._crypto_aead_det_encrypt(bytea, bytea, bigint, bytea, bytea),
      vault._crypto_aead_det_decrypt(bytea, bytea, bigint, bytea, bytea),
      vault._crypto_aead_det_noncegen() to %I with grant option', reader);
  end loop;
  if exists (select from pg_catalog.pg_roles where rolname in ('postgres', 'supabase_vault_admin') having count(*) = 2) then
    grant truncate, references on vault.secrets to postgres with grant option;
  end if;
end $$;

select pg_catalog.pg_extension_config_dump('vault.secrets', '');
