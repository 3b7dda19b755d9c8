-- Demo accounts. Password of all: aidbridge-demo1A (bcrypt, cost 10). The account trigger makes profiles and roles.

do $$
declare
  hash constant text := '$2a$10$t7MZPAJhWR4Lda/HPzWVpucmIXniDaXjhwPxCd1HsEadJ6I2QteL6';
  a record;
begin
  if exists (select 1 from auth.users where id = 'de300000-0000-4000-8000-000000000001') then return; end if;
  for a in select * from (values
    (1, 'requester', 'Marie-Thérèse Désir-Beauvoir', 'requester', '+1 207 555 0142'),
    (2, 'admin', 'Amélie Haïtien', 'nonprofit', '+1 207 555 0101'),
    (3, 'manager', 'Ruth Okonkwo', 'nonprofit', '+1 207 555 0102'),
    (4, 'employee', 'Samuel Brightwater', 'nonprofit', null),
    (5, 'volunteer', 'Nguyễn Thị Minh Khai', 'nonprofit', null),
    (6, 'donor', 'Daniel Whitcombe', 'requester', null),
    (7, 'donor2', 'Priya Raman', 'requester', null),
    (8, 'requester2', 'Joseph Adeyemi', 'requester', '+1 207 555 0177'),
    (9, 'lakeside', 'Helena Lindqvist', 'nonprofit', null),
    (10, 'opendoor', 'Jean-Baptiste Toussaint', 'nonprofit', null),
    (11, 'clinic', 'Carmen Ibáñez', 'nonprofit', null),
    (12, 'newcomer', 'Owen Pritchard', 'nonprofit', null)
  ) t (n, local_part, full_name, role, phone) loop
    insert into auth.users (instance_id, id, aud, role, email, encrypted_password, email_confirmed_at, confirmation_token, recovery_token,
      email_change_token_new, email_change, raw_app_meta_data, raw_user_meta_data, created_at, updated_at)
    values ('00000000-0000-0000-0000-000000000000', ('de300000-0000-4000-8000-' || lpad(a.n::text, 12, '0'))::uuid, 'authenticated', 'authenticated',
      a.local_part || '@demo.aidbridge.test', hash, now(), '', '', '', '',
      '{"provider": "email", "providers": ["email"]}',
      jsonb_strip_nulls(jsonb_build_object('sub', 'de300000-0000-4000-8000-' || lpad(a.n::text, 12, '0'), 'email', a.local_part || '@demo.aidbridge.test',
        'email_verified', true, 'phone_verified', false, 'full_name', a.full_name, 'role', a.role, 'phone', a.phone)),
      now() - interval '400 days', now() - interval '400 days');
    insert into auth.identities (provider_id, user_id, identity_data, provider, last_sign_in_at, created_at, updated_at)
    values ('de300000-0000-4000-8000-' || lpad(a.n::text, 12, '0'), ('de300000-0000-4000-8000-' || lpad(a.n::text, 12, '0'))::uuid,
      jsonb_build_object('sub', 'de300000-0000-4000-8000-' || lpad(a.n::text, 12, '0'), 'email', a.local_part || '@demo.aidbridge.test', 'email_verified', true),
      'email', now(), now() - interval '400 days', now() - interval '400 days');
  end loop;

  update public.user_roles set role = 'donor', nonprofit_role = null
  where user_id in ('de300000-0000-4000-8000-000000000006', 'de300000-0000-4000-8000-000000000007');
  -- donors, who get their gifts by address, and staff, whose invitations and donor messages are sent at once
  update private.account_addresses set proved_at = now()
  where email in ('donor@demo.aidbridge.test', 'donor2@demo.aidbridge.test', 'admin@demo.aidbridge.test', 'manager@demo.aidbridge.test',
    'employee@demo.aidbridge.test', 'volunteer@demo.aidbridge.test', 'lakeside@demo.aidbridge.test',
    'opendoor@demo.aidbridge.test', 'clinic@demo.aidbridge.test');

  update public.profiles set birthday = date '1971-03-14', country = 'United States',
    bio = 'I have lived in Portland since 2003 and look after two grandchildren.'
  where id = 'de300000-0000-4000-8000-000000000001';
  insert into public.profile_identities (user_id, id_type, id_number) values ('de300000-0000-4000-8000-000000000001', 'Passport', 'X0000142');

  -- a demo is tried by one person from one address
  update private.app_settings set value = '100' where key = 'rate_limit_factor';
end $$;
