-- Incoming Requests of an organization with hundreds of thousands of them. What the list is cut, sorted and searched by stands on the
-- organization's part, and its counts are kept as they change, so that no page reads the whole list.

create extension if not exists pg_trgm with schema extensions;
create extension if not exists btree_gin with schema extensions;

-- ------------------------------------------------------------------------------------------- the part knows its line

alter table public.request_nonprofits
  add column status text,
  add column needs_more_proof boolean not null default false,
  add column category text,
  add column amount_requested numeric(12, 2),
  add column search_text text not null default '';
comment on column public.request_nonprofits.status is
  'How the request stands for this organization: pending, processing, approved, declined, withdrawn or taken; null when it is in no list (withdrawn before it was opened).';
comment on column public.request_nonprofits.search_text is
  'Number, category, amount and, where the organization may see it, the person''s name, in lower case after a space.';

-- Whether the organization may see who asks: not once another has taken the request. Without SET, so that the planner inlines it.
create function private.part_shows_person(p_state text, p_claimed_by text, p_nonprofit_id text) returns boolean
language sql immutable as $$
  select p_state in ('open', 'claimed', 'withdrawn') or (p_state = 'denied' and (p_claimed_by is null or p_claimed_by = p_nonprofit_id))
$$;

create function private.write_line() returns trigger
language plpgsql security definer set search_path = '' as $$
declare r record;
begin
  select x.request_number, x.status, x.category, x.amount, x.amount_requested, x.needs_more_proof, x.first_name, x.last_name, x.claimed_by
  into r from public.requests x where x.id = new.request_id;
  new.status := case when new.state <> 'withdrawn' or new.opened_at is not null then private.status_for_part(new.state, r.status) end;
  new.needs_more_proof := coalesce(r.needs_more_proof and new.state = 'claimed', false);
  new.category := r.category;
  new.amount_requested := r.amount_requested;
  new.search_text := lower(concat_ws(' ', '', r.request_number, r.category, r.amount,
    case when private.part_shows_person(new.state, r.claimed_by, new.nonprofit_id) then concat_ws(' ', r.first_name, r.last_name) end));
  return new;
end $$;
-- After 'hold_organization', which triggers in the order of their names see to.
create trigger write_line before insert or update of state, opened_at on public.request_nonprofits
  for each row execute function private.write_line();

create function private.write_lines_of_request() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  update public.request_nonprofits p set state = p.state where p.request_id = new.id;
  return null;
end $$;
create trigger write_lines after update on public.requests for each row
  when (old.status <> 'draft' and (old.status, old.category, old.amount, old.amount_requested, old.needs_more_proof, old.first_name, old.last_name, old.claimed_by, old.request_number)
    is distinct from (new.status, new.category, new.amount, new.amount_requested, new.needs_more_proof, new.first_name, new.last_name, new.claimed_by, new.request_number))
  execute function private.write_lines_of_request();

update public.request_nonprofits set state = state;

-- One index per sort; each leads with the status, so that a filter costs nothing and 'all' merges what its few statuses give.
drop index public.request_nonprofits_list;
create index request_nonprofits_by_date on public.request_nonprofits (nonprofit_id, status, submitted_at, request_id);
create index request_nonprofits_by_category on public.request_nonprofits (nonprofit_id, status, category, request_id);
create index request_nonprofits_by_amount on public.request_nonprofits (nonprofit_id, status, amount_requested, request_id);
create index request_nonprofits_search on public.request_nonprofits using gin (nonprofit_id extensions.text_ops, search_text extensions.gin_trgm_ops);

-- ------------------------------------------------------------------------------------------------------- counts

-- Changes in the number of requests per organization, status, category and 'a decision is due'. Rows are only added, so that nobody waits
-- for a counter; the hourly sweep adds them up.
create table private.incoming_tally (
  nonprofit_id text not null,
  status text not null,
  category text,
  due boolean not null,
  change bigint not null
);
create index incoming_tally_organization on private.incoming_tally (nonprofit_id) include (status, category, due, change);
alter table private.incoming_tally enable row level security;

create function private.is_due(p_status text, p_needs_more_proof boolean) returns boolean
language sql immutable as $$
  select p_status in ('pending', 'processing') and not p_needs_more_proof
$$;

create function private.tally_added() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  insert into private.incoming_tally (nonprofit_id, status, category, due, change)
  select a.nonprofit_id, a.status, a.category, private.is_due(a.status, a.needs_more_proof), count(*) from added a
  where a.status is not null group by 1, 2, 3, 4;
  return null;
end $$;
create function private.tally_removed() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  insert into private.incoming_tally (nonprofit_id, status, category, due, change)
  select g.nonprofit_id, g.status, g.category, private.is_due(g.status, g.needs_more_proof), -count(*) from gone g
  where g.status is not null group by 1, 2, 3, 4;
  return null;
end $$;
create function private.tally_changed() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  insert into private.incoming_tally (nonprofit_id, status, category, due, change)
  select x.nonprofit_id, x.status, x.category, x.due, sum(x.change) from (
    select a.nonprofit_id, a.status, a.category, private.is_due(a.status, a.needs_more_proof) as due, 1 as change from added a
    union all
    select g.nonprofit_id, g.status, g.category, private.is_due(g.status, g.needs_more_proof), -1 from gone g) x
  where x.status is not null group by 1, 2, 3, 4 having sum(x.change) <> 0;
  return null;
end $$;
create trigger tally_added after insert on public.request_nonprofits referencing new table as added
  for each statement execute function private.tally_added();
create trigger tally_removed after delete on public.request_nonprofits referencing old table as gone
  for each statement execute function private.tally_removed();
create trigger tally_changed after update on public.request_nonprofits referencing old table as gone new table as added
  for each statement execute function private.tally_changed();

insert into private.incoming_tally (nonprofit_id, status, category, due, change)
select p.nonprofit_id, p.status, p.category, private.is_due(p.status, p.needs_more_proof), count(*) from public.request_nonprofits p
where p.status is not null group by 1, 2, 3, 4;

-- Adds up what came since the last time; rows that another transaction adds meanwhile stay for the next.
create function private.add_up_tally() returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  with taken as (delete from private.incoming_tally returning *)
  insert into private.incoming_tally (nonprofit_id, status, category, due, change)
  select t.nonprofit_id, t.status, t.category, t.due, sum(t.change) from taken t group by 1, 2, 3, 4 having sum(t.change) <> 0;
end $$;

-- {all, pending, processing, approved, declined, withdrawn, taken, due}: how many requests of each status, and on how many a decision is due.
create function private.incoming_counts(p_nonprofit_id text) returns jsonb
language sql stable security definer set search_path = '' as $$
  select jsonb_build_object('all', coalesce(sum(t.change), 0),
    'pending', coalesce(sum(t.change) filter (where t.status = 'pending'), 0),
    'processing', coalesce(sum(t.change) filter (where t.status = 'processing'), 0),
    'approved', coalesce(sum(t.change) filter (where t.status = 'approved'), 0),
    'declined', coalesce(sum(t.change) filter (where t.status = 'declined'), 0),
    'withdrawn', coalesce(sum(t.change) filter (where t.status = 'withdrawn'), 0),
    'taken', coalesce(sum(t.change) filter (where t.status = 'taken'), 0),
    'due', coalesce(sum(t.change) filter (where t.due), 0))
  from private.incoming_tally t where t.nonprofit_id = p_nonprofit_id
$$;

create or replace function public.incoming_request_counts(nonprofit_id text) returns jsonb
language plpgsql stable security definer set search_path = '' as $$
#variable_conflict use_column
begin
  perform private.require_member(incoming_request_counts.nonprofit_id, array['admin', 'manager', 'employee']);
  return private.incoming_counts(incoming_request_counts.nonprofit_id);
end $$;

-- ------------------------------------------------------------------------------------------------ list and search

create or replace view private.incoming_requests as
  select p.request_id, p.nonprofit_id, r.request_number, r.category, r.category_id, r.amount, r.amount_requested,
    case when r.claimed_by = p.nonprofit_id then coalesce(r.amount_approved, f.amount) end as amount_approved,
    p.status, p.state as part, p.needs_more_proof, p.opened_at is not null as opened, p.submitted_at, r.updated_at,
    case when p.status in ('pending', 'processing') then floor(extract(epoch from now() - p.submitted_at) / 86400)::int end as waiting_days,
    case when private.part_shows_person(p.state, r.claimed_by, p.nonprofit_id) then concat_ws(' ', r.first_name, r.last_name) end as requester_name,
    p.search_text
  from public.request_nonprofits p
  join public.requests r on r.id = p.request_id
  left join private.first_approvals f on f.request_id = r.id
  where p.status is not null;

-- The words of a search as patterns for `like`, at most eight. A word of one or two letters is looked for where words begin: inside of
-- words it would be found nearly everywhere, and by no index.
create function private.search_patterns(p_search text) returns text[]
language sql immutable set search_path = '' as $$
  select coalesce(array_agg(case when length(w) < 3 then '% ' else '%' end || replace(replace(replace(w, '\', '\\'), '%', '\%'), '_', '\_') || '%'), '{}')
  from (select w from regexp_split_to_table(lower(left(p_search, 200)), '\s+') w where w <> '' limit 8) x
$$;

-- The order of rows x. '': what waits for a decision, the longest first, then the newest.
create function private.incoming_order(p_sort text, p_descending boolean) returns text
language sql immutable set search_path = '' as $$
  select case p_sort
    when '' then 'x.status not in (''pending'', ''processing''), case when x.status in (''pending'', ''processing'') then x.submitted_at end,
      case when x.status in (''pending'', ''processing'') then x.request_id end, x.submitted_at desc, x.request_id desc'
    when 'amount_requested' then format('x.amount_requested %1$s nulls last, x.request_id %1$s', case when p_descending then 'desc' else 'asc' end)
    else format('x.%1$I %2$s, x.request_id %2$s', p_sort, case when p_descending then 'desc' else 'asc' end) end
$$;

-- The ids of one page of an organization's requests. p_matches: a condition on p, made of quoted patterns. Every status gives its first rows
-- in order by its own index, those that match on the way (`offset 0` keeps the condition out of the walk); the merge of these few is the page.
create function private.incoming_ids(p_nonprofit_id text, p_statuses text[], p_matches text, p_sort text, p_descending boolean, p_start bigint, p_size int) returns text[]
language plpgsql stable security definer set search_path = '' as $$
declare
  direction text := case when p_descending then 'desc' else 'asc' end;
  branch text; branches text[] := '{}'; s text; ids text[];
begin
  foreach s in array p_statuses loop
    branch := format('(select * from (select * from public.request_nonprofits y where y.nonprofit_id = $1 and y.status = %L', s);
    if p_sort = '' then
      direction := case when s in ('pending', 'processing') then 'asc' else 'desc' end;
      branches := branches || (branch || format(' order by y.submitted_at %1$s, y.request_id %1$s offset 0) p%2$s limit $2)', direction, p_matches));
    elsif p_sort = 'amount_requested' then  -- those without an amount come last, whichever way
      branches := branches || (branch || format(' and y.amount_requested is not null order by y.amount_requested %1$s, y.request_id %1$s offset 0) p%2$s limit $2)', direction, p_matches))
        || (branch || format(' and y.amount_requested is null order by y.request_id %1$s offset 0) p%2$s limit $2)', direction, p_matches));
    else
      branches := branches || (branch || format(' order by y.%1$I %2$s, y.request_id %2$s offset 0) p%3$s limit $2)', p_sort, direction, p_matches));
    end if;
  end loop;
  execute 'select array(select x.request_id from (' || array_to_string(branches, ' union all ') || ') x order by '
    || private.incoming_order(p_sort, p_descending) || ' offset $3 limit $4)'
    into ids using p_nonprofit_id, p_start + p_size, p_start, p_size;
  return ids;
end $$;

create function private.incoming_rows(p_nonprofit_id text, p_ids text[]) returns jsonb
language sql stable security definer set search_path = '' as $$
  select coalesce(jsonb_agg(to_jsonb(i) - 'search_text' order by w.n), '[]'::jsonb)
  from unnest(p_ids) with ordinality w (id, n) join private.incoming_requests i on i.request_id = w.id and i.nonprofit_id = p_nonprofit_id
$$;

-- A page of Incoming Requests with the counts of all its tabs, in one call. sort: null (what waits longest first, then the newest),
-- number, date, category or amount. A search counts its finds to 1,000 and says `more` beyond.
create function public.incoming_page(nonprofit_id text, status text default null, search text default null, sort text default null,
  descending boolean default false, page int default 1, page_size int default 20) returns jsonb
language plpgsql stable security definer set search_path = '' as $$
#variable_conflict use_column
declare
  most constant int := 1000;
  np text := incoming_page.nonprofit_id;
  size int := least(greatest(coalesce(incoming_page.page_size, 20), 1), 1000);
  start bigint := (least(greatest(coalesce(incoming_page.page, 1), 1), 1000000)::bigint - 1) * size;
  statuses text[] := array['pending', 'processing', 'approved', 'declined', 'withdrawn', 'taken'];
  patterns text[] := private.search_patterns(incoming_page.search);
  sorted text := case incoming_page.sort when 'number' then 'submitted_at' when 'date' then 'submitted_at' when 'category' then 'category'
    when 'amount' then 'amount_requested' else '' end;
  counts jsonb; total bigint; ids text[];
begin
  perform private.require_member(np, array['admin', 'manager', 'employee']);
  counts := private.incoming_counts(np);
  if incoming_page.status is not null then
    if incoming_page.status <> all (statuses) then
      perform private.fail_fields('Please check the marked fields.', '{"status": "There is no such status"}');
    end if;
    statuses := array[incoming_page.status];
  end if;
  if patterns = '{}' then
    total := case when incoming_page.status is null then counts ->> 'all' else counts ->> incoming_page.status end;
    ids := private.incoming_ids(np, statuses, '', sorted, incoming_page.descending, start, size);
  else
    -- rare words: all that have them, by the index of words
    execute 'with hits as materialized (select p.request_id, p.status, p.submitted_at, p.category, p.amount_requested
        from public.request_nonprofits p where p.nonprofit_id = $1 and p.status = any ($2)'
      || (select string_agg(format(' and p.search_text like %L', x), '') from unnest(patterns) x) || ' limit $3)
      select (select count(*) from hits), array(select x.request_id from hits x order by ' || private.incoming_order(sorted, incoming_page.descending) || ' offset $4 limit $5)'
      into total, ids using np, statuses, most + 1, start, size;
    if total > most then
      -- words that many have are found soon on the way through the list
      ids := private.incoming_ids(np, statuses, ' where ' || (select string_agg(format('p.search_text like %L', x), ' and ') from unnest(patterns) x),
        sorted, incoming_page.descending, start, size);
    end if;
  end if;
  return jsonb_build_object('rows', private.incoming_rows(np, ids), 'total', case when patterns = '{}' then total else least(total, most) end,
    'more', patterns <> '{}' and total > most, 'counts', counts);
end $$;
