begin;
select plan(2);
set local role authenticated;
set local request.jwt.claims = '{"sub": "11111111-1111-1111-1111-111111111111", "role": "authenticated"}';
select results_eq('select distinct name from public.tenants', array['Acme'], 'Ada sees her tenant alone');
select throws_ok($$ insert into public.tasks (tenant, title) values ('bbbbbbbb-0000-0000-0000-000000000002', 'x') $$, '42501', null, 'and adds nothing to the other');
select * from finish();
rollback;
