//! Brings a database up to date: checksummed files in name order, one instance at a time.
