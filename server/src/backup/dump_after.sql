-- Statements to run once everything else of a dump is restored: settings of roles and of the database, which no dump of one database
-- has and which could disturb `pg_restore`; and what only superusers may own, which then belongs to the restoring role. Whatever fails
-- is left out; a comparison of `dump_facts.sql` tells.
with settings as (
    select r.rolname, s.setdatabase <> 0 as is_here, split_part(item, '=', 1) as name, substr(item, strpos(item, '=') + 1) as value
    from pg_catalog.pg_db_role_setting s
    cross join unnest(s.setconfig) as item
    left join pg_catalog.pg_roles r on r.oid = s.setrole
    where s.setdatabase in (0, (select oid from pg_catalog.pg_database where datname = current_database()))
      -- If the library is missing, every login fails.
      and split_part(item, '=', 1) not like '%\_preload\_libraries'
      and case when s.setrole = 0 then s.setdatabase <> 0 else not starts_with(r.rolname, 'pg_') end
), quoted as (
    select *, format('set %I = %s', name,
        -- Lists of names are kept with their quotes.
        case when lower(name) in ('search_path', 'temp_tablespaces', 'unix_socket_directories')
             then coalesce((select string_agg(quote_literal(coalesce(replace(part[1], '""', '"'), part[2])), ', ' order by n)
                            from regexp_matches(value, '"((?:[^"]|"")*)"|([^",\s]+)', 'g') with ordinality as parts(part, n)), '''''')
             else quote_literal(value) end) as change
    from settings
), lines as (
    -- Roles belong to the whole cluster: those that were there keep what they have, and superusers everything.
    select 1 as step, coalesce(rolname, '') as about, format(
        'if not exists (
           select from pg_catalog.pg_db_role_setting s cross join unnest(s.setconfig) as item
           left join pg_catalog.pg_roles r on r.oid = s.setrole
           where coalesce(r.rolname, '''') = %1$L and starts_with(item, %2$L)
             and s.setdatabase = (case when %3$s then (select oid from pg_catalog.pg_database where datname = current_database()) else 0 end))
         and (%3$s or not exists (select from pg_catalog.pg_roles where rolname = %1$L and rolsuper)) then execute %4$s; end if;',
        coalesce(rolname, ''), name || '=', is_here::text,
        case when rolname is null then 'format(''alter database %I '', current_database())'
             when is_here then format('%L || format('' in database %%I '', current_database())', format('alter role %I', rolname))
             else quote_literal(format('alter role %I ', rolname)) end || ' || ' || quote_literal(change)) as body
    from quoted
    union all
    select 3, t.evtname, format('if not exists (select from pg_catalog.pg_event_trigger where evtname = %L) then execute %L; %s %s end if;',
        t.evtname,
        format('create event trigger %I on %s %s execute function %I.%I()', t.evtname, t.evtevent,
            (select format('when tag in (%s)', string_agg(quote_literal(tag), ', ')) from unnest(t.evttags) as tag having count(*) > 0),
            n.nspname, p.proname),
        (select format('alter event trigger %I %s;', t.evtname, state)
         from (values ('D', 'disable'), ('R', 'enable replica'), ('A', 'enable always')) as states (letter, state)
         where letter = t.evtenabled::text),
        format('comment on event trigger %I is %L;', t.evtname, obj_description(t.oid, 'pg_event_trigger')))
    from pg_catalog.pg_event_trigger t
    join pg_catalog.pg_proc p on p.oid = t.evtfoid
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace
    where not exists (select from pg_catalog.pg_depend d
                      where d.classid = 'pg_catalog.pg_event_trigger'::pg_catalog.regclass and d.objid = t.oid and d.deptype = 'e')
    union all
    select 2, pubname, format('if not exists (select from pg_catalog.pg_publication where pubname = %L) then execute %L; %s end if;', pubname,
        format('create publication %I for all tables with (publish = %L, publish_via_partition_root = %s%s)', pubname,
            concat_ws(', ', case when pubinsert then 'insert' end, case when pubupdate then 'update' end,
                case when pubdelete then 'delete' end, case when pubtruncate then 'truncate' end),
            pubviaroot::text, case when to_jsonb(p) ->> 'pubgencols' = 's' then ', publish_generated_columns = stored' end),
        format('comment on publication %I is %L;', pubname, obj_description(p.oid, 'pg_publication')))
    from pg_catalog.pg_publication p where puballtables
)
select coalesce(string_agg(format('do %L;', 'begin ' || body || ' exception when others then null; end'), E'\n' order by step, about, body), '')
from lines
