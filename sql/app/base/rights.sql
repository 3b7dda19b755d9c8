-- Privileges. rights.sql in the folder above revokes everything first.

-- Helpers called by policies, constraints, views and invoker triggers as any caller; not reachable through the API.
grant execute on function
  private.setting(text), private.fail(int, text, text, jsonb), private.is_client(), private.client_id(text), private.clean(text),
  private.amount_number(text), private.touch(), private.valid_email(text)
  to anon, authenticated, service_role;

-- Helpers that policies, views and invoker triggers call as the signed-in user.
grant execute on function
  private.fail_fields(text, jsonb)
  to authenticated, service_role;
