-- The function of supabase/index_advisor. The current cost is PostgreSQL's own estimate. Instead of advice, the column
-- for errors says that there is none.

create function index_advisor(query text)
returns table (
  startup_cost_before jsonb, startup_cost_after jsonb, total_cost_before jsonb, total_cost_after jsonb,
  index_statements text[], errors text[])
language plpgsql
as $$
declare
  plan jsonb;
  told text := 'hypothetical indexes are not served here, so no index is advised';
begin
  begin
    -- Parameters have no values yet.
    execute 'explain (generic_plan, format json) ' || query into plan;
  exception when others then
    told := sqlerrm;
  end;
  return query select plan -> 0 -> 'Plan' -> 'Startup Cost', null::jsonb, plan -> 0 -> 'Plan' -> 'Total Cost', null::jsonb,
    '{}'::text[], array[told];
end $$;
