-- supabase/pg_jsonschema, without compiled code. Keywords of JSON Schema draft 2020-12, and `items` with a list,
-- `additionalItems`, `definitions` and `dependencies` of older drafts. References work within the schema; `format` is
-- only an annotation, as in the draft. Patterns are PostgreSQL's, which cover what schemas usually use of JavaScript's.

-- PostgreSQL runs this as a superuser, in a schema chosen by the caller, so objects in that schema must not be found.
set local search_path = pg_catalog, pg_temp;

-- Whether a value is of a type of JSON Schema.
create function @extschema@."_jsonschema_is_a"(instance jsonb, wanted text) returns boolean
language sql immutable strict
as $$
  select case wanted
    when 'integer' then jsonb_typeof(instance) = 'number' and mod((instance #>> '{}')::numeric, 1) = 0
    else jsonb_typeof(instance) = wanted
  end
$$;

-- What a reference names.
create function @extschema@."_jsonschema_at"(root jsonb, reference text) returns jsonb
language plpgsql immutable
as $$
declare
  found jsonb := root;
  step text;
begin
  if reference = '#' then
    return root;
  elsif reference not like '#/%' then
    raise exception 'the reference % is not served: it must begin with #/', reference using errcode = '0A000';
  end if;
  foreach step in array string_to_array(substr(reference, 3), '/') loop
    found := case jsonb_typeof(found)
      when 'array' then found -> step::integer
      else found -> replace(replace(replace(step, '%25', '%'), '~1', '/'), '~0', '~')
    end;
  end loop;
  if found is null then
    raise exception 'the reference % leads nowhere', reference using errcode = '22023';
  end if;
  return found;
end $$;

-- All errors of `instance` against `schema`; empty if valid.
create function @extschema@."_jsonschema_errors"(schema jsonb, instance jsonb, root jsonb, depth integer default 0) returns text[]
language plpgsql immutable
as $$
declare
  errors text[] := '{}';
  kind constant text := jsonb_typeof(instance);
  value jsonb;
  name text;
  part jsonb;
  place integer;
  matching integer;
  number numeric;
  known boolean;
begin
  if depth > 100 then
    raise exception 'the schema''s references go in a circle' using errcode = '54001';
  end if;
  if schema = 'true'::jsonb then
    return errors;
  elsif schema = 'false'::jsonb then
    return array[format('False schema does not allow %s', instance)];
  elsif jsonb_typeof(schema) <> 'object' then
    raise exception 'a schema must be an object or a boolean, not %', schema using errcode = '22023';
  end if;
  for name in select k from jsonb_object_keys(schema) k
    where k in ('unevaluatedProperties', 'unevaluatedItems', '$dynamicRef', '$recursiveRef')
  loop
    raise exception 'the keyword % is not served', name using errcode = '0A000';
  end loop;

  if schema ? '$ref' then
    errors := errors || @extschema@."_jsonschema_errors"(@extschema@."_jsonschema_at"(root, schema ->> '$ref'), instance, root, depth + 1);
  end if;
  if schema ? 'type' then
    value := schema -> 'type';
    if jsonb_typeof(value) = 'string' then value := jsonb_build_array(value); end if;
    if not exists (select from jsonb_array_elements_text(value) t where @extschema@."_jsonschema_is_a"(instance, t)) then
      errors := errors || format('%s is not of type %s', instance, schema -> 'type');
    end if;
  end if;
  if schema ? 'enum' and not exists (select from jsonb_array_elements(schema -> 'enum') e where e = instance) then
    errors := errors || format('%s is not one of %s', instance, schema -> 'enum');
  end if;
  if schema ? 'const' and schema -> 'const' <> instance then
    errors := errors || format('%s was expected', schema -> 'const');
  end if;

  if kind = 'number' then
    number := (instance #>> '{}')::numeric;
    if number < (schema ->> 'minimum')::numeric then
      errors := errors || format('%s is less than the minimum of %s', instance, schema -> 'minimum');
    end if;
    if number > (schema ->> 'maximum')::numeric then
      errors := errors || format('%s is greater than the maximum of %s', instance, schema -> 'maximum');
    end if;
    if number <= (schema ->> 'exclusiveMinimum')::numeric then
      errors := errors || format('%s is less than or equal to the minimum of %s', instance, schema -> 'exclusiveMinimum');
    end if;
    if number >= (schema ->> 'exclusiveMaximum')::numeric then
      errors := errors || format('%s is greater than or equal to the maximum of %s', instance, schema -> 'exclusiveMaximum');
    end if;
    if mod(number, (schema ->> 'multipleOf')::numeric) <> 0 then
      errors := errors || format('%s is not a multiple of %s', instance, schema -> 'multipleOf');
    end if;

  elsif kind = 'string' then
    if char_length(instance #>> '{}') < (schema ->> 'minLength')::numeric then
      errors := errors || format('%s is shorter than %s characters', instance, schema -> 'minLength');
    end if;
    if char_length(instance #>> '{}') > (schema ->> 'maxLength')::numeric then
      errors := errors || format('%s is longer than %s characters', instance, schema -> 'maxLength');
    end if;
    if (instance #>> '{}') !~ (schema ->> 'pattern') then
      errors := errors || format('%s does not match %s', instance, schema -> 'pattern');
    end if;

  elsif kind = 'array' then
    if jsonb_array_length(instance) < (schema ->> 'minItems')::numeric then
      errors := errors || format('%s has less than %s items', instance, schema -> 'minItems');
    end if;
    if jsonb_array_length(instance) > (schema ->> 'maxItems')::numeric then
      errors := errors || format('%s has more than %s items', instance, schema -> 'maxItems');
    end if;
    if schema -> 'uniqueItems' = 'true'::jsonb
      and (select count(*) <> count(distinct e) from jsonb_array_elements(instance) e) then
      errors := errors || format('%s has non-unique elements', instance);
    end if;
    value := coalesce(schema -> 'prefixItems', case when jsonb_typeof(schema -> 'items') = 'array' then schema -> 'items' end, '[]');
    part := case when jsonb_typeof(schema -> 'items') = 'array' then schema -> 'additionalItems' else schema -> 'items' end;
    for place in 0 .. jsonb_array_length(instance) - 1 loop
      if place < jsonb_array_length(value) then
        errors := errors || @extschema@."_jsonschema_errors"(value -> place, instance -> place, root, depth + 1);
      elsif part is not null then
        errors := errors || @extschema@."_jsonschema_errors"(part, instance -> place, root, depth + 1);
      end if;
    end loop;
    if schema ? 'contains' then
      select count(*) into matching from jsonb_array_elements(instance) e
      where @extschema@."_jsonschema_errors"(schema -> 'contains', e, root, depth + 1) = '{}';
      if matching < coalesce((schema ->> 'minContains')::numeric, 1) or matching > (schema ->> 'maxContains')::numeric then
        errors := errors || format('%s items of %s fit the schema of contains', matching, instance);
      end if;
    end if;

  elsif kind = 'object' then
    for name in select r from jsonb_array_elements_text(coalesce(schema -> 'required', '[]')) r where not instance ? r loop
      errors := errors || format('%s is a required property', to_jsonb(name));
    end loop;
    select count(*) into matching from jsonb_object_keys(instance);
    if matching < (schema ->> 'minProperties')::numeric then
      errors := errors || format('%s has less than %s properties', instance, schema -> 'minProperties');
    end if;
    if matching > (schema ->> 'maxProperties')::numeric then
      errors := errors || format('%s has more than %s properties', instance, schema -> 'maxProperties');
    end if;
    for name, value in select * from jsonb_each(instance) loop
      known := coalesce(schema -> 'properties' ? name, false);
      if known then
        errors := errors || @extschema@."_jsonschema_errors"(schema -> 'properties' -> name, value, root, depth + 1);
      end if;
      for part in select p.value from jsonb_each(coalesce(schema -> 'patternProperties', '{}')) p where name ~ p.key loop
        known := true;
        errors := errors || @extschema@."_jsonschema_errors"(part, value, root, depth + 1);
      end loop;
      if not known and schema ? 'additionalProperties' then
        if schema -> 'additionalProperties' = 'false'::jsonb then
          errors := errors || format('Additional properties are not allowed (%s was unexpected)', quote_literal(name));
        else
          errors := errors || @extschema@."_jsonschema_errors"(schema -> 'additionalProperties', value, root, depth + 1);
        end if;
      end if;
      if schema ? 'propertyNames' then
        errors := errors || @extschema@."_jsonschema_errors"(schema -> 'propertyNames', to_jsonb(name), root, depth + 1);
      end if;
    end loop;
    for name, value in
      select * from jsonb_each(coalesce(schema -> 'dependentRequired', '{}') || coalesce(schema -> 'dependentSchemas', '{}')
        || coalesce(schema -> 'dependencies', '{}'))
    loop
      if not instance ? name then
        continue;
      elsif jsonb_typeof(value) = 'array' then
        errors := errors || array(select format('%s is a required property', to_jsonb(r))
          from jsonb_array_elements_text(value) r where not instance ? r);
      else
        errors := errors || @extschema@."_jsonschema_errors"(value, instance, root, depth + 1);
      end if;
    end loop;
  end if;

  for part in select * from jsonb_array_elements(coalesce(schema -> 'allOf', '[]')) loop
    errors := errors || @extschema@."_jsonschema_errors"(part, instance, root, depth + 1);
  end loop;
  if schema ? 'anyOf' and not exists (select from jsonb_array_elements(schema -> 'anyOf') s
      where @extschema@."_jsonschema_errors"(s, instance, root, depth + 1) = '{}') then
    errors := errors || format('%s is not valid under any of the schemas listed in the ''anyOf'' keyword', instance);
  end if;
  if schema ? 'oneOf' then
    select count(*) into matching from jsonb_array_elements(schema -> 'oneOf') s
    where @extschema@."_jsonschema_errors"(s, instance, root, depth + 1) = '{}';
    if matching = 0 then
      errors := errors || format('%s is not valid under any of the schemas listed in the ''oneOf'' keyword', instance);
    elsif matching > 1 then
      errors := errors || format('%s is valid under more than one of the schemas listed in the ''oneOf'' keyword', instance);
    end if;
  end if;
  if schema ? 'not' and @extschema@."_jsonschema_errors"(schema -> 'not', instance, root, depth + 1) = '{}' then
    errors := errors || format('%s is not allowed for %s', schema -> 'not', instance);
  end if;
  if schema ? 'if' then
    name := case when @extschema@."_jsonschema_errors"(schema -> 'if', instance, root, depth + 1) = '{}' then 'then' else 'else' end;
    if schema ? name then
      errors := errors || @extschema@."_jsonschema_errors"(schema -> name, instance, root, depth + 1);
    end if;
  end if;
  return errors;
end $$;

create function @extschema@.json_matches_schema(schema json, instance json) returns boolean
language sql immutable strict
as $$ select @extschema@."_jsonschema_errors"(schema::jsonb, instance::jsonb, schema::jsonb) = '{}' $$;

create function @extschema@.jsonb_matches_schema(schema json, instance jsonb) returns boolean
language sql immutable strict
as $$ select @extschema@."_jsonschema_errors"(schema::jsonb, instance, schema::jsonb) = '{}' $$;

create function @extschema@.jsonschema_validation_errors(schema json, instance json) returns text[]
language sql immutable strict
as $$ select @extschema@."_jsonschema_errors"(schema::jsonb, instance::jsonb, schema::jsonb) $$;

-- Whether a schema is valid: its types are known, numbers and lists are such, and its parts are schemas.
create function @extschema@.jsonschema_is_valid(schema json) returns boolean
language plpgsql immutable strict
as $$
declare
  whole constant jsonb := schema;
  key text;
  value jsonb;
begin
  if jsonb_typeof(whole) = 'boolean' then
    return true;
  elsif jsonb_typeof(whole) <> 'object' then
    return false;
  end if;
  for key, value in select * from jsonb_each(whole) loop
    if key in ('minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf') then
      if jsonb_typeof(value) <> 'number' or key = 'multipleOf' and value <= '0'::jsonb then return false; end if;
    elsif key in ('minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties', 'minContains', 'maxContains') then
      if not @extschema@."_jsonschema_is_a"(value, 'integer') or (value #>> '{}')::numeric < 0 then return false; end if;
    elsif key = 'type' then
      if jsonb_typeof(value) not in ('string', 'array') or exists (
          select from jsonb_array_elements_text(case jsonb_typeof(value) when 'array' then value else jsonb_build_array(value) end) t
          where t not in ('null', 'boolean', 'object', 'array', 'number', 'string', 'integer')) then
        return false;
      end if;
    elsif key in ('enum', 'required') then
      if jsonb_typeof(value) <> 'array' then return false; end if;
    elsif key in ('allOf', 'anyOf', 'oneOf', 'prefixItems') then
      if jsonb_typeof(value) <> 'array' or jsonb_array_length(value) = 0 or exists (
          select from jsonb_array_elements(value) s where not @extschema@.jsonschema_is_valid(s::json)) then
        return false;
      end if;
    elsif key in ('properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas') then
      if jsonb_typeof(value) <> 'object' or exists (
          select from jsonb_each(value) s where not @extschema@.jsonschema_is_valid(s.value::json)) then
        return false;
      end if;
    elsif key in ('additionalProperties', 'propertyNames', 'contains', 'not', 'if', 'then', 'else') then
      if not @extschema@.jsonschema_is_valid(value::json) then return false; end if;
    end if;
  end loop;
  return true;
end $$;
