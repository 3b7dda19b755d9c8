-- The hourly function for waiting mails sends one batch in a call and says whether to call it again.
drop function if exists private.mail_waiting_donors();
