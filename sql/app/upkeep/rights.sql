-- Privileges. rights.sql in the folder above revokes everything first.

-- Called hourly.
grant execute on function
  private.sweep(), private.retain(int)
  to service_role;
