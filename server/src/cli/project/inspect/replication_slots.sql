select
  s.slot_name as "Name",
  s.active::text as "Active",
  coalesce(r.state, 'N/A') as "State",
  coalesce(r.client_addr::text, 'N/A') as "Replication Client Address",
  greatest(round((c.redo_lsn - s.restart_lsn) / (1024.0 ^ 3)::numeric, 2), 0) as "Replication Lag GB"
from pg_replication_slots s
cross join pg_control_checkpoint() c
left join pg_stat_replication r on r.pid = s.active_pid
order by 1
