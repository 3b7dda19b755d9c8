create index concurrently if not exists posts_title_idx on posts (title);
vacuum analyze posts;
reindex table concurrently posts;
analyze;
