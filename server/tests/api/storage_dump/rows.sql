-- Schema `storage` of a hosted Supabase project as `pg_dump --data-only --schema=storage` writes it after the newest
-- migrations: generated columns are not named, rows come by COPY.

SET statement_timeout = 0;
SET lock_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET client_min_messages = warning;
SET row_security = off;
SET session_replication_role = replica;

COPY storage.buckets (id, name, owner, created_at, updated_at, public, avif_autodetection, file_size_limit, allowed_mime_types, owner_id, type, versioning_status) FROM stdin;
avatars	avatars	\N	2026-05-04 10:20:30.123456+00	2026-05-04 10:20:30.123456+00	t	f	\N	\N	\N	STANDARD	DISABLED
papers	papers	00000001-0000-4000-8000-000000000001	2026-05-04 10:20:30.123456+00	2026-05-04 10:20:30.123456+00	f	f	1048576	{text/*,application/pdf}	00000001-0000-4000-8000-000000000001	STANDARD	DISABLED
\.

COPY storage.buckets_analytics (name, type, format, created_at, updated_at, id, deleted_at) FROM stdin;
\.

COPY storage.buckets_vectors (id, type, created_at, updated_at) FROM stdin;
\.

COPY storage.iceberg_namespaces (id, bucket_name, name, created_at, updated_at, metadata, catalog_id) FROM stdin;
\.

COPY storage.iceberg_tables (id, namespace_id, bucket_name, name, location, created_at, updated_at, remote_table_id, shard_key, shard_id, catalog_id) FROM stdin;
\.

COPY storage.objects (id, bucket_id, name, owner, created_at, updated_at, last_accessed_at, metadata, version, owner_id, user_metadata, archived_at, is_delete_marker, is_versioned) FROM stdin;
11111111-1111-4111-8111-111111111111	avatars	u 1/me.txt	\N	2026-05-04 10:20:30.123456+00	2026-05-04 10:20:30.123456+00	2026-05-04 10:20:30.123456+00	{"eTag": "\\"1cfa346f967215b2f6db94a85113cf89\\"", "size": 8, "mimetype": "text/plain", "cacheControl": "max-age=3600", "lastModified": "2026-05-04T10:20:30.000Z", "contentLength": 8, "httpStatusCode": 200}	5a1f0b7e-6f0e-4a0e-9a53-0c3c7f2a9d11	\N	{}	\N	f	f
22222222-2222-4222-8222-222222222222	papers	00000001-0000-4000-8000-000000000001/letter.txt	00000001-0000-4000-8000-000000000001	2026-05-04 10:20:30.123456+00	2026-05-04 10:20:30.123456+00	2026-05-04 10:20:30.123456+00	{"eTag": "\\"5f6557e89d3365adbafdd90211fb711e\\"", "size": 9, "mimetype": "text/plain", "cacheControl": "max-age=3600", "lastModified": "2026-05-04T10:20:30.000Z", "contentLength": 9, "httpStatusCode": 200}	6b2f0b7e-6f0e-4a0e-9a53-0c3c7f2a9d22	00000001-0000-4000-8000-000000000001	{"to": "Ada\\tL."}	\N	f	f
33333333-3333-4333-8333-333333333333	avatars	u 1/.emptyFolderPlaceholder	\N	2026-05-04 10:20:30.123456+00	2026-05-04 10:20:30.123456+00	2026-05-04 10:20:30.123456+00	{"eTag": "\\"d41d8cd98f00b204e9800998ecf8427e\\"", "size": 0, "mimetype": "application/octet-stream", "cacheControl": "max-age=3600", "lastModified": "2026-05-04T10:20:30.000Z", "contentLength": 0, "httpStatusCode": 200}	7c3f0b7e-6f0e-4a0e-9a53-0c3c7f2a9d33	\N	\N	\N	f	f
\.

COPY storage.s3_multipart_uploads (id, in_progress_size, upload_signature, bucket_id, key, version, owner_id, created_at, user_metadata, metadata) FROM stdin;
abcdef0123456789	5242880		papers	00000001-0000-4000-8000-000000000001/long.pdf	8d4f0b7e-6f0e-4a0e-9a53-0c3c7f2a9d44	00000001-0000-4000-8000-000000000001	2026-05-04 10:20:30.123456+00	{}	{"mimetype": "application/pdf", "cacheControl": "no-cache"}
\.

COPY storage.s3_multipart_uploads_parts (id, upload_id, size, part_number, bucket_id, key, etag, owner_id, version, created_at) FROM stdin;
\.

COPY storage.vector_indexes (id, name, bucket_id, data_type, dimension, distance_metric, metadata_configuration, created_at, updated_at) FROM stdin;
\.

RESET ALL;
