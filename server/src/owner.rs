//! Who owns what a command creates as root beside a server that runs as another user.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;

use rustix::fs::OFlags;

/// Gives a file or folder that root has just created to the owner of the folder it is in, because the server runs as that user and
/// has to open it. Does nothing for other users.
///
/// The path may lie in a folder of a less trusted user: links are not followed, and a file with a second name is left alone.
pub fn hand_over(path: &Path) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let above = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let owner = std::fs::metadata(above)?;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options().read(true).custom_flags(flags.bits() as i32).open(path)?;
    let known = file.metadata()?;
    let is_alone = known.is_dir() || known.is_file() && known.nlink() == 1;
    if known.uid() == 0 && is_alone {
        fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
    }
    Ok(())
}

/// Makes a folder if there is none, and hands it over.
pub fn make_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    std::fs::create_dir_all(path).and_then(|()| hand_over(path))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::chown;

    use super::*;

    #[test]
    fn what_root_creates_belongs_to_the_owner_of_its_folder() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        chown(folder.path(), Some(4321), Some(4322)).expect("changed");
        let owner = |name: &str| {
            let known = std::fs::symlink_metadata(folder.path().join(name)).expect("known");
            (known.uid(), known.gid())
        };
        let (file, linked) = (folder.path().join("file"), folder.path().join("linked"));
        std::fs::write(&file, "x").expect("written");
        std::fs::create_dir(folder.path().join("below")).expect("made");
        hand_over(&file).expect("handed over");
        hand_over(&folder.path().join("below")).expect("handed over");
        assert_eq!((owner("file"), owner("below")), ((4321, 4322), (4321, 4322)));
        // Another user may have put links there.
        let foreign = folder.path().join("foreign");
        std::fs::write(&foreign, "x").expect("written");
        std::fs::hard_link(&foreign, &linked).expect("linked");
        std::os::unix::fs::symlink(&foreign, folder.path().join("symbolic")).expect("linked");
        hand_over(&linked).expect("left alone");
        assert!(hand_over(&folder.path().join("symbolic")).is_err());
        assert_eq!(owner("foreign").0, 0);
    }
}
