-- The language of a person, of a request that was sent without an account, and notifications as code and parameters.

alter table public.profiles add column language text constraint profiles_language check (language in ('en', 'es', 'fr', 'ht'));
alter table public.requests add column language text constraint requests_language check (language in ('en', 'es', 'fr', 'ht'));
comment on column public.requests.language is 'Of the page it was sent from: mails to a person without an account are written in it.';
alter table public.notifications add column code text constraint notifications_code check (code ~ '^[A-Za-z]{1,40}$'), add column params jsonb;
comment on column public.notifications.code is 'What happened; with params it says the same as title and message, in any language. Null: words of a person.';

drop function if exists private.notify(uuid, text, text, text, text, text, text);
drop function if exists private.notify_staff(text, text, text, text, text, text, text[], uuid);
drop function if exists private.greeting(public.requests);
drop function if exists private.why_request(public.requests);
