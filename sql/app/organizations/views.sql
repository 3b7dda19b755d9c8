-- Signed-in users see of other organizations what everybody sees. The table is for members; the directory is for all.
create or replace view public.nonprofit_directory with (security_barrier = true) as
  select n.id, n.name, n.mission, n.email, n.phone, n.website, n.description, n.location, n.category, n.average_response_time_days, n.logo_path,
    lower(concat_ws(' ', '', n.name, n.location)) as search_text, n.helps_with, n.service_area
  from public.nonprofits n where n.status = 'active';
comment on view public.nonprofit_directory is 'Active organizations, with what they publish.';
