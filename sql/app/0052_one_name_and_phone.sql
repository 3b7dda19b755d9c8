-- Names and phone numbers that My Profile and Profile Settings hold differently: both show what My Profile showed.

update public.profiles p set phone = kept.phone
from (select u.id, left(coalesce(nullif(btrim(u.phone), ''), nullif(btrim(u.raw_user_meta_data ->> 'phone'), '')), 40) from auth.users u) kept (id, phone)
where kept.id = p.id and coalesce(p.phone, '') = '' and kept.phone is not null;

update public.profiles p set
  first_name = case when length(n.first) >= 2 then n.first end,
  last_name = case when length(n.last) >= 2 then n.last end
from (select x.id, left(split_part(x.name, ' ', 1), 100), btrim(left(btrim(substr(x.name, strpos(x.name || ' ', ' '))), 100))
  from (select q.id, btrim(q.full_name) from public.profiles q) x (id, name)) n (id, first, last)
where n.id = p.id and p.full_name <> left(concat_ws(' ', p.first_name, p.last_name), 200);

update auth.users u set raw_user_meta_data = before.metadata || kept.metadata
from auth.users b
  cross join lateral (select case when jsonb_typeof(b.raw_user_meta_data) = 'object' then b.raw_user_meta_data else '{}' end) before (metadata)
  join lateral (select jsonb_strip_nulls(jsonb_build_object('full_name', p.full_name, 'phone', p.phone)) from public.profiles p where p.id = b.id) kept (metadata) on true
where b.id = u.id and not before.metadata @> kept.metadata;
