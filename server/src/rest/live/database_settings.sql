-- Settings `pgrst.*` of the login role: those for this database over those for all, over what the function ran
-- before has set in this session. Settings of the database alone do not count.
with stored as (
    select setdatabase <> 0 as is_local, unnest(setconfig) as setting
    from pg_catalog.pg_db_role_setting
    where setrole = (select oid from pg_catalog.pg_roles where rolname = current_user)
      and setdatabase in (0, (select oid from pg_catalog.pg_database where datname = current_catalog))
),
found as (
    select substr(setting, 1, strpos(setting, '=') - 1) as name,
           substr(setting, strpos(setting, '=') + 1) as value,
           case when is_local then 1 else 2 end as rank
    from stored
    union all
    select name, current_setting(name, true), 3
    from unnest($1::text[]) as name
    where $2
)
select distinct on (name) substr(name, length('pgrst.') + 1), value
from found
where name = any ($1) and value is not null
order by name, rank
