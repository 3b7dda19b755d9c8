-- GraphQL is not served. Projects that use the extension load, and queries get an error in pg_graphql's format.

-- PostgreSQL runs this as a superuser, in a schema chosen by the caller, so objects in that schema must not be found.
set local search_path = pg_catalog, pg_temp;

create function graphql.resolve(
  query text, variables jsonb default '{}', "operationName" text default null, extensions jsonb default null
) returns jsonb
language sql stable
as $$
  select jsonb_build_object('data', null, 'errors', jsonb_build_array(
    jsonb_build_object('message', 'GraphQL is not served here: use /rest/v1')))
$$;

create function graphql.get_schema_version() returns integer
language sql stable
as $$
  select 1
$$;

create function graphql.comment_directive(comment_ text) returns jsonb
language sql immutable
as $$
  select coalesce((regexp_match(comment_, '@graphql\((.+)\)'))[1]::jsonb, '{}')
$$;

create function graphql.exception(message text) returns text
language plpgsql
as $$
begin
  raise exception using errcode = '22000', message = message;
end $$;

grant usage on schema graphql to public;
