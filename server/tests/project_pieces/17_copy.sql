COPY "public"."rooms" ("id") FROM stdin;
1
2
\.
SELECT pg_catalog.setval('"public"."dumped_id_seq"', 10, true);
SELECT pg_catalog.setval('"auth"."refresh_tokens_id_seq"', 1, false);
SELECT pg_catalog.setval('"pgsodium"."key_key_id_seq"', 1, false);
SELECT pg_catalog.setval('"supabase_functions"."hooks_id_seq"', 1, false);
SELECT pg_catalog.setval('"cron"."jobid_seq"', 5, false);
