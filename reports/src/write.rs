//! Reports reach their path whole or not at all.

use std::io::Write as _;
use std::path::Path;

use crate::error::ReportError;

/// Writes `bytes` to `path`: into a new file in the same folder, synced, then renamed over `path`.
/// A reader sees the old file or the whole new one; a failure leaves nothing behind.
///
/// # Errors
/// Names `path` and what the system said.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), ReportError> {
    replace(path, bytes).map_err(|source| ReportError::Write { path: path.to_owned(), source })
}

fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if path.file_name().is_none() || path.is_dir() {
        return Err(std::io::Error::other("this is a folder, not a file"));
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new();
    file.prefix(".storeproof-").suffix(".part");
    // A report is for others to read: a scratch file's 0600 would follow it through the rename.
    #[cfg(unix)]
    file.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    let mut file = file.tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    // Dropping the error removes the scratch file.
    file.persist(path).map_err(|error| error.error)?;
    sync_folder(folder);
    Ok(())
}

/// The rename itself survives a power cut only once the folder is synced. Some file systems refuse
/// to sync a folder; the report is whole all the same, so that is no error.
fn sync_folder(folder: &Path) {
    if let Ok(folder) = std::fs::File::open(folder) {
        drop(folder.sync_all());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .expect("the folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn replaces_the_whole_file_and_leaves_no_droppings() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("TEST-memory.xml");
        write_atomically(&path, b"a longer first report").expect("first");
        write_atomically(&path, b"second").expect("second");
        assert_eq!(std::fs::read(&path).expect("the report"), b"second");
        assert_eq!(names(folder.path()), ["TEST-memory.xml"]);
    }

    #[test]
    fn a_failure_names_the_path_and_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("taken");
        std::fs::create_dir(&target).expect("a folder in the way");
        let error = write_atomically(&target, b"x").expect_err("a folder is in the way");
        assert!(error.to_string().contains("taken"), "{error}");
        assert_eq!(names(folder.path()), ["taken"]);
        let missing = folder.path().join("no/such/report.json");
        let error = write_atomically(&missing, b"x").expect_err("no such folder");
        assert!(error.to_string().contains("no/such/report.json"), "{error}");
    }
}
