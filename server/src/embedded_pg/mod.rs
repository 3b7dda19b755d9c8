//! A PostgreSQL of our own where no `DATABASE_URL` is given.
