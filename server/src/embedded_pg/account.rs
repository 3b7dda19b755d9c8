//! The account of the PostgreSQL processes: our own, or an unprivileged user if started as root.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tokio::process::Command;

use super::EmbeddedError;

/// A user of this machine other than root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
}

impl Account {
    /// `None` if this process is not root and runs PostgreSQL as itself. As root: the owner of an
    /// existing `cluster`, else `postgres`, else `nobody`.
    pub fn to_drop_to(cluster: &Path) -> Result<Option<Self>, EmbeddedError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let owner = std::fs::metadata(cluster).ok().filter(|m| m.uid() != 0).map(|m| {
            let known = parse_passwd(&passwd).find(|account| account.uid == m.uid());
            known.unwrap_or_else(|| Self { name: format!("uid {}", m.uid()), uid: m.uid(), gid: m.gid() })
        });
        owner
            .or_else(|| ["postgres", "nobody"].iter().find_map(|name| find_by_name(&passwd, name)))
            .map(Some)
            .ok_or(EmbeddedError::NoAccount)
    }

    /// The account of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        find_by_name(&std::fs::read_to_string("/etc/passwd").unwrap_or_default(), name)
    }

    /// Gives `path` itself (not its content or link target) to this account.
    pub fn own(&self, path: &Path) -> Result<(), EmbeddedError> {
        std::os::unix::fs::lchown(path, Some(self.uid), Some(self.gid))
            .map_err(EmbeddedError::io("cannot hand over", path))
    }
}

/// A command that will run as `account`, or as the current user.
pub fn command(program: &Path, account: Option<&Account>) -> Command {
    let mut command = Command::new(program);
    if let Some(account) = account {
        command.uid(account.uid).gid(account.gid);
    }
    command
}

fn find_by_name(passwd: &str, name: &str) -> Option<Account> {
    parse_passwd(passwd).find(|account| account.name == name && account.uid != 0)
}

/// The well-formed lines of `/etc/passwd`: `name:password:uid:gid:…`.
fn parse_passwd(passwd: &str) -> impl Iterator<Item = Account> {
    passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        Some(Account { name, uid, gid })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_read_from_passwd_and_root_is_never_chosen() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\n# comment\nnobody:x:65534:65533::/:/bin/false\npostgres:x:0:0::/:";
        assert_eq!(find_by_name(passwd, "nobody"), Some(Account { name: "nobody".into(), uid: 65534, gid: 65533 }));
        assert_eq!(find_by_name(passwd, "postgres"), None);
    }
}
