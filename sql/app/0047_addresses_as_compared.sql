-- Addresses of accounts are compared as schema auth compares them: letters of ASCII alone are folded.

update private.account_addresses a set email = lower(u.email collate "C")
from auth.users u where u.id = a.user_id and a.email is distinct from lower(u.email collate "C");
