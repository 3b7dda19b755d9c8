//! Buckets declared in the configuration, and the files to upload into them.

use std::path::{Path, PathBuf};

use super::Project;
use super::values::{parse_flag, parse_size};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub name: String,
    /// `None` if the configuration does not say it. The same goes for the limits.
    pub public: Option<bool>,
    /// Bytes.
    pub file_size_limit: Option<u64>,
    pub allowed_mime_types: Option<Vec<String>>,
    /// The folder whose files are uploaded.
    pub objects: Option<PathBuf>,
}

impl Project {
    pub fn buckets(&self) -> Vec<Bucket> {
        self.values
            .tables_below("storage.buckets")
            .into_iter()
            .map(|name| {
                let path = |key: &str| format!("storage.buckets.{name}.{key}");
                let size = self.values.text(&path("file_size_limit")).and_then(|text| parse_size(&text));
                Bucket {
                    public: self.values.text(&path("public")).and_then(|text| parse_flag(&text)),
                    file_size_limit: size.filter(|size| *size > 0),
                    allowed_mime_types: self.value_list(&path("allowed_mime_types")).filter(|types| !types.is_empty()),
                    objects: self.values.text(&path("objects_path")).map(|folder| self.folder().join(folder)),
                    name,
                }
            })
            .collect()
    }
}

impl Bucket {
    /// Every file below the folder with its object key, sorted.
    pub fn files(&self) -> Vec<(String, PathBuf)> {
        self.objects.as_deref().map(files_below).unwrap_or_default()
    }
}

/// Every file below a folder with its path in it, sorted.
pub fn files_below(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut files = Vec::new();
    collect(folder, folder, &mut files);
    files.sort();
    files
}

fn collect(root: &Path, folder: &Path, into: &mut Vec<(String, PathBuf)>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        // Symbolic links are not followed, since they may form cycles.
        let Ok(kind) = path.symlink_metadata() else { continue };
        if kind.is_dir() {
            collect(root, &path, into);
        } else if kind.is_file()
            && let Ok(key) = path.strip_prefix(root)
        {
            into.push((key.to_string_lossy().into_owned(), path.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Folder;

    #[test]
    fn buckets_are_read_with_limits_and_files() {
        let folder = Folder::new(
            "buckets",
            &[
                (
                    "supabase/config.toml",
                    "[storage.buckets.Images]\npublic = true\nfile_size_limit = \"1MiB\"\nallowed_mime_types = [\"image/png\"]\n\
                     objects_path = \"./images\"\n[storage.buckets.plain]\n",
                ),
                ("supabase/images/a.png", "x"),
                ("supabase/images/deep/b.png", "y"),
            ],
        );
        let mut buckets = folder.load(&[]).buckets();
        buckets.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(
            (buckets[0].name.as_str(), buckets[0].public, buckets[0].file_size_limit),
            ("images", Some(true), Some(1 << 20))
        );
        let keys: Vec<_> = buckets[0].files().into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["a.png", "deep/b.png"]);
        assert_eq!(
            (buckets[1].public, buckets[1].allowed_mime_types.clone(), buckets[1].files().len()),
            (None, None, 0)
        );
    }
}
