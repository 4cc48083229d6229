//! The log file: locked, caught up with, appended to, mended, compacted.
//!
//! Order of every operation: take the kernel lock; look whether the path still names the file we hold;
//! read on from where we were; sync what others wrote; act; append one record; sync; let go.

use super::record::{Header, Record, Tail, VERSION, is_blank, line_of, parse, tail};
use super::state::State;
use super::{LOCK, LOG, LOG_NEW};
use crate::folder::{broken, sync_folder};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use storeproof_contract::mailbox::store::{LeaseId, Millis};
use storeproof_contract::subject::{Reply, StoreError};

/// A byte-order mark, which an editor may have put in front of the first line.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One handle's view of the log.
pub(super) struct Log {
    folder: PathBuf,
    lock: File,
    /// The log as last opened. Holding it open keeps its inode number from being given to a later
    /// log, so equal numbers really mean the same file.
    file: File,
    view: View,
    /// A log with a lower generation is an old copy put back: what was promised since is not in it.
    generation_min: u64,
    /// Why nothing more can be done through this handle, once that is so.
    failed: Option<String>,
}

/// What was read of `file` so far.
#[derive(Default)]
struct View {
    header: Option<Header>,
    state: State,
    /// Everything before this byte is in `state`.
    read_to: u64,
    /// Lines before it, blank ones included.
    lines: u64,
    /// Records among them, the header not counted.
    records: u64,
}

/// The log while this handle holds the lock.
pub(super) struct Locked<'l>(&'l mut Log);

impl Log {
    /// Makes the files of a fresh storage in its fresh folder.
    pub(super) fn create(folder: &Path, storage: &str) -> Reply<Self> {
        let header =
            Header { storeproof_jsonl: VERSION, storage: storage.to_owned(), generation: 0 };
        let make = || -> io::Result<()> {
            File::create_new(folder.join(LOCK))?.sync_all()?;
            // By rename, so that a log without its first line never exists under its name.
            let mut file = File::create_new(folder.join(LOG_NEW))?;
            file.write_all(&line_of(&header)?)?;
            file.sync_all()?;
            std::fs::rename(folder.join(LOG_NEW), folder.join(LOG))?;
            sync_folder(folder)
        };
        make().map_err(|error| broken("cannot make a log in", folder, &error))?;
        Self::attach(folder)
    }

    /// Opens the log in `folder` and reads it, so that one that cannot be read is loud at once.
    pub(super) fn attach(folder: &Path) -> Reply<Self> {
        let lock = folder.join(LOCK);
        // Not created when missing: a second lock file would be a second owner.
        let lock = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&lock)
            .map_err(|error| broken("cannot open the lock file", &lock, &error))?;
        let file = open_log(folder)?;
        let (folder, view) = (folder.to_owned(), View::default());
        let mut log = Self { folder, lock, file, view, generation_min: 0, failed: None };
        log.locked()?;
        Ok(log)
    }

    /// Takes the lock and catches up with every other process.
    pub(super) fn locked(&mut self) -> Reply<Locked<'_>> {
        if let Some(why) = &self.failed {
            return Err(StoreError::Broken(why.clone()));
        }
        let mut taken = self.lock.lock();
        while taken.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {
            taken = self.lock.lock();
        }
        taken.map_err(|error| broken("cannot lock", &self.folder.join(LOCK), &error))?;
        let mut locked = Locked(self);
        locked.catch_up()?;
        Ok(locked)
    }

    fn path(&self) -> PathBuf {
        self.folder.join(LOG)
    }

    fn corrupt(&self, why: &dyn std::fmt::Display) -> StoreError {
        let (path, line, byte) = (self.path(), self.view.lines + 1, self.view.read_to);
        let message = format!("{} is corrupt at line {line}, byte {byte}: {why}", path.display());
        StoreError::Broken(message)
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // Letting go of a lock that we hold can only fail if the descriptor is gone, and then the
        // kernel has let go already.
        let _ = self.0.lock.unlock();
    }
}

impl Locked<'_> {
    /// The boxes as of now.
    pub(super) fn state(&self) -> &State {
        &self.0.view.state
    }

    /// The id of the lease with this number; the storage's name keeps it apart from other storages'.
    pub(super) fn lease_id(&self, number: u64) -> LeaseId {
        let storage = self.0.view.header.as_ref().map_or("", |header| &header.storage);
        LeaseId(format!("{storage}.{number}"))
    }

    /// Appends one record and takes it in. When this returns `Ok` the record is on disk; when it
    /// returns an error, nothing has changed.
    pub(super) fn write(&mut self, record: Record) -> Reply<()> {
        let path = self.0.path();
        let line = line_of(&record).map_err(|error| broken("cannot write to", &path, &error))?;
        let written = self.0.file.write_all(&line);
        let synced = written.is_ok();
        if let Err(error) = written.and_then(|()| self.0.file.sync_data()) {
            return Err(self.take_back(&path, &error, synced));
        }
        self.take_record(record)?;
        self.0.view.read_to += line.len() as u64;
        self.0.view.lines += 1;
        Ok(())
    }

    /// Cuts off what a failed write left. Nobody has seen it: we still hold the lock.
    fn take_back(&mut self, path: &Path, error: &io::Error, sync_failed: bool) -> StoreError {
        let why = broken("cannot write to", path, error);
        let cut = self.0.file.set_len(self.0.view.read_to);
        // After a failed sync the kernel may call the pages clean though they never reached the disk,
        // so a later sync that succeeds would prove nothing.
        if sync_failed || cut.is_err() {
            self.0.failed = Some(format!("{why}; this handle is out of use since"));
        }
        why
    }

    /// Reads everything that was appended since the last look.
    fn catch_up(&mut self) -> Reply<()> {
        let log = &mut *self.0;
        let path = log.path();
        let lost = |error: io::Error| broken("cannot look at", &path, &error);
        let lock_path = log.folder.join(LOCK);
        let lock_there = std::fs::metadata(&lock_path).map_err(lost)?;
        if identity(&lock_there) != identity(&log.lock.metadata().map_err(lost)?) {
            log.failed = Some(format!("{} was replaced", lock_path.display()));
            return Err(broken("the lock has no force", &lock_path, &"the file was replaced"));
        }
        let mut there = std::fs::metadata(&path).map_err(lost)?;
        if identity(&there) != identity(&log.file.metadata().map_err(lost)?) {
            self.start_over()?;
            there = self.0.file.metadata().map_err(lost)?;
        }
        let log = &mut *self.0;
        let from = log.view.read_to;
        if there.len() < from {
            let why = format!("it ends at byte {}; what was there is gone", there.len());
            return Err(log.corrupt(&why));
        }
        if there.len() == from && log.view.header.is_some() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        log.file
            .seek(SeekFrom::Start(from))
            .and_then(|_| log.file.read_to_end(&mut bytes))
            .map_err(|error| broken("cannot read", &path, &error))?;
        self.take_in(&bytes)?;
        // Whoever wrote these bytes may have been killed before its sync, and our answer rests on them.
        self.0.file.sync_data().map_err(|error| {
            let why = broken("cannot sync", &path, &error);
            self.0.failed = Some(why.to_string());
            why
        })
    }

    /// Turns to the log that a compaction put in place of ours, of which nothing is read yet.
    fn start_over(&mut self) -> Reply<()> {
        let log = &mut *self.0;
        log.file = open_log(&log.folder)?;
        if let Some(header) = &log.view.header {
            log.generation_min = header.generation + 1;
        }
        log.view = View::default();
        Ok(())
    }

    /// Takes in bytes that begin at `read_to`: line by line, split on the byte 0x0A before anything
    /// is decoded, so that one bad line cannot make another unreadable.
    fn take_in(&mut self, bytes: &[u8]) -> Reply<()> {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.take_line(&rest[..end], end + 1)?;
            rest = &rest[end + 1..];
        }
        if rest.is_empty() { self.demand_header() } else { self.mend(rest) }
    }

    fn take_line(&mut self, line: &[u8], len: usize) -> Reply<()> {
        let text = match self.0.view.read_to {
            0 => line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line),
            _ => line,
        };
        if !is_blank(text) {
            self.take_text(text)?;
        }
        self.0.view.read_to += len as u64;
        self.0.view.lines += 1;
        Ok(())
    }

    fn take_text(&mut self, text: &[u8]) -> Reply<()> {
        let log = &mut *self.0;
        if log.view.header.is_none() {
            let header: Header = parse(text).map_err(|error| log.corrupt(&error))?;
            if header.storeproof_jsonl != VERSION {
                let why = format!("its format is {}, not {VERSION}", header.storeproof_jsonl);
                return Err(broken("cannot read", &log.path(), &why));
            }
            if header.generation < log.generation_min {
                let why = format!("generation {} came back", header.generation);
                return Err(log.corrupt(&why));
            }
            log.view.header = Some(header);
            return Ok(());
        }
        let record = parse(text).map_err(|error| log.corrupt(&error))?;
        self.take_record(record)
    }

    fn take_record(&mut self, record: Record) -> Reply<()> {
        if let Err(why) = self.0.view.state.apply(record) {
            let error = self.0.corrupt(&why);
            // The record may be half taken in, so nothing in this view can be believed any more.
            self.0.failed = Some(error.to_string());
            return Err(error);
        }
        self.0.view.records += 1;
        Ok(())
    }

    /// Deals with bytes after the last newline. A whole record is kept and gets its newline; the start
    /// of one was promised to nobody and is cut off, so that the next record has a line of its own.
    fn mend(&mut self, rest: &[u8]) -> Reply<()> {
        match tail(rest) {
            Tail::Garbage => {
                let why = "the last line has no end and is not the start of a record";
                return Err(self.0.corrupt(&why));
            }
            Tail::Whole(len) => {
                let line_start = self.0.view.read_to;
                self.take_line(&rest[..len], len + 1)?;
                self.repair(line_start + len as u64, b"\n")?;
            }
            // The header came by rename, whole or not at all, so a torn one is no crash of ours.
            Tail::Torn if self.0.view.header.is_none() => {
                return Err(self.0.corrupt(&"the first line is cut short"));
            }
            Tail::Torn => self.repair(self.0.view.read_to, b"")?,
        }
        self.demand_header()
    }

    fn repair(&mut self, cut_to: u64, then: &[u8]) -> Reply<()> {
        let path = self.0.path();
        self.0.file.set_len(cut_to).and_then(|()| self.0.file.write_all(then)).map_err(|error| {
            let why = broken("cannot mend the end of", &path, &error);
            self.0.failed = Some(why.to_string());
            why
        })
    }

    fn demand_header(&self) -> Reply<()> {
        match self.0.view.header {
            Some(_) => Ok(()),
            None => Err(self.0.corrupt(&"it has no first line; a log is never empty")),
        }
    }

    /// Writes the log anew without what has no effect any more, if there is any such thing. Under the
    /// lock from the first byte to the last, so that nobody appends to the log that is going away.
    pub(super) fn compact(&mut self, now: Millis) -> Reply<()> {
        if self.0.view.records <= self.0.view.state.snapshot_len(now) {
            return Ok(());
        }
        let folder = self.0.folder.clone();
        let path = folder.join(LOG_NEW);
        self.rewrite(&path, now)
            .and_then(|()| std::fs::rename(&path, folder.join(LOG)))
            .map_err(|error| broken("cannot compact into", &path, &error))?;
        // The new log is read back like anybody else's, folder synced and all: what we go on with is
        // what is on disk.
        self.catch_up()
    }

    fn rewrite(&self, path: &Path, now: Millis) -> io::Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        if let Some(header) = &self.0.view.header {
            let header = Header { generation: header.generation + 1, ..header.clone() };
            out.write_all(&line_of(&header)?)?;
        }
        for record in self.0.view.state.snapshot(now) {
            out.write_all(&line_of(&record)?)?;
        }
        out.into_inner()?.sync_all()
    }
}

/// Opens the log and makes its name last: a process that compacted may have been killed between its
/// rename and its sync of the folder, and a receipt in a log whose name is lost is worth nothing.
fn open_log(folder: &Path) -> Reply<File> {
    let path = folder.join(LOG);
    let open = || {
        let file = OpenOptions::new().read(true).append(true).open(&path)?;
        sync_folder(folder)?;
        Ok::<_, io::Error>(file)
    };
    open().map_err(|error| broken("cannot open", &path, &error))
}

/// What tells one file from another, whatever its name.
fn identity(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonl::record::Recipient;
    use storeproof_contract::mailbox::store::Address;

    #[test]
    fn a_failed_write_changes_nothing_and_puts_the_handle_out_of_use() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::create(folder.path(), "test").unwrap();
        let before = std::fs::read(log.path()).unwrap();
        // A descriptor that cannot write, nor cut, stands in for the broken disk.
        log.file = File::open(log.path()).unwrap();
        let record = || Record::Drop { of: Recipient::from(&Address::new("a", "b")) };
        let written = log.locked().unwrap().write(record());
        assert!(matches!(written, Err(StoreError::Broken(_))));
        assert!(log.locked().is_err_and(|error| error.to_string().contains("out of use")));
        assert_eq!(std::fs::read(log.path()).unwrap(), before);
        assert!(Log::attach(folder.path()).unwrap().locked().unwrap().write(record()).is_ok());
    }
}
