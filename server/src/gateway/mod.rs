//! The gateway's manners: which key came with a request and which role it may act as.
