-- Hashids (https://hashids.org): numbers as short texts and back, by a salt. Not encryption: whoever has enough texts finds the salt.
-- The interface is that of pg_hashids 1.3.

-- PostgreSQL runs this as a superuser, in a schema chosen by the caller, so objects in that schema must not be found.
set local search_path = pg_catalog, pg_temp;

-- The characters of `alphabet` in an order that `salt` decides.
create function @extschema@._hashids_shuffle(alphabet text, salt text) returns text
language plpgsql immutable strict parallel safe
as $$
declare
  letters text[] := pg_catalog.string_to_array(alphabet, null);
  at integer := 0;
  total integer := 0;
  code integer;
  other integer;
  letter text;
begin
  if salt = '' then
    return alphabet;
  end if;
  for place in reverse pg_catalog.cardinality(letters) - 1 .. 1 loop
    at := at % pg_catalog.length(salt);
    code := pg_catalog.ascii(pg_catalog.substr(salt, at + 1, 1));
    total := total + code;
    other := (code + at + total) % place;
    letter := letters[other + 1];
    letters[other + 1] := letters[place + 1];
    letters[place + 1] := letter;
    at := at + 1;
  end loop;
  return pg_catalog.array_to_string(letters, '');
end $$;

-- Letters for digits, for separators between numbers, and for guards at the ends.
create function @extschema@._hashids_letters(salt text, given text, out alphabet text, out separators text, out guards text)
language plpgsql immutable strict parallel safe
as $$
declare
  wanted integer;
  letter text;
begin
  alphabet := '';
  foreach letter in array pg_catalog.string_to_array(given, null) loop
    if pg_catalog.strpos(alphabet, letter) = 0 then
      alphabet := alphabet || letter;
    end if;
  end loop;
  if pg_catalog.length(alphabet) < 16 or pg_catalog.strpos(alphabet, ' ') > 0 then
    raise exception 'the alphabet must have at least 16 different characters, and no space'
      using errcode = 'invalid_parameter_value';
  end if;
  separators := '';
  foreach letter in array pg_catalog.string_to_array('cfhistuCFHISTU', null) loop
    if pg_catalog.strpos(alphabet, letter) > 0 then
      separators := separators || letter;
      alphabet := pg_catalog.replace(alphabet, letter, '');
    end if;
  end loop;
  separators := @extschema@._hashids_shuffle(separators, salt);
  if separators = '' or pg_catalog.length(alphabet)::numeric / pg_catalog.length(separators) > 3.5 then
    wanted := greatest(pg_catalog.ceil(pg_catalog.length(alphabet) / 3.5), 2);
    if wanted > pg_catalog.length(separators) then
      wanted := wanted - pg_catalog.length(separators);
      separators := separators || pg_catalog.left(alphabet, wanted);
      alphabet := pg_catalog.substr(alphabet, wanted + 1);
    else
      separators := pg_catalog.left(separators, wanted);
    end if;
  end if;
  alphabet := @extschema@._hashids_shuffle(alphabet, salt);
  wanted := pg_catalog.ceil(pg_catalog.length(alphabet) / 12.0);
  if pg_catalog.length(alphabet) < 3 then
    guards := pg_catalog.left(separators, wanted);
    separators := pg_catalog.substr(separators, wanted + 1);
  else
    guards := pg_catalog.left(alphabet, wanted);
    alphabet := pg_catalog.substr(alphabet, wanted + 1);
  end if;
end $$;

create function @extschema@.id_encode(
  numbers bigint[], salt text default '', min_length integer default 0,
  alphabet text default 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ1234567890')
returns text
language plpgsql immutable strict parallel safe
as $$
declare
  letters record := @extschema@._hashids_letters(salt, alphabet);
  digits text := letters.alphabet;
  base integer := pg_catalog.length(digits);
  half integer := base / 2;
  guards integer := pg_catalog.length(letters.guards);
  hash bigint := 0;
  lottery text;
  encoded text;
  number bigint;
  part text;
  excess integer;
begin
  for place in 1 .. coalesce(pg_catalog.cardinality(numbers), 0) loop
    if numbers[place] is null or numbers[place] < 0 then
      raise exception 'a number must not be negative or null' using errcode = 'invalid_parameter_value';
    end if;
    hash := hash + numbers[place] % (place - 1 + 100);
  end loop;
  if coalesce(pg_catalog.cardinality(numbers), 0) = 0 then
    return '';
  end if;
  lottery := pg_catalog.substr(digits, (hash % base)::integer + 1, 1);
  encoded := lottery;
  for place in 1 .. pg_catalog.cardinality(numbers) loop
    number := numbers[place];
    digits := @extschema@._hashids_shuffle(digits, pg_catalog.left(lottery || salt || digits, base));
    part := '';
    loop
      part := pg_catalog.substr(digits, (number % base)::integer + 1, 1) || part;
      number := number / base;
      exit when number = 0;
    end loop;
    encoded := encoded || part;
    if place < pg_catalog.cardinality(numbers) then
      number := numbers[place] % (pg_catalog.ascii(part) + place - 1);
      encoded := encoded
        || pg_catalog.substr(letters.separators, (number % pg_catalog.length(letters.separators))::integer + 1, 1);
    end if;
  end loop;
  if pg_catalog.length(encoded) < min_length then
    encoded := pg_catalog.substr(letters.guards, ((hash + pg_catalog.ascii(encoded)) % guards)::integer + 1, 1) || encoded;
    if pg_catalog.length(encoded) < min_length then
      encoded := encoded || pg_catalog.substr(letters.guards,
        ((hash + pg_catalog.ascii(pg_catalog.substr(encoded, 3, 1))) % guards)::integer + 1, 1);
    end if;
  end if;
  while pg_catalog.length(encoded) < min_length loop
    digits := @extschema@._hashids_shuffle(digits, digits);
    encoded := pg_catalog.substr(digits, half + 1) || encoded || pg_catalog.left(digits, half);
    excess := pg_catalog.length(encoded) - min_length;
    if excess > 0 then
      encoded := pg_catalog.substr(encoded, excess / 2 + 1, min_length);
    end if;
  end loop;
  return encoded;
end $$;

create function @extschema@.id_encode(
  number bigint, salt text default '', min_length integer default 0,
  alphabet text default 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ1234567890')
returns text
language sql immutable strict parallel safe
return @extschema@.id_encode(array[number], salt, min_length, alphabet);

create function @extschema@.id_decode(
  id text, salt text default '', min_length integer default 0,
  alphabet text default 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ1234567890')
returns bigint[]
language plpgsql immutable strict parallel safe
as $$
declare
  letters record := @extschema@._hashids_letters(salt, alphabet);
  digits text := letters.alphabet;
  base integer := pg_catalog.length(digits);
  parts text[] := pg_catalog.string_to_array(
    pg_catalog.translate(id, letters.guards, pg_catalog.repeat(' ', pg_catalog.length(letters.guards))), ' ');
  body text := parts[case when pg_catalog.cardinality(parts) in (2, 3) then 2 else 1 end];
  lottery text := pg_catalog.left(body, 1);
  part text;
  letter text;
  number numeric;
  numbers bigint[] := '{}';
begin
  if coalesce(body, '') = '' then
    return numbers;
  end if;
  body := pg_catalog.translate(
    pg_catalog.substr(body, 2), letters.separators, pg_catalog.repeat(' ', pg_catalog.length(letters.separators)));
  foreach part in array pg_catalog.string_to_array(body, ' ') loop
    digits := @extschema@._hashids_shuffle(digits, pg_catalog.left(lottery || salt || digits, base));
    number := 0;
    foreach letter in array coalesce(pg_catalog.string_to_array(part, null), '{}') loop
      number := number * base + pg_catalog.strpos(digits, letter) - 1;
    end loop;
    if number < 0 or number > 9223372036854775807 then
      return '{}';
    end if;
    numbers := numbers || number::bigint;
  end loop;
  -- Anything else is nobody's.
  return case when @extschema@.id_encode(numbers, salt, min_length, alphabet) = id then numbers else '{}' end;
end $$;

create function @extschema@.id_decode_once(
  id text, salt text default '', min_length integer default 0,
  alphabet text default 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ1234567890')
returns bigint
language sql immutable strict parallel safe
return (@extschema@.id_decode(id, salt, min_length, alphabet))[1];
