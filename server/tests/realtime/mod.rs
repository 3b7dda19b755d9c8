//! `/realtime/v1` over real sockets: the protocol, broadcast, presence, private channels, changes of tables.

mod altered;
mod broadcast;
mod broker;
mod changes;
pub mod client;
mod hostile;
mod inspector;
mod instances;
mod leaves;
mod oracle;
mod outages;
mod persistence;
mod policies;
mod presence;
mod socket;
mod stored;
mod subscription;
