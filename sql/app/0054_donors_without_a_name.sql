-- Donors who gave no name were called 'A donor' in English. Now nothing is stored, and the page says it in its reader's language.

update public.budget_transactions t set donor = null
where t.donor = 'A donor' and not exists (select 1 from public.donations d where d.id = t.donation_id and d.donor_name <> '');

update public.notifications t set params = t.params || '{"donor": ""}'
where t.code in ('pledged', 'donorAnswered') and t.params ->> 'donor' = 'A donor';

update public.donor_message_replies r set from_name = '' where r.from_name = 'A donor';
