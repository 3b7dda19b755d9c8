create or replace view public.my_donor_messages with (security_barrier = true) as
  select m.id, m.nonprofit_id, n.name as nonprofit_name, m.subject, m.message, m.created_at as date, r.read_at is null as unread,
    coalesce((select jsonb_agg(jsonb_build_object('message', y.message, 'date', y.created_at) order by y.created_at)
      from public.donor_message_replies y where y.message_id = m.id and y.donor_user_id = r.donor_user_id), '[]'::jsonb) as replies
  from public.donor_message_recipients r
  join public.donor_messages m on m.id = r.message_id
  join public.nonprofits n on n.id = m.nonprofit_id
  where r.donor_user_id = (select auth.uid());

create or replace view public.donor_inbox with (security_invoker = true) as
  select r.id, r.nonprofit_id, r.message_id, r.from_name as "from", r.subject, left(regexp_replace(r.message, '\s+', ' ', 'g'), 140) as preview,
    r.message, r.created_at as date, r.read_at is null as unread
  from public.donor_message_replies r
  where r.nonprofit_id = any (array(select private.my_managed_organizations()));
