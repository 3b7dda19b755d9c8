-- The function of supabase/index_advisor. The costs are PostgreSQL's own estimates. It makes hypothetical indexes on every column of
-- the tables in the query's plan, and advises those that the planner then takes. Where HypoPG is not compiled, the column for errors
-- says that there is no advice.

create function index_advisor(query text)
returns table (
  startup_cost_before jsonb, startup_cost_after jsonb, total_cost_before jsonb, total_cost_after jsonb,
  index_statements text[], errors text[])
language plpgsql
as $$
#variable_conflict use_column
declare
  -- Parameters have no values yet.
  explain constant text := 'explain (generic_plan, verbose, format json) ' || query;
  hypopg constant text := (
    select quote_ident(n.nspname) from pg_catalog.pg_extension e
    join pg_catalog.pg_namespace n on n.oid = e.extnamespace
    join pg_catalog.pg_depend d on d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass and d.refobjid = e.oid and d.deptype = 'e'
    join pg_catalog.pg_proc p on d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass and p.oid = d.objid and p.proname = 'hypopg_create_index'
    join pg_catalog.pg_language l on l.oid = p.prolang
    where e.extname = 'hypopg' and l.lanname = 'c');
  before jsonb;
  after jsonb;
  candidate record;
  made record;
  ids oid[] := '{}';
  statements text[] := '{}';
  advised text[];
  problem text;
begin
  begin
    execute explain into before;
  exception when others then
    return query select null::jsonb, null::jsonb, null::jsonb, null::jsonb, '{}'::text[], array[sqlerrm];
    return;
  end;
  before := before -> 0 -> 'Plan';
  if hypopg is null then
    return query select before -> 'Startup Cost', null::jsonb, before -> 'Total Cost', null::jsonb, '{}'::text[],
      array['hypothetical indexes are not served here, so no index is advised'];
    return;
  end if;

  for candidate in
    select pg_catalog.format('CREATE INDEX ON %I.%I USING btree (%I)', n.nspname, c.relname, a.attname) as statement
    from (select distinct node ->> 'Schema' as schema, node ->> 'Relation Name' as relation
          from pg_catalog.jsonb_path_query(before, 'strict $.**') as node
          where pg_catalog.jsonb_typeof(node) = 'object' and node ? 'Relation Name') as found
    join pg_catalog.pg_namespace n on n.nspname = found.schema
    join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = found.relation and c.relkind in ('r', 'm', 'p')
    join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    join pg_catalog.pg_type t on t.oid = a.atttypid
    where n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
      -- Types that a B-tree orders.
      and exists (
        select from pg_catalog.pg_opclass o join pg_catalog.pg_am m on m.oid = o.opcmethod and m.amname = 'btree'
        where o.opcdefault and (o.opcintype in (t.oid, t.typbasetype)
          or (t.typtype = 'e' and o.opcintype = 'pg_catalog.anyenum'::pg_catalog.regtype)
          or (t.oid in ('pg_catalog.varchar'::pg_catalog.regtype) and o.opcintype = 'pg_catalog.text'::pg_catalog.regtype)))
      and not exists (select from pg_catalog.pg_index i where i.indrelid = c.oid and i.indkey[0] = a.attnum)
    order by 1
    limit 500
  loop
    begin
      execute pg_catalog.format('select * from %s.hypopg_create_index($1)', hypopg) into made using candidate.statement;
      ids := ids || made.indexrelid;
      statements := statements || pg_catalog.format('%s%s', candidate.statement, ';');
    exception when others then
      -- A column that HypoPG does not index is not advised.
      null;
    end;
  end loop;

  begin
    execute explain into after;
    after := after -> 0 -> 'Plan';
    execute pg_catalog.format(
      'select coalesce(array_agg(s.statement order by s.statement), ''{}'')
       from unnest($1, $2) as s (id, statement)
       join %s.hypopg_list_indexes l on l.indexrelid = s.id
       where exists (select from jsonb_path_query($3, ''strict $.**."Index Name"'') name where name #>> ''{}'' = l.index_name)', hypopg)
      into advised using ids, statements, after;
  exception when others then
    problem := sqlerrm;
  end;
  -- Others that the caller has made stay.
  for made in select id from pg_catalog.unnest(ids) id loop
    execute pg_catalog.format('select %s.hypopg_drop_index($1)', hypopg) using made.id;
  end loop;

  if advised is null then
    return query select before -> 'Startup Cost', null::jsonb, before -> 'Total Cost', null::jsonb, '{}'::text[],
      array[problem];
  else
    return query select before -> 'Startup Cost', after -> 'Startup Cost', before -> 'Total Cost', after -> 'Total Cost', advised, '{}'::text[];
  end if;
end $$;
