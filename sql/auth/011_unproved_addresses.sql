-- Addresses that count as confirmed although nobody proved them: where sign-ups need no mail (autoconfirm), a provider's word is
-- taken for an address that it did not verify. Whoever proves the address later gets the account without what was there before.

create table if not exists auth.unproved_addresses (
  user_id uuid not null constraint unproved_addresses_pkey primary key
    constraint unproved_addresses_user_id_fkey references auth.users (id) on delete cascade,
  -- Means something as long as it is the user's.
  email text not null,
  created_at timestamptz not null default now()
);
alter table auth.unproved_addresses enable row level security;

-- Accounts from before: confirmed as they were made, by a provider that did not vouch, and never mailed.
insert into auth.unproved_addresses (user_id, email)
select u.id, u.email
from auth.users u
where u.email <> '' and u.email_confirmed_at is not null and u.invited_at is null and not coalesce(u.is_sso_user, false)
  and u.confirmation_sent_at is null and u.recovery_sent_at is null and u.email_change_sent_at is null
  and u.email_confirmed_at - u.created_at between interval '-5 seconds' and interval '5 seconds'
  and exists (select from auth.identities i where i.user_id = u.id and i.provider not in ('email', 'phone')
    and i.identity_data ->> 'email' = u.email and i.identity_data -> 'email_verified' is distinct from 'true'
    and i.created_at - u.created_at between interval '-5 seconds' and interval '5 seconds')
  and not exists (select from auth.identities i where i.user_id = u.id and i.provider not in ('email', 'phone')
    and i.identity_data ->> 'email' = u.email and i.identity_data -> 'email_verified' = 'true')
on conflict (user_id) do nothing;
