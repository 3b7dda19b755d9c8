-- What a new session of the login role begins with, as one text: ALTER ROLE ... SET and ALTER DATABASE ... SET.
select coalesce(string_agg(setdatabase::text || '/' || setrole::text || setconfig::text, ' ' order by setdatabase, setrole), '')
from pg_catalog.pg_db_role_setting
where setrole in (0, (select oid from pg_catalog.pg_roles where rolname = session_user))
  and setdatabase in (0, (select oid from pg_catalog.pg_database where datname = current_catalog))
