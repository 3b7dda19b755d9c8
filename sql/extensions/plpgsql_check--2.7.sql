-- The interface of plpgsql_check. A check without findings would claim that a function is correct, so all checks are
-- refused.

create function plpgsql_check_function(
  funcoid regprocedure, relid regclass default 0, format text default 'text', fatal_errors boolean default true,
  other_warnings boolean default true, performance_warnings boolean default false, extra_warnings boolean default true,
  security_warnings boolean default false, compatibility_warnings boolean default false, oldtable name default null,
  newtable name default null)
returns setof text
language plpgsql
as $$
begin
  raise exception 'functions are not checked by plpgsql_check here'
    using errcode = '0A000', hint = 'ferrobase db lint reports what PostgreSQL itself finds.';
end $$;

create function plpgsql_check_function_tb(
  funcoid regprocedure, relid regclass default 0, fatal_errors boolean default true, other_warnings boolean default true,
  performance_warnings boolean default false, extra_warnings boolean default true, security_warnings boolean default false,
  compatibility_warnings boolean default false, oldtable name default null, newtable name default null)
returns table (
  functionid regproc, lineno integer, statement text, sqlstate text, message text, detail text, hint text, level text,
  "position" integer, query text, context text)
language plpgsql
as $$
begin
  raise exception 'functions are not checked by plpgsql_check here'
    using errcode = '0A000', hint = 'ferrobase db lint reports what PostgreSQL itself finds.';
end $$;
