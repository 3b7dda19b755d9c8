-- Texts about a request, by consent.

alter table public.requests add column sms_consent boolean not null default false;
alter table public.profiles add column sms_consent boolean not null default false, add column sms_stopped_at timestamptz;
comment on column public.requests.sms_consent is 'Whether texts about it may go to its phone number.';
comment on column public.profiles.sms_stopped_at is 'When a STOP ended the consent; null once it is given again.';
-- Few consent, and STOP looks for a number among them.
create index requests_by_text on public.requests (phone) where sms_consent;
create index profiles_by_text on public.profiles (phone) where sms_consent;

-- The code is mailed or texted: the function takes one more argument.
drop function if exists public.send_request_code(text);
