-- The list of incoming requests, built for organizations with hundreds of thousands: its columns are stored in the
-- organization's part, and its counts are updated on every change.

-- -------------------------------------------------------------------------------------------------------- list entries

-- Whether the organization may see the person: not once another has taken the request. Without SET, so that the planner
-- inlines it.
create or replace function private.part_shows_person(p_state text, p_claimed_by text, p_nonprofit_id text) returns boolean
language sql immutable as $$
  select p_state in ('open', 'claimed', 'withdrawn') or (p_state = 'denied' and (p_claimed_by is null or p_claimed_by = p_nonprofit_id))
$$;

-- The amount that an organization is told: what was granted by itself, of others' requests only what was asked for. Without
-- SET, so that the planner inlines it.
create or replace function private.amount_for_part(p_requested numeric, p_approved numeric, p_claimed_by text, p_nonprofit_id text) returns numeric
language sql immutable as $$
  select case when p_claimed_by = p_nonprofit_id then coalesce(p_approved, p_requested) else p_requested end
$$;

create or replace function private.write_line() returns trigger
language plpgsql security definer set search_path = '' as $$
declare r record;
begin
  select x.request_number, x.status, x.category, x.amount_requested, x.amount_approved, x.needs_more_proof, x.first_name, x.last_name, x.claimed_by
  into r from public.requests x where x.id = new.request_id;
  new.status := case when new.state <> 'withdrawn' or new.opened_at is not null then private.status_for_part(new.state, r.status) end;
  new.needs_more_proof := coalesce(r.needs_more_proof and new.state = 'claimed', false);
  new.category := r.category;
  new.amount := private.amount_for_part(r.amount_requested, r.amount_approved, r.claimed_by, new.nonprofit_id);
  new.search_text := lower(concat_ws(' ', '', r.request_number, r.category, private.amount_text(new.amount),
    case when private.part_shows_person(new.state, r.claimed_by, new.nonprofit_id) then concat_ws(' ', r.first_name, r.last_name) end));
  return new;
end $$;

create or replace function private.write_lines_of_request() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  update public.request_nonprofits p set state = p.state where p.request_id = new.id;
  return null;
end $$;

-- -------------------------------------------------------------------------------------------------------------- counts

create or replace function private.is_due(p_status text, p_needs_more_proof boolean) returns boolean
language sql immutable as $$
  select p_status in ('pending', 'processing') and not p_needs_more_proof
$$;

create or replace function private.tally_added() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  insert into private.incoming_tally (nonprofit_id, status, category, due, change)
  select a.nonprofit_id, a.status, a.category, private.is_due(a.status, a.needs_more_proof), count(*) from added a
  where a.status is not null group by 1, 2, 3, 4;
  return null;
end $$;

create or replace function private.tally_removed() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
  insert into private.incoming_tally (nonprofit_id, status, category, due, change)
  select g.nonprofit_id, g.status, g.category, private.is_due(g.status, g.needs_more_proof), -count(*) from gone g
  where g.status is not null group by 1, 2, 3, 4;
  return null;
end $$;

create or replace function private.tally_changed() returns trigger
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

-- {all, pending, processing, approved, declined, withdrawn, taken, due}: the number of requests per status, and how
-- many need a decision.
create or replace function private.incoming_counts(p_nonprofit_id text) returns jsonb
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

-- --------------------------------------------------------------------------------------------------------------- pages

-- The words of a search as patterns for `like`, at most eight. Words of one or two letters match only at the beginning
-- of words: inside of words they would match nearly everywhere, without an index.
create or replace function private.search_patterns(p_search text) returns text[]
language sql immutable set search_path = '' as $$
  select coalesce(array_agg(case when length(w) < 3 then '% ' else '%' end || replace(replace(replace(w, '\', '\\'), '%', '\%'), '_', '\_') || '%'), '{}')
  from (select w from regexp_split_to_table(lower(left(p_search, 200)), '\s+') w where w <> '' limit 8) x
$$;

-- The order of rows x. '': longest wait for a decision first, then the newest.
create or replace function private.incoming_order(p_sort text, p_descending boolean) returns text
language sql immutable set search_path = '' as $$
  select case p_sort
    when '' then 'x.status not in (''pending'', ''processing''), case when x.status in (''pending'', ''processing'') then x.submitted_at end,
      case when x.status in (''pending'', ''processing'') then x.request_id end, x.submitted_at desc, x.request_id desc'
    when 'amount' then format('x.amount %1$s nulls last, x.request_id %1$s', case when p_descending then 'desc' else 'asc' end)
    else format('x.%1$I %2$s, x.request_id %2$s', p_sort, case when p_descending then 'desc' else 'asc' end) end
$$;

-- The ids of one page of an organization's requests. p_matches: a condition on p, made of quoted patterns. Each status
-- returns its first matching rows in the order of its own index (`offset 0` keeps the condition out of the index scan);
-- merging these few gives the page.
create or replace function private.incoming_ids(p_nonprofit_id text, p_statuses text[], p_matches text, p_sort text, p_descending boolean, p_start bigint, p_size int) returns text[]
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
    elsif p_sort = 'amount' then  -- those without an amount come last, whichever way
      branches := branches || (branch || format(' and y.amount is not null order by y.amount %1$s, y.request_id %1$s offset 0) p%2$s limit $2)', direction, p_matches))
        || (branch || format(' and y.amount is null order by y.request_id %1$s offset 0) p%2$s limit $2)', direction, p_matches));
    else
      branches := branches || (branch || format(' order by y.%1$I %2$s, y.request_id %2$s offset 0) p%3$s limit $2)', p_sort, direction, p_matches));
    end if;
  end loop;
  execute 'select array(select x.request_id from (' || array_to_string(branches, ' union all ') || ') x order by '
    || private.incoming_order(p_sort, p_descending) || ' offset $3 limit $4)'
    into ids using p_nonprofit_id, p_start + p_size, p_start, p_size;
  return ids;
end $$;

create or replace function private.incoming_rows(p_nonprofit_id text, p_ids text[]) returns jsonb
language sql stable security definer set search_path = '' as $$
  select coalesce(jsonb_agg(to_jsonb(i) - 'search_text' order by w.n), '[]'::jsonb)
  from unnest(p_ids) with ordinality w (id, n) join private.incoming_requests i on i.request_id = w.id and i.nonprofit_id = p_nonprofit_id
$$;

-- A page of Incoming Requests with the counts of all its tabs, in one call. sort: null (longest wait first, then the
-- newest), number, date, category or amount. mine: those assigned to the caller. A search counts its results to 1,000
-- and returns `more` beyond.
create or replace function public.incoming_page(nonprofit_id text, status text default null, search text default null, sort text default null,
  descending boolean default false, page int default 1, page_size int default 20, mine boolean default false) returns jsonb
language plpgsql stable security definer set search_path = '' as $$
#variable_conflict use_column
declare
  most constant int := 1000;
  np text := incoming_page.nonprofit_id;
  size int := least(greatest(coalesce(incoming_page.page_size, 20), 1), 1000);
  start bigint := (least(greatest(coalesce(incoming_page.page, 1), 1), 1000000)::bigint - 1) * size;
  statuses text[] := array['pending', 'processing', 'approved', 'declined', 'withdrawn', 'taken'];
  matches text[] := array(select format('p.search_text like %L', x) from unnest(private.search_patterns(incoming_page.search)) x);
  sorted text := case incoming_page.sort when 'number' then 'submitted_at' when 'date' then 'submitted_at' when 'category' then 'category'
    when 'amount' then 'amount' else '' end;
  sample constant text := 'select %s from (select * from public.request_nonprofits y where y.nonprofit_id = $1 and y.status = any ($2) limit %s) p';
  me public.nonprofit_team_members; counts jsonb; condition text; total bigint; ids text[];
begin
  me := private.require_member(np, array['admin', 'manager', 'employee']);
  if incoming_page.mine then
    matches := matches || format('p.assigned_to = %L', me.id);
  end if;
  counts := private.incoming_counts(np);
  if incoming_page.status is not null then
    if incoming_page.status <> all (statuses) then
      perform private.fail_fields('Please check the marked fields.', '{"status": "There is no such status"}');
    end if;
    statuses := array[incoming_page.status];
  end if;
  if matches = '{}' then
    total := case when incoming_page.status is null then counts ->> 'all' else counts ->> incoming_page.status end;
    ids := private.incoming_ids(np, statuses, '', sorted, incoming_page.descending, start, size);
  else
    condition := array_to_string(matches, ' and ');
    -- The index reads all rows of a word, however common. A word of which a sample has every sixth is counted in the list instead,
    -- where a thousand are soon found; should it be rarer further on, the index follows.
    if (counts ->> 'all')::bigint > 2 * most then
      execute format(sample, 'count(*) filter (where ' || condition || ')', 600) into total using np, statuses;
      if total >= 100 then
        execute 'select count(*) from (' || format(sample, '1', 10 * most) || ' where ' || condition || ' limit $3) x' into total using np, statuses, most + 1;
      end if;
    end if;
    if coalesce(total, 0) <= most then
      -- rare words, and one member's requests: all of them, by the index of words or of members
      execute 'with hits as materialized (select p.request_id, p.status, p.submitted_at, p.category, p.amount
          from public.request_nonprofits p where p.nonprofit_id = $1 and p.status = any ($2) and ' || condition || ' limit $3)
        select (select count(*) from hits), array(select x.request_id from hits x order by ' || private.incoming_order(sorted, incoming_page.descending) || ' offset $4 limit $5)'
        into total, ids using np, statuses, most + 1, start, size;
    end if;
    if total > most then
      -- common words are found soon while reading the list in order
      ids := private.incoming_ids(np, statuses, ' where ' || condition, sorted, incoming_page.descending, start, size);
    end if;
  end if;
  return jsonb_build_object('rows', private.incoming_rows(np, ids), 'total', case when matches = '{}' then total else least(total, most) end,
    'more', matches <> '{}' and total > most, 'counts', counts);
end $$;
