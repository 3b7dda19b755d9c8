-- Applies the calling role's `ALTER ROLE ... SET` settings to this transaction, as far as any role may set them, because `SET
-- ROLE` does not apply them. REST does the same (`rest/live/role_settings.sql`).
select set_config(own.name, own.value, true)
from (
    select split_part(setting, '=', 1) as name, substr(setting, strpos(setting, '=') + 1) as value
    from pg_catalog.pg_roles r, unnest(r.rolconfig) as setting
    where r.rolname = current_user
) own
-- Looked up per setting instead of joined, because most roles have none.
cross join lateral (
    select from pg_catalog.pg_settings s where s.name = own.name and s.context = 'user' offset 0
) everybodys
where own.name not in ('role', 'session_authorization')
