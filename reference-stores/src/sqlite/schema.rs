//! The database: how it is made, how it is recognised, and how each connection behaves.

use super::LOCK_WAIT_MS_MAX;
use crate::folder::{broken, sync_folder};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};
use storeproof_contract::subject::{Reply, StoreError};

/// Marks the file as ours ("SPMB").
const APPLICATION_ID: i64 = 0x5350_4D42;
/// The schema below; another one is refused, never altered.
const SCHEMA_VERSION: i64 = 1;

/// Names and owners are BLOBs: SQLite leaves text with a NUL in it undefined, folds no bytes of a
/// BLOB, and a primary key of two columns cannot run two names together. `boxes` keeps a row for
/// every box ever written to, emptied or dropped, because its counter must go on where it was;
/// `storage` keeps the count of leases for the same reason.
const SCHEMA: &str = "
    CREATE TABLE storage (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        name TEXT NOT NULL,
        leases_granted INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE boxes (
        scope BLOB NOT NULL,
        handle BLOB NOT NULL,
        last_seq INTEGER NOT NULL,
        PRIMARY KEY (scope, handle)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE messages (
        scope BLOB NOT NULL,
        handle BLOB NOT NULL,
        seq INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (scope, handle, seq)
    ) STRICT;
    CREATE TABLE leases (
        scope BLOB NOT NULL,
        handle BLOB NOT NULL,
        id TEXT NOT NULL,
        owner BLOB NOT NULL,
        expiry INTEGER NOT NULL,
        delivered INTEGER NOT NULL,
        PRIMARY KEY (scope, handle)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE tombstones (
        scope BLOB NOT NULL,
        handle BLOB NOT NULL,
        PRIMARY KEY (scope, handle)
    ) STRICT, WITHOUT ROWID;
";

/// Makes the database of a fresh storage in its fresh folder.
pub(super) fn create(path: &Path, storage: &str) -> Reply<Connection> {
    let make = || -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_READ_WRITE;
        let mut connection = Connection::open_with_flags(path, flags)?;
        settle(&mut connection)?;
        // Written into the file's header; every later connection follows it.
        connection.pragma_update(None, "journal_mode", "wal")?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(SCHEMA)?;
        transaction.execute("INSERT INTO storage VALUES (1, ?1, 0)", [storage])?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
        transaction.commit()?;
        Ok(connection)
    };
    let connection = make().map_err(|error| broken("cannot make", path, &error))?;
    if let Some(folder) = path.parent() {
        sync_folder(folder).map_err(|error| broken("cannot sync the folder", folder, &error))?;
    }
    // The same door for all: what was just made has to pass the checks of an attach.
    check(&connection, path)?;
    Ok(connection)
}

/// Opens a database that is there, if it is one of ours.
pub(super) fn attach(path: &Path) -> Reply<Connection> {
    // Without CREATE: a database that is gone must not come back as an empty one.
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .and_then(|mut connection| settle(&mut connection).map(|()| connection))
        .map_err(|error| broken("cannot open", path, &error))?;
    check(&connection, path)?;
    Ok(connection)
}

fn settle(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_handler(Some(wait_for_lock))?;
    connection.pragma_update(None, "synchronous", "full")?;
    // Only means something on macOS, where a plain fsync does not reach the disk.
    connection.pragma_update(None, "fullfsync", true)
}

thread_local! {
    /// When this thread began to wait for a lock; SQLite calls back on the thread that asked.
    static WAITING_SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Looks again every millisecond. SQLite's own waiting grows to 100 ms a step, which starves one of
/// two processes that append at full speed. Measured by the clock, since on a busy machine a sleep of
/// one millisecond takes longer than that.
fn wait_for_lock(tries: i32) -> bool {
    if tries == 0 {
        WAITING_SINCE.set(Some(Instant::now()));
    }
    std::thread::sleep(Duration::from_millis(1));
    let waited = WAITING_SINCE.get().map(|since| since.elapsed());
    waited.is_some_and(|waited| waited < Duration::from_millis(LOCK_WAIT_MS_MAX))
}

fn check(connection: &Connection, path: &Path) -> Reply<()> {
    let read = |pragma: &str| {
        connection
            .pragma_query_value(None, pragma, |row| row.get::<_, i64>(0))
            .map_err(|error| broken("cannot read", path, &error))
    };
    let (application, version) = (read("application_id")?, read("user_version")?);
    if application != APPLICATION_ID {
        let message = format!("{} is no database of this store", path.display());
        return Err(StoreError::Broken(message));
    }
    if version != SCHEMA_VERSION {
        let why = format!("its schema version is {version}, this build knows {SCHEMA_VERSION}");
        return Err(broken("cannot use", path, &why));
    }
    let journal = connection
        .pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0))
        .map_err(|error| broken("cannot read", path, &error))?;
    if journal != "wal" {
        return Err(broken("cannot use", path, &format!("its journal mode is {journal}")));
    }
    Ok(())
}
