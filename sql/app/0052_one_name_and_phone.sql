-- Names and phone numbers that My Profile and Profile Settings hold differently: both show what My Profile showed.

update public.profiles p set phone = left(btrim(u.raw_user_meta_data ->> 'phone'), 40)
from auth.users u where u.id = p.id and p.phone is null and btrim(u.raw_user_meta_data ->> 'phone') <> '';

update public.profiles p set
  first_name = case when length(n.first) >= 2 then left(n.first, 100) end,
  last_name = case when length(n.last) >= 2 then left(n.last, 100) end
from (select x.id, split_part(btrim(x.full_name), ' ', 1), btrim(substr(btrim(x.full_name), strpos(btrim(x.full_name) || ' ', ' '))) from public.profiles x) n (id, first, last)
where n.id = p.id and p.full_name <> left(concat_ws(' ', p.first_name, p.last_name), 200);

update auth.users u set raw_user_meta_data = coalesce(u.raw_user_meta_data, '{}') || kept.metadata
from (select p.id, jsonb_strip_nulls(jsonb_build_object('full_name', p.full_name, 'phone', p.phone)) from public.profiles p) kept (id, metadata)
where kept.id = u.id and not coalesce(u.raw_user_meta_data, '{}') @> kept.metadata;
