-- Who may use what; rights.sql of the folder above closes everything first.

-- Called every hour.
grant execute on function
  private.sweep(), private.retain(int)
  to service_role;
