select graphql_public.graphql(query => '{ __typename }');
grant usage on schema graphql_public to anon; grant execute on function graphql_public.graphql to anon;
select graphql.resolve('{ a }');
