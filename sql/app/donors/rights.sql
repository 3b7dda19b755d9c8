-- Privileges. rights.sql in the folder above revokes everything first.

grant select on public.my_donor_messages, public.donor_inbox to authenticated;
grant select, update on public.donor_message_recipients to authenticated;
-- Readable columns: neither the staff member who wrote, nor the donor's account.
grant select (id, nonprofit_id, subject, message, recipient_count, mailed_count, created_at) on public.donor_messages to authenticated;
grant select (id, message_id, nonprofit_id, from_name, subject, message, read_at, created_at) on public.donor_message_replies to authenticated;
grant update on public.donor_message_replies to authenticated;

-- For everybody. Each function checks its input and is rate limited.
grant execute on function
  public.subscribe_newsletter(text), public.confirm_newsletter(text), public.unsubscribe(text)
  to anon, authenticated, service_role;

-- For signed-in users. Each function checks the caller's role and state itself.
grant execute on function
  public.active_donor_count(text), public.send_donor_message(text, text, text, uuid), public.continue_donor_message(text),
  public.reply_to_donor_message(text, text, uuid), public.mark_donor_message_read(text)
  to authenticated, service_role;

-- Called hourly.
grant execute on function
  private.mail_waiting_donors()
  to service_role;
