insert into auth.users (instance_id, id, aud, role, email, encrypted_password, email_confirmed_at, raw_app_meta_data, raw_user_meta_data,
  created_at, updated_at, confirmation_token, recovery_token, email_change, email_change_token_new)
select '00000000-0000-0000-0000-000000000000', id::uuid, 'authenticated', 'authenticated', name || '@compat.test',
  extensions.crypt('seed-Password-1', extensions.gen_salt('bf')), now(), '{"provider": "email", "providers": ["email"]}', '{}', now(), now(), '', '', '', ''
from (values ('11111111-1111-1111-1111-111111111111', 'ada'), ('22222222-2222-2222-2222-222222222222', 'bob')) as people (id, name);
insert into auth.identities (id, user_id, provider_id, provider, identity_data, last_sign_in_at, created_at, updated_at)
select gen_random_uuid(), id, id::text, 'email', jsonb_build_object('sub', id, 'email', email), now(), now(), now() from auth.users;

insert into public.tenants (id, name) values ('aaaaaaaa-0000-0000-0000-000000000001', 'Acme'), ('bbbbbbbb-0000-0000-0000-000000000002', 'Bolt');
insert into public.members values ('aaaaaaaa-0000-0000-0000-000000000001', '11111111-1111-1111-1111-111111111111'),
  ('bbbbbbbb-0000-0000-0000-000000000002', '22222222-2222-2222-2222-222222222222');
insert into public.tasks (tenant, title) select id, name || ' ' || n from public.tenants, generate_series(1, 3) n order by n, name;
