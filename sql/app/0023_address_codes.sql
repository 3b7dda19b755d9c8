-- Codes that prove an address, so that nobody can keep another from theirs: a code belongs to whoever asked for it, and so
-- do its tries and its end. Budgets are apart: an account's own address has one that no stranger can spend.

alter table private.address_codes add column asker text;
comment on column private.address_codes.asker is 'user:<account> or net:<network> that asked; only the same may try the code or end it.';
drop index private.address_codes_email;
create index address_codes_email on private.address_codes (email, asker, created_at desc);

-- The network a caller comes from: the address, of IPv6 the /64 that one household is given.
create function private.client_network() returns text
language plpgsql stable security definer set search_path = '' as $$
declare a text := regexp_replace(private.client_address(), '^::ffff:(?=\d+\.)', '', 'i');
begin
  return case when family(a::inet) = 6 then host(network(set_masklen(a::inet, 64))) || '/64' else a end;
exception when invalid_text_representation then return a;
end $$;

-- Mails a code that proves an address. The answer and the work are the same whether or not an account exists.
create or replace function public.send_address_code(email text default null) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  mine text := (select a.email from private.account_addresses a where a.user_id = auth.uid());
  address text := lower(coalesce(private.clean(send_address_code.email), mine));
  network text := private.client_network();
  who text := coalesce('user:' || auth.uid(), 'net:' || network);
  code text := private.new_code();
begin
  if not private.valid_email(address) then
    perform private.fail(422, 'validation_failed', 'Please enter a valid email address', '{"fields": {"email": "Please enter a valid email address"}}');
  end if;
  if address = mine then
    perform private.require_rate('code-own:' || auth.uid(), 6, interval '1 hour');
  else
    perform private.require_rate('code-caller:' || network, 20, interval '1 hour');
    perform private.require_rate('code-pair:' || network || ':' || address, 5, interval '1 hour');
    perform private.require_rate('code-for:' || address, 15, interval '1 hour');
  end if;
  update private.address_codes c set expires_at = now() where c.email = address and c.asker = who and c.used_at is null and c.expires_at > now();
  delete from private.address_codes c where c.expires_at < now() - interval '2 days';
  insert into private.address_codes (email, asker, code_hash) values (address, who, private.hash_token(address || ':' || code));
  perform private.mail(address, code || ' is your AidBridge code', jsonb_build_object(
    'kicker', 'Your code', 'number', code, 'heading', 'Type this code on the page you came from',
    'paragraphs', jsonb_build_array('It is good for 15 minutes. If you did not ask for it, you need not do anything.'),
    'why', 'You get this mail because someone typed this address on AidBridge.'));
  return '{"sent": true}';
end $$;

-- Checks a mailed code. A wrong code is an answer and not an error, so that the tries are counted.
create or replace function public.check_address_code(email text, code text) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
#variable_conflict use_column
declare
  address text := lower(private.clean(check_address_code.email));
  network text := private.client_network();
  c private.address_codes; token text; result jsonb; got record; own boolean;
begin
  own := exists (select 1 from private.account_addresses a where a.user_id = auth.uid() and a.email = address);
  if own then
    perform private.require_rate('check-own:' || auth.uid(), 40, interval '1 hour');
  else
    perform private.require_rate('check-code:' || network, 60, interval '1 hour');
  end if;
  update private.address_codes x set tries = x.tries + 1
  where x.id = (select y.id from private.address_codes y
                where y.email = address and y.asker in ('user:' || auth.uid(), 'net:' || network) and y.used_at is null and y.expires_at > now() and y.tries < 5
                order by y.created_at desc limit 1 for update)
  returning * into c;
  if c.id is null then return '{"ok": false, "reason": "expired", "tries_left": 0}'; end if;
  if c.code_hash <> private.hash_token(address || ':' || regexp_replace(coalesce(check_address_code.code, ''), '\D', '', 'g')) then
    return jsonb_build_object('ok', false, 'reason', case when c.tries >= 5 then 'expired' else 'wrong_code' end, 'tries_left', 5 - c.tries);
  end if;
  update private.address_codes x set used_at = now() where x.id = c.id;
  token := private.new_token();
  delete from private.address_proofs p where p.expires_at < now();
  insert into private.address_proofs (token_hash, email) values (private.hash_token(token), address);
  result := jsonb_build_object('ok', true, 'proof', token, 'matches', coalesce((
    select jsonb_agg(jsonb_build_object('id', p.id, 'fullName', coalesce(p.full_name, ''), 'email', p.email, 'matchType', 'email'))
    from public.profiles p where lower(p.email) = address), '[]'::jsonb));
  if own then
    update private.account_addresses a set proved_at = coalesce(a.proved_at, now()) where a.user_id = auth.uid();
    select * into got from private.claim_for(auth.uid(), address);
    result := result || jsonb_build_object('claimed_requests', got.requests, 'claimed_donations', got.donations,
      'sent_invitations', private.send_waiting_invitations(auth.uid()));
  end if;
  return result;
end $$;

revoke all on function private.client_network() from public, anon, authenticated, service_role;
