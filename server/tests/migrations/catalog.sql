-- Everything that sql/app makes, a line per object in a stable order: two databases with the same lines have the same schema.

with
own_schema as (
  select oid, nspname from pg_namespace where nspname in ('public', 'private', 'functions')
),
-- What an extension brought is the extension's.
own_relation as (
  select c.* from pg_class c
  where c.relnamespace in (select oid from own_schema)
    and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
),
own_function as (
  select p.* from pg_proc p
  where p.pronamespace in (select oid from own_schema)
    and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
),
watched as (
  select oid from own_relation where relkind = 'r'
  union all
  select c.oid from pg_class c where c.oid in ('auth.users'::regclass, 'storage.objects'::regclass, 'storage.buckets'::regclass)
)
select line from (
  select format('schema %s %s', nspname, (select string_agg(a::text, ' ' order by a::text)
    from unnest((select nspacl from pg_namespace n where n.oid = own_schema.oid)) a)) as line
  from own_schema
  union all
  select format('relation %s %s owner %s rls %s options %s rights %s comment %s', relkind, oid::regclass, relowner::regrole,
    relrowsecurity, reloptions,
    (select string_agg(a::text, ' ' order by a::text)
       from unnest(coalesce(relacl, acldefault(case relkind when 'S' then 's' else 'r' end::"char", relowner))) a),
    obj_description(oid, 'pg_class'))
  from own_relation where relkind in ('r', 'v', 'S', 'm', 'p')
  union all
  select format('column %s %s %s %s not null %s default %s identity %s generated %s rights %s comment %s', attrelid::regclass,
    lpad(rank() over (partition by attrelid order by attnum)::text, 3, '0'), attname, format_type(atttypid, atttypmod), attnotnull,
    (select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = attrelid and adnum = attnum), attidentity, attgenerated,
    (select string_agg(x::text, ' ' order by x::text) from unnest(attacl) x), col_description(attrelid, attnum))
  from pg_attribute where attrelid in (select oid from own_relation where relkind in ('r', 'v')) and attnum > 0 and not attisdropped
  union all
  select format('constraint %s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
  from pg_constraint where conrelid in (select oid from own_relation)
  union all
  select format('index %s %s', pg_get_indexdef(indexrelid), indisvalid)
  from pg_index where indrelid in (select oid from own_relation)
  union all
  select format('view %s %s', oid::regclass, pg_get_viewdef(oid)) from own_relation where relkind = 'v'
  union all
  select format('sequence %s %s', seqrelid::regclass, row(seqtypid::regtype, seqstart, seqincrement, seqmax, seqmin, seqcache, seqcycle))
  from pg_sequence where seqrelid in (select oid from own_relation)
  union all
  select format('trigger %s %s', pg_get_triggerdef(oid), tgenabled)
  from pg_trigger where tgrelid in (select oid from watched) and not tgisinternal
  union all
  select format('policy %s %s %s %s roles %s using %s check %s', polrelid::regclass, polname, polcmd, polpermissive,
    (select string_agg(r::regrole::text, ' ' order by r::regrole::text) from unnest(polroles) r),
    pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid))
  from pg_policy where polrelid in (select oid from watched)
  union all
  select format('function %s owner %s rights %s comment %s', pg_get_functiondef(oid), proowner::regrole,
    (select string_agg(a::text, ' ' order by a::text) from unnest(coalesce(proacl, acldefault('f', proowner))) a),
    obj_description(oid, 'pg_proc'))
  from own_function where prokind in ('f', 'p')
  union all
  select format('published %s %s', pubname, schemaname || '.' || tablename) from pg_publication_tables
  where schemaname in (select nspname from own_schema)
  union all
  select format('extension %s %s', extname, extnamespace::regnamespace) from pg_extension
  union all
  select format('setting %s', s) from private.app_settings s
  union all
  select format('reason %s', r) from public.denial_reasons r
  union all
  select format('bucket %s %s %s %s', id, public, file_size_limit, allowed_mime_types) from storage.buckets
  union all
  select format('hourly %s', function) from ferrobase.hourly
) lines
order by line collate "C";
