-- Buckets. Who may touch which object is in files/.

-- Buckets and who may touch which object. Names: request-documents/<request id>/<file> or guest/<slot id>.<ext>,
-- profile-photos/<user id>/<file>, logos/<nonprofit id>/<file>.
insert into storage.buckets (id, name, public, file_size_limit, allowed_mime_types) values
  ('request-documents', 'request-documents', false, 10485760, array['application/pdf', 'image/jpeg', 'image/png',
    'application/msword', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document']),
  -- any photograph; SVG is left out because it can carry script
  ('profile-photos', 'profile-photos', false, 10485760, array['image/jpeg', 'image/png', 'image/webp', 'image/gif', 'image/avif',
    'image/heic', 'image/heif', 'image/bmp', 'image/tiff']),
  ('logos', 'logos', true, 5242880, array['image/jpeg', 'image/png'])
on conflict (id) do update set public = excluded.public, file_size_limit = excluded.file_size_limit, allowed_mime_types = excluded.allowed_mime_types;
