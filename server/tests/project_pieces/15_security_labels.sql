select pgsodium.create_key(name := 'k');
create table secrets (id int primary key, secret text, key_id uuid, nonce bytea);
select pgsodium.crypto_aead_det_encrypt('a'::bytea, 'b'::bytea, (select id from pgsodium.key limit 1));
insert into vault.secrets (secret, name) values ('s', 'inserted') returning *;
