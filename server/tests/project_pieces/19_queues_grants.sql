grant all on schema pgmq to postgres;
select pgmq.drop_queue('fast');
select * from pgmq.metrics_all(); select * from pgmq.list_queues();
select pgmq.archive('jobs', 1), pgmq.delete('jobs', 2), pgmq.purge_queue('jobs');
select pgmq.send_batch('jobs', array['{"a":1}'::jsonb, '{"b":2}']); select pgmq.pop('jobs'); select * from pgmq.set_vt('jobs', 4, 10);
