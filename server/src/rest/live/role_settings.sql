-- ALTER ROLE ... SET of the roles that the login role may take, as far as it may set them itself.
-- From PostgreSQL 15 on one more way to be allowed to is appended (in_database.rs).
with settings as (
    select r.rolname, unnest(r.rolconfig) as setting
    from pg_catalog.pg_auth_members m
    join pg_catalog.pg_roles r on r.oid = m.roleid
    where m.member = (select oid from pg_catalog.pg_roles where rolname = current_user)
),
pairs as (
    select rolname, substr(setting, 1, strpos(setting, '=') - 1) as name,
           substr(setting, strpos(setting, '=') + 1) as value
    from settings
)
select distinct p.rolname, p.name, p.value
from pairs p
join pg_catalog.pg_settings s on s.name = p.name
where s.context = 'user'
