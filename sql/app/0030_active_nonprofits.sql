-- The request's page also says which of its nonprofits still take part, so that it needs no second call.

create or replace function public.request_detail(id text) returns jsonb
language plpgsql stable security definer set search_path = '' as $$
#variable_conflict use_column
declare r public.requests;
begin
  perform private.require_user();
  select * into r from public.requests x where x.id = private.request_id_of(request_detail.id) and x.user_id = auth.uid();
  if not found then
    perform private.fail(404, 'request_not_found', 'We couldn''t find a request with the ID you provided. Please check the ID and try again.');
  end if;
  return jsonb_build_object(
    'request', to_jsonb(r) - array['submit_key', 'first_approved_by'],
    'documents', private.documents_of(r.id),
    'timeline', coalesce((select jsonb_agg(jsonb_build_object('type', e.type, 'actor', e.actor, 'nonprofit_id', e.nonprofit_id,
        'nonprofit_name', n.name, 'note', e.note, 'amount', e.amount, 'created_at', e.created_at) order by e.created_at, e.id)
      from public.request_events e left join public.nonprofits n on n.id = e.nonprofit_id
      where e.request_id = r.id and e.for_requester), '[]'::jsonb),
    'nonprofits', coalesce((select jsonb_agg(jsonb_build_object('id', n.id, 'name', n.name, 'location', n.location,
        'average_response_time_days', n.average_response_time_days, 'logo_path', n.logo_path, 'state', p.state, 'active', n.status = 'active')
        order by array_position(r.nonprofits, n.id))
      from public.nonprofits n left join public.request_nonprofits p on p.nonprofit_id = n.id and p.request_id = r.id
      where n.id = any (r.nonprofits)), '[]'::jsonb),
    'can', jsonb_build_object('cancel', r.status in ('pending', 'processing'), 'add_documents', r.status = 'pending' and r.needs_more_proof,
      'resubmit', r.status in ('withdrawn', 'declined'), 'edit', r.status = 'draft'));
end $$;
