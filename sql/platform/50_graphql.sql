-- graphql_public.graphql as on a Supabase project whose pg_graphql is off: one of the two schemas exposed by default.
do $$
begin
  if pg_catalog.to_regprocedure('graphql_public.graphql(text, text, jsonb, jsonb)') is null then
    create function graphql_public.graphql(
      "operationName" text default null,
      query text default null,
      variables jsonb default null,
      extensions jsonb default null
    ) returns jsonb
    language sql
    as $graphql$
      select '{"errors": [{"message": "pg_graphql extension is not enabled."}]}'::jsonb
    $graphql$;
  end if;
end $$;
