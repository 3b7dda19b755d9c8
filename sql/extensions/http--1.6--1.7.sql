-- Version 1.6 had the types and functions, but refused every request.

\i http_requests.sql
