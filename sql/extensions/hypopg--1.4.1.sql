-- The interface of HypoPG. Hypothetical indexes cannot be created: the planner would not see them, and its costs would
-- mean nothing.

create function hypopg_create_index(sql_order text, out indexrelid oid, out indexname text) returns setof record
language plpgsql strict
as $$
begin
  raise exception 'hypothetical indexes are not served here'
    using errcode = '0A000', hint = 'Create the index in a transaction, look at EXPLAIN, and roll it back.';
end $$;

create function hypopg(
  out indexname text, out indexrelid oid, out indrelid oid, out innatts integer, out indisunique boolean, out indkey int2vector,
  out indcollation oidvector, out indclass oidvector, out indoption oidvector, out indexprs pg_node_tree,
  out indpred pg_node_tree, out amid oid) returns setof record
language sql
as $$
  select null::text, null::oid, null::oid, null::integer, null::boolean, null::int2vector, null::oidvector, null::oidvector,
    null::oidvector, null::pg_node_tree, null::pg_node_tree, null::oid where false
$$;

create function hypopg_reset() returns void language sql as $$ $$;
create function hypopg_reset_index() returns void language sql as $$ $$;
create function hypopg_drop_index(indexid oid) returns boolean language sql strict as $$ select false $$;
create function hypopg_get_indexdef(indexid oid) returns text language sql strict as $$ select null::text $$;
create function hypopg_relation_size(indexid oid) returns bigint language sql strict as $$ select null::bigint $$;
create function hypopg_hide_index(indexid oid) returns boolean language sql strict as $$ select false $$;
create function hypopg_unhide_index(indexid oid) returns boolean language sql strict as $$ select false $$;
create function hypopg_unhide_all_indexes() returns void language sql as $$ $$;
create function hypopg_hidden_indexes(out indexid oid) returns setof oid language sql as $$ select null::oid where false $$;

create view hypopg_list_indexes as
  select null::oid as indexrelid, null::text as index_name, null::name as schema_name, null::name as table_name, null::name as am_name
  where false;
create view hypopg_hidden_indexes as
  select null::oid as indexrelid, null::name as index_name, null::name as schema_name, null::name as table_name, null::name as am_name,
    null::boolean as is_hypo
  where false;
