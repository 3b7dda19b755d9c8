-- What nonprofits help with and where, as they say themselves: the order in which people who ask find them.

alter table public.nonprofits
  add column helps_with text[] not null default '{}' constraint nonprofits_helps_with check (cardinality(helps_with) <= 100),
  add column service_area text[] not null default '{}'
    constraint nonprofits_service_area check (cardinality(service_area) <= 100 and length(service_area::text) <= 10000);
comment on column public.nonprofits.helps_with is 'Ids of global categories.';
comment on column public.nonprofits.service_area is 'Towns, counties or states, one each: ''Portland, ME''. Empty: the place of `location`.';
