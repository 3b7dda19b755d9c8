//! The commands of the binary other than `serve`.
