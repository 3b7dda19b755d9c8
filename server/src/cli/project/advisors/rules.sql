-- The rules of `db advisors`, each a query for detail, metadata and the key by which a finding is known again. The first line
-- before it gives number, name, level, category and, where the rule needs one, a table; the others title and description. Names, titles,
-- keys and what is found: supabase/splinter.

--! 0001 unindexed_foreign_keys INFO PERFORMANCE
--! Unindexed foreign keys
--! A foreign key whose columns no index begins with: deletes and joins have to read the whole table.
select format('Table `%s.%s` has a foreign key `%s` without a covering index.', r.schema, r.name, k.conname),
       jsonb_build_object('schema', r.schema, 'name', r.name, 'type', 'table', 'fkey_name', k.conname, 'fkey_columns', k.conkey),
       format('unindexed_foreign_keys_%s_%s_%s', r.schema, r.name, k.conname)
from relation r join pg_constraint k on k.conrelid = r.oid and k.contype = 'f'
where not exists (
  select from pg_index i
  where i.indrelid = r.oid and i.indisvalid
    and (string_to_array(i.indkey::text, ' ')::int2[])[1:cardinality(k.conkey)] = k.conkey
)

--! 0002 auth_users_exposed ERROR SECURITY
--! Exposed Auth Users
--! A view of the API that shows rows of `auth.users` to anon or authenticated.
select format('View/Materialized View "%s" in the %s schema may expose `auth.users` data to anon or authenticated roles.', r.name, r.schema),
       jsonb_build_object('schema', r.schema, 'name', r.name, 'type', 'view', 'exposed_to', array(
         select o.rolname from pg_roles o
         where o.rolname in ('anon', 'authenticated') and has_table_privilege(o.oid, r.oid, 'select') order by 1
       )),
       format('auth_users_exposed_%s_%s', r.schema, r.name)
from relation r
where r.is_exposed and r.kind in ('v', 'm') and exists (
  select from pg_rewrite w
  join pg_depend d on d.objid = w.oid and d.classid = 'pg_rewrite'::regclass and d.deptype = 'n'
  join pg_class u on u.oid = d.refobjid
  where w.ev_class = r.oid and u.oid = to_regclass('auth.users') and (r.kind = 'm' or not r.is_invoker or not u.relrowsecurity)
)

--! 0003 auth_rls_initplan WARN PERFORMANCE
--! Auth RLS Initialization Plan
--! A policy that calls `auth.<function>()` or `current_setting()` for each row, and not once in a subquery.
select format(
         'Table `%s.%s` has a row level security policy `%s` that re-evaluates current_setting() or auth.<function>() for each row. '
         'Write `(select auth.<function>())` in place of `auth.<function>()`.', p.schema, p.name, p.policy
       ),
       jsonb_build_object('schema', p.schema, 'name', p.name, 'type', 'table'),
       format('auth_rls_init_plan_%s_%s_%s', p.schema, p.name, p.policy)
from policy p
where p.has_rls and (p.schema <> all ($2) or p.schema = 'realtime') and exists (
  select from unnest(array[p.qual, p.with_check]) expression,
              unnest(array['auth.uid()', 'auth.jwt()', 'auth.role()', 'auth.email()', 'current\_setting(%)']) call
  where expression like '%' || call || '%' and lower(expression) not like '%select ' || call || '%'
)

--! 0004 no_primary_key INFO PERFORMANCE
--! No Primary Key
--! A table without a primary key.
select format('Table `%s.%s` does not have a primary key', r.schema, r.name),
       jsonb_build_object('schema', r.schema, 'name', r.name, 'type', 'table'),
       format('no_primary_key_%s_%s', r.schema, r.name)
from relation r
where r.kind = 'r' and not exists (select from pg_index i where i.indrelid = r.oid and i.indisprimary)

--! 0005 unused_index INFO PERFORMANCE
--! Unused Index
--! An index that no query has used since the statistics were reset.
select format('Index `%s` on table `%s.%s` has not been used', s.indexrelname, r.schema, r.name),
       jsonb_build_object('schema', r.schema, 'name', r.name, 'type', 'table'),
       format('unused_index_%s_%s_%s', r.schema, r.name, s.indexrelname)
from relation r
join pg_stat_user_indexes s on s.relid = r.oid
join pg_index i on i.indexrelid = s.indexrelid
where s.idx_scan = 0 and not i.indisunique and not i.indisprimary

--! 0006 multiple_permissive_policies WARN PERFORMANCE
--! Multiple Permissive Policies
--! Several permissive policies for one role and action: each of them runs for every row.
select format(
         'Table `%s.%s` has multiple permissive policies for role `%s` for action `%s`. Policies include `%s`',
         p.schema, p.name, o.rolname, a.action, array_agg(p.policy order by p.policy)
       ),
       jsonb_build_object('schema', p.schema, 'name', p.name, 'type', 'table'),
       format('multiple_permissive_policies_%s_%s_%s_%s', p.schema, p.name, o.rolname, a.action)
from policy p
join pg_roles o on p.role_oids @> array[o.oid] or p.role_oids = array[0::oid]
cross join unnest(
  case p.command when 'ALL' then array['SELECT', 'INSERT', 'UPDATE', 'DELETE'] else array[p.command] end
) a (action)
where p.is_permissive and p.kind = 'r' and exists (select from relation r where (r.schema, r.name) = (p.schema, p.name))
  and o.rolname not like 'pg_%' and o.rolname not like 'supabase%admin' and o.rolname not like 'ferrobase\_%' and not o.rolbypassrls
group by p.schema, p.name, o.rolname, a.action
having count(*) > 1

--! 0007 policy_exists_rls_disabled ERROR SECURITY
--! Policy Exists RLS Disabled
--! A table whose policies do nothing, because row level security is not enabled on it.
select format(
         'Table `%s.%s` has RLS policies but RLS is not enabled on the table. Policies include %s.',
         p.schema, p.name, array_agg(p.policy order by p.policy)
       ),
       jsonb_build_object('schema', p.schema, 'name', p.name, 'type', 'table'),
       format('policy_exists_rls_disabled_%s_%s', p.schema, p.name)
from policy p join relation r on (r.schema, r.name) = (p.schema, p.name)
where r.kind = 'r' and not r.has_rls
group by p.schema, p.name

--! 0008 rls_enabled_no_policy INFO SECURITY
--! RLS Enabled No Policy
--! A table with row level security and without a policy: nobody but its owner sees rows.
select format('Table `%s.%s` has RLS enabled, but no policies exist', r.schema, r.name),
       jsonb_build_object('schema', r.schema, 'name', r.name, 'type', 'table'),
       format('rls_enabled_no_policy_%s_%s', r.schema, r.name)
from relation r
where r.kind = 'r' and r.has_rls and not exists (select from pg_policy p where p.polrelid = r.oid)

--! 0009 duplicate_index WARN PERFORMANCE
--! Duplicate Index
--! Indexes that are the same but for their names.
select format(
         'Table `%s.%s` has identical indexes %s. Drop all except one of them',
         r.schema, r.name, array_agg(i.indexname order by i.indexname)
       ),
       jsonb_build_object(
         'schema', r.schema, 'name', r.name, 'type', case r.kind when 'r' then 'table' else 'materialized view' end,
         'indexes', array_agg(i.indexname order by i.indexname)
       ),
       format('duplicate_index_%s_%s_%s', r.schema, r.name, array_agg(i.indexname order by i.indexname))
from relation r join pg_indexes i on (i.schemaname, i.tablename) = (r.schema, r.name)
where r.kind in ('r', 'm')
group by r.schema, r.name, r.kind, replace(i.indexdef, i.indexname, '')
having count(*) > 1

--! 0010 security_definer_view ERROR SECURITY
--! Security Definer View
--! A view of the API that reads with the rights of its owner, past the policies for the one who asks.
select format('View `%s.%s` is defined with the SECURITY DEFINER property', r.schema, r.name),
       jsonb_build_object('schema', r.schema, 'name', r.name, 'type', 'view'),
       format('security_definer_view_%s_%s', r.schema, r.name)
from relation r
where r.kind = 'v' and r.is_exposed and not r.is_invoker

--! 0011 function_search_path_mutable WARN SECURITY
--! Function Search Path Mutable
--! A function that finds its tables by the search path of its caller.
select format('Function `%s.%s` has a role mutable search_path', n.nspname, p.proname),
       jsonb_build_object('schema', n.nspname, 'name', p.proname, 'type', 'function'),
       format('function_search_path_mutable_%s_%s_%s', n.nspname, p.proname, md5(p.prosrc))
from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where n.nspname <> all ($2)
  and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
  and not exists (select from unnest(p.proconfig) setting where setting like 'search\_path=%')

--! 0013 rls_disabled_in_public ERROR SECURITY
--! RLS Disabled in Public
--! A table of the API without row level security: everybody with the anon key reads all of it.
select format('Table `%s.%s` is public, but RLS has not been enabled.', r.schema, r.name),
       jsonb_build_object('schema', r.schema, 'name', r.name, 'type', 'table'),
       format('rls_disabled_in_public_%s_%s', r.schema, r.name)
from relation r
where r.kind = 'r' and r.is_exposed and not r.has_rls

--! 0014 extension_in_public WARN SECURITY
--! Extension in Public
--! An extension in the schema `public`, whose functions the API then offers.
select format('Extension `%s` is installed in the public schema. Move it to another schema.', e.extname),
       jsonb_build_object('schema', 'public', 'name', e.extname, 'type', 'extension'),
       format('extension_in_public_%s', e.extname)
from pg_extension e join pg_namespace n on n.oid = e.extnamespace
where n.nspname = 'public' and e.extname <> 'plpgsql'

--! 0015 rls_references_user_metadata ERROR SECURITY
--! RLS references user metadata
--! A policy that trusts `user_metadata`, which every user can change.
select format(
         'Table `%s.%s` has a row level security policy `%s` that references Supabase Auth `user_metadata`. Users can edit it, so it must '
         'not be used in a security context.', p.schema, p.name, p.policy
       ),
       jsonb_build_object('schema', p.schema, 'name', p.name, 'type', 'table'),
       format('rls_references_user_metadata_%s_%s_%s', p.schema, p.name, p.policy)
from policy p
where p.schema <> all ($2) and exists (
  select from unnest(array[p.qual, p.with_check]) expression
  where expression like '%auth.jwt()%user_metadata%' or expression like '%current\_setting(%request.jwt.claims%)%user_metadata%'
)

--! 0016 materialized_view_in_api WARN SECURITY
--! Materialized View in API
--! A materialized view of the API: it has no row level security.
select format('Materialized view `%s.%s` is selectable by anon or authenticated roles', r.schema, r.name),
       jsonb_build_object('schema', r.schema, 'name', r.name, 'type', 'materialized view'),
       format('materialized_view_in_api_%s_%s', r.schema, r.name)
from relation r
where r.kind = 'm' and r.is_exposed

--! 0017 foreign_table_in_api WARN SECURITY
--! Foreign Table in API
--! A foreign table of the API: it has no row level security.
select format('Foreign table `%s.%s` is accessible over APIs', r.schema, r.name),
       jsonb_build_object('schema', r.schema, 'name', r.name, 'type', 'foreign table'),
       format('foreign_table_in_api_%s_%s', r.schema, r.name)
from relation r
where r.kind = 'f' and r.is_exposed

--! 0018 unsupported_reg_types WARN SECURITY
--! Unsupported reg types
--! A column of a type that holds OIDs of the catalog, with which pg_upgrade refuses the database.
select format('Table `%s.%s` has a column `%s` with unsupported reg* type `%s`.', n.nspname, c.relname, a.attname, t.typname),
       jsonb_build_object('schema', n.nspname, 'name', c.relname, 'column', a.attname, 'type', 'table'),
       format('unsupported_reg_types_%s_%s_%s', n.nspname, c.relname, a.attname)
from pg_attribute a
join pg_class c on c.oid = a.attrelid
join pg_namespace n on n.oid = c.relnamespace
join pg_type t on t.oid = a.atttypid
where t.typnamespace = 'pg_catalog'::regnamespace and c.relkind in ('r', 'p', 'm', 'f')
  and t.typname in ('regcollation', 'regconfig', 'regdictionary', 'regnamespace', 'regoper', 'regoperator', 'regproc', 'regprocedure')
  and n.nspname not in ('pg_catalog', 'information_schema', 'pgsodium')

--! 0019 insecure_queue_exposed_in_api ERROR SECURITY
--! Insecure Queue Exposed in API
--! A queue of pgmq without row level security, while the API exposes `pgmq_public`.
select format('Table `%s.%s` is public, but RLS has not been enabled.', n.nspname, c.relname),
       jsonb_build_object('schema', n.nspname, 'name', c.relname, 'type', 'table'),
       format('rls_disabled_in_public_%s_%s', n.nspname, c.relname)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'pgmq' and c.relname like 'q\_%' and c.relkind in ('r', 'p') and not c.relrowsecurity
  and 'pgmq_public' = any ($1) and exists (
    select from pg_roles o where o.rolname in ('anon', 'authenticated') and has_table_privilege(o.oid, c.oid, 'select')
  )

--! 0020 table_bloat INFO PERFORMANCE
--! Table Bloat
--! A table that takes far more pages than its rows need, by the statistics of the last analyze.
select format('Table `%s`.`%s` has excessive bloat', b.schema, b.name),
       jsonb_build_object('schema', b.schema, 'name', b.name, 'type', 'table'),
       format('table_bloat_%s_%s', b.schema, b.name)
from (
  select r.schema, r.name, c.relpages::numeric as pages, current_setting('block_size')::numeric as block,
         -- A row: its header, its columns, and its place in the page.
         ceil(c.reltuples * (28 + (
           select sum((1 - s.null_frac) * s.avg_width) from pg_stats s where (s.schemaname, s.tablename) = (r.schema, r.name)
         )) / (current_setting('block_size')::float8 - 20))::numeric as needed
  from relation r join pg_class c on c.oid = r.oid
  where r.kind = 'r' and c.reltuples > 0
) b
where b.needed > 0 and b.pages / b.needed > 70 and (b.pages - b.needed) * b.block > 20 * 1024 * 1024

--! 0021 fkey_to_auth_unique ERROR SECURITY
--! Foreign Key to Auth Unique Constraint
--! A foreign key on a unique column of the schema `auth` that is no primary key: such constraints may be dropped by an upgrade.
select format('Table `%s`.`%s` has a foreign key `%s` referencing an auth unique constraint', n.nspname, c.relname, k.conname),
       jsonb_build_object('schema', n.nspname, 'name', c.relname, 'foreign_key', k.conname),
       format('fkey_to_auth_unique_%s_%s_%s', n.nspname, c.relname, k.conname)
from pg_constraint k
join pg_class c on c.oid = k.conrelid
join pg_namespace n on n.oid = c.relnamespace
join pg_class target on target.oid = k.confrelid
join pg_index i on i.indexrelid = k.conindid
where k.contype = 'f' and target.relnamespace = to_regnamespace('auth') and n.nspname <> 'auth' and i.indisunique and not i.indisprimary

--! 0022 extension_versions_outdated WARN SECURITY
--! Extension Versions Outdated
--! An extension of another version than the one that the server would install.
select format('Extension `%s` is using version `%s` but version `%s` is available.', e.name, e.installed_version, e.default_version),
       jsonb_build_object(
         'extension_name', e.name, 'installed_version', e.installed_version, 'default_version', e.default_version
       ),
       format('extension_versions_outdated_%s_%s', e.name, e.installed_version)
from pg_available_extensions e
where e.installed_version <> e.default_version and exists (
  select from pg_available_extension_versions v where v.name = e.name and v.version = e.installed_version
)

--! 0023 sensitive_columns_exposed ERROR SECURITY
--! Sensitive Columns Exposed
--! A table of the API without row level security that has columns with the names of secrets or personal data.
select format(
         'Table `%s.%s` is exposed via API without RLS and contains potentially sensitive column(s): %s.',
         r.schema, r.name, string_agg(a.attname, ', ' order by a.attname)
       ),
       jsonb_build_object(
         'schema', r.schema, 'name', r.name, 'type', 'table', 'sensitive_columns', array_agg(a.attname order by a.attname),
         'matched_patterns', array_agg(distinct replace(lower(a.attname), '-', '_'))
       ),
       format('sensitive_columns_exposed_%s_%s', r.schema, r.name)
from relation r join pg_attribute a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
where r.kind = 'r' and r.is_exposed and not r.has_rls and replace(lower(a.attname), '-', '_') in (
  'password', 'passwd', 'pwd', 'passphrase', 'secret', 'secret_key', 'private_key', 'api_key', 'apikey', 'auth_key', 'token', 'jwt',
  'access_token', 'refresh_token', 'oauth_token', 'session_token', 'bearer_token', 'auth_code', 'session_id', 'session_key',
  'session_secret', 'recovery_code', 'backup_code', 'verification_code', 'otp', 'two_factor', '2fa_secret', '2fa_code', 'ssn',
  'social_security', 'social_security_number', 'driver_license', 'drivers_license', 'license_number', 'passport_number',
  'passport_id', 'national_id', 'tax_id', 'credit_card', 'card_number', 'cvv', 'cvc', 'cvn', 'bank_account', 'account_number',
  'routing_number', 'iban', 'swift_code', 'bic', 'health_record', 'medical_record', 'patient_id', 'insurance_number',
  'health_insurance', 'medical_insurance', 'treatment', 'mac_address', 'macaddr', 'imei', 'device_uuid', 'pgp_key', 'gpg_key',
  'ssh_key', 'certificate', 'license_key', 'activation_key', 'facial_recognition'
)
group by r.schema, r.name

--! 0024 rls_policy_always_true WARN SECURITY
--! RLS Policy Always True
--! A policy that lets anon or authenticated write whatever they like. Reading for all is often meant and is not reported.
select format(
         'Table `%s.%s` has an RLS policy `%s` for `%s` that allows unrestricted access%s. This effectively bypasses row-level security for %s.',
         p.schema, p.name, p.policy, p.command,
         case when p.reads and p.writes then ' (both USING and WITH CHECK are always true)'
              when p.reads then ' (USING clause is always true)' else ' (WITH CHECK clause is always true)' end,
         array_to_string(p.roles, ', ')
       ),
       jsonb_build_object(
         'schema', p.schema, 'name', p.name, 'type', 'table', 'policy_name', p.policy, 'command', p.command, 'roles', p.roles,
         'qual', p.qual, 'with_check', p.with_check, 'permissive_using', p.reads, 'permissive_with_check', p.writes
       ),
       format('rls_policy_always_true_%s_%s_%s', p.schema, p.name, p.policy)
from (
  select p.*,
         array(select case r when 0 then '-' else r::regrole::text end from unnest(p.role_oids) r) as roles,
         p.command in ('UPDATE', 'DELETE', 'ALL') and coalesce(open_qual, true) as reads,
         case when p.with_check is not null then open_check
              when p.command = 'INSERT' then true
              else p.command in ('UPDATE', 'ALL') and coalesce(open_qual, false) end as writes
  from policy p
  cross join lateral (
    select lower(regexp_replace(p.qual, '\s', '', 'g')) in ('true', '(true)', '1=1', '(1=1)') as open_qual,
           lower(regexp_replace(p.with_check, '\s', '', 'g')) in ('true', '(true)', '1=1', '(1=1)') as open_check
  ) e
  where p.kind = 'r' and p.has_rls and p.is_permissive and p.schema <> all ($2) and (
    p.role_oids = array[0::oid] or exists (
      select from pg_roles o where o.oid = any (p.role_oids) and o.rolname in ('anon', 'authenticated')
    )
  )
) p
where p.reads or p.writes

--! 0025 public_bucket_allows_listing WARN SECURITY storage.buckets
--! Public Bucket Allows Listing
--! A public bucket whose files anybody can list. Their addresses work without such a policy.
select format(
         'Public bucket `%s` has %s broad SELECT %s on `storage.objects` (%s), allowing clients to list all files.',
         b.name, count(*), case count(*) when 1 then 'policy' else 'policies' end, string_agg(p.policy, ', ' order by p.policy)
       ),
       jsonb_build_object(
         'schema', 'storage', 'name', b.name, 'type', 'bucket', 'bucket_id', b.id, 'bucket_name', b.name,
         'policy_names', array_agg(p.policy order by p.policy), 'policy_count', count(*)
       ),
       format('public_bucket_allows_listing_%s', b.id)
from storage.buckets b
join policy p on (p.schema, p.name) = ('storage', 'objects') and p.is_permissive and p.command in ('SELECT', 'ALL')
where (
    p.role_oids = array[0::oid] or exists (
      select from pg_roles o where o.oid = any (p.role_oids) and o.rolname in ('anon', 'authenticated')
    )
  ) and b.public and (
    p.qual is null or lower(regexp_replace(p.qual, '\s', '', 'g')) in ('true', '(true)', '1=1', '(1=1)')
    or regexp_replace(p.qual, '[\s()]|::[[:alnum:]_.]+', '', 'g')
       = 'bucket_id=' || regexp_replace(quote_literal(b.id), '[\s()]', '', 'g')
  )
group by b.id, b.name

--! 0026 pg_graphql_anon_table_exposed WARN SECURITY
--! Public Can See Object in GraphQL Schema
--! With pg_graphql, a table or view whose columns are shown in the GraphQL schema to everybody with the anon key.
select format('%s `%s.%s` is visible in the GraphQL schema because the `anon` role can `SELECT` it.', g.type, g.schema, g.name),
       jsonb_build_object('schema', g.schema, 'name', g.name, 'type', g.type),
       format('pg_graphql_anon_table_exposed_%s_%s', g.schema, g.name)
from (
  select r.*, case r.kind when 'r' then 'table' when 'v' then 'view' when 'm' then 'materialized view' else 'foreign table' end as type
  from relation r
  where r.kind in ('r', 'v', 'm', 'f') and exists (
    select from pg_roles o where o.rolname = 'anon' and has_any_column_privilege(o.oid, r.oid, 'select')
  )
) g
where exists (select from pg_extension e where e.extname = 'pg_graphql')
  -- Ours shows no schema.
  and not exists (select from pg_available_extensions a where a.name = 'pg_graphql' and a.comment ~ 'not served by Ferrobase')

--! 0027 pg_graphql_authenticated_table_exposed WARN SECURITY
--! Signed-In Users Can See Object in GraphQL Schema
--! With pg_graphql, a table or view whose columns are shown in the GraphQL schema to everybody who is signed in.
select format('%s `%s.%s` is visible in the GraphQL schema to signed-in users because the `authenticated` role can `SELECT` it.', g.type, g.schema, g.name),
       jsonb_build_object('schema', g.schema, 'name', g.name, 'type', g.type),
       format('pg_graphql_authenticated_table_exposed_%s_%s', g.schema, g.name)
from (
  select r.*, case r.kind when 'r' then 'table' when 'v' then 'view' when 'm' then 'materialized view' else 'foreign table' end as type
  from relation r
  where r.kind in ('r', 'v', 'm', 'f') and exists (
    select from pg_roles o where o.rolname = 'authenticated' and has_any_column_privilege(o.oid, r.oid, 'select')
  )
) g
where exists (select from pg_extension e where e.extname = 'pg_graphql')
  -- Ours shows no schema.
  and not exists (select from pg_available_extensions a where a.name = 'pg_graphql' and a.comment ~ 'not served by Ferrobase')

--! 0028 anon_security_definer_function_executable WARN SECURITY
--! Public Can Execute SECURITY DEFINER Function
--! A function of the API that runs with the rights of its owner for everybody with the anon key.
select format(
         'Function `%s.%s(%s)` can be executed by the `anon` role as a `SECURITY DEFINER` function via `/rest/v1/rpc/%s`.',
         n.nspname, p.proname, pg_get_function_identity_arguments(p.oid), p.proname
       ),
       jsonb_build_object(
         'schema', n.nspname, 'name', p.proname, 'arguments', pg_get_function_identity_arguments(p.oid), 'language', l.lanname,
         'security_definer', true
       ),
       format('anon_security_definer_function_executable_%s_%s_%s', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid))
from pg_proc p join pg_namespace n on n.oid = p.pronamespace join pg_language l on l.oid = p.prolang
where p.prosecdef and n.nspname = any ($1) and n.nspname <> all ($2)
  and exists (select from pg_roles o where o.rolname = 'anon' and has_function_privilege(o.oid, p.oid, 'execute'))

--! 0029 authenticated_security_definer_function_executable WARN SECURITY
--! Signed-In Users Can Execute SECURITY DEFINER Function
--! A function of the API that runs with the rights of its owner for everybody who is signed in.
select format(
         'Function `%s.%s(%s)` can be executed by the `authenticated` role as a `SECURITY DEFINER` function via `/rest/v1/rpc/%s`.',
         n.nspname, p.proname, pg_get_function_identity_arguments(p.oid), p.proname
       ),
       jsonb_build_object(
         'schema', n.nspname, 'name', p.proname, 'arguments', pg_get_function_identity_arguments(p.oid), 'language', l.lanname,
         'security_definer', true
       ),
       format('authenticated_security_definer_function_executable_%s_%s_%s', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid))
from pg_proc p join pg_namespace n on n.oid = p.pronamespace join pg_language l on l.oid = p.prolang
where p.prosecdef and n.nspname = any ($1) and n.nspname <> all ($2)
  and exists (select from pg_roles o where o.rolname = 'authenticated' and has_function_privilege(o.oid, p.oid, 'execute'))
