//! Databases that are not what they should be are refused loudly, and a row that cannot be read is
//! never an empty answer.
#![cfg(feature = "sqlite")]

mod common;

use common::{Fixture, NOW, at, breakdown, fixture, write};
use rusqlite::Connection;
use serde_json::json;
use std::path::PathBuf;

fn database(f: &Fixture) -> PathBuf {
    f.root.join("mailbox.db")
}

/// A storage with one message, closed, and changed behind the store's back.
fn changed(statement: &str) -> Fixture {
    let (f, mut handle) = fixture("sqlite");
    handle.append("alpha", "one");
    handle.0.close().unwrap();
    Connection::open(database(&f)).unwrap().execute_batch(statement).unwrap();
    f
}

#[test]
fn another_schema_version_or_application_is_refused_and_left_alone() {
    let mut f = changed("PRAGMA user_version = 2");
    assert!(breakdown(f.try_attach()).contains("schema version is 2"));
    let mut f = changed("PRAGMA application_id = 1");
    assert!(breakdown(f.try_attach()).contains("no database of this store"));
    let mut f = changed("PRAGMA journal_mode = delete");
    assert!(breakdown(f.try_attach()).contains("journal mode is delete"));
}

#[test]
fn garbage_nothing_and_no_file_are_no_fresh_store_b1_03_b1_09() {
    for bytes in [&b"not a database at all, but long enough to have a header of 100 bytes ......................................"[..], b""] {
        let mut f = changed("");
        write(&database(&f), bytes);
        breakdown(f.try_attach());
        assert_eq!(common::read(&database(&f)), bytes);
    }
    let mut f = changed("");
    std::fs::remove_file(database(&f)).unwrap();
    breakdown(f.try_attach());
    assert!(!database(&f).exists());
}

#[test]
fn a_body_that_cannot_be_read_is_named_b1_06() {
    let mut f = changed("UPDATE messages SET body = '{\"torn'");
    let mut handle = f.attach();
    assert!(breakdown(handle.mailbox().peek(&at("alpha"), NOW)).contains("message 1 of"));
    breakdown(handle.mailbox().claim(&at("alpha"), &common::ask("ann"), NOW));
    let mut f = changed("DELETE FROM storage");
    let mut handle = f.attach();
    breakdown(handle.mailbox().claim(&at("alpha"), &common::ask("ann"), NOW));
    let mut f = changed("DROP TABLE leases");
    let mut handle = f.attach();
    breakdown(handle.mailbox().claim(&at("alpha"), &common::ask("ann"), NOW));
}

#[test]
fn every_commit_is_synced_and_close_leaves_one_file() {
    let (mut f, mut handle) = fixture("sqlite");
    handle.append("alpha", "one");
    assert!(f.root.join("mailbox.db-wal").exists(), "commits go to the write-ahead log");
    let mut other = f.attach();
    handle.0.close().unwrap();
    assert_eq!(other.append("alpha", "two"), 2);
    other.0.close().unwrap();
    let left: Vec<_> =
        std::fs::read_dir(&f.root).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["mailbox.db"], "the last to close folds the log in and really lets go");
}

#[test]
fn a_write_lock_is_waited_for() {
    let (mut f, _first) = fixture("sqlite");
    let mut waiting = f.attach();
    let holder = Connection::open(database(&f)).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (answered, answer) = std::sync::mpsc::channel();
    let waiter = std::thread::spawn(move || answered.send(waiting.append("alpha", 1)));
    let early = answer.recv_timeout(std::time::Duration::from_millis(100));
    assert!(early.is_err(), "it answered while another held the lock");
    holder.execute_batch("ROLLBACK").unwrap();
    assert_eq!(answer.recv(), Ok(1));
    waiter.join().unwrap().unwrap();
}

#[test]
#[ignore = "it waits out the whole 8 s; run it with --include-ignored"]
fn a_write_lock_that_stays_held_is_a_breakdown_in_time() {
    let (mut f, _first) = fixture("sqlite");
    let mut handle = f.attach();
    let holder = Connection::open(database(&f)).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Reading does not wait for a writer.
    assert_eq!(handle.peek("alpha"), vec![]);
    let started = std::time::Instant::now();
    let message = breakdown(handle.mailbox().append(&at("alpha"), &json!(1), NOW));
    let waited = started.elapsed().as_millis();
    assert!(message.contains("locked"), "{message}");
    assert!((7_900..10_000).contains(&waited), "waited {waited} ms");
    holder.execute_batch("ROLLBACK").unwrap();
    assert_eq!(handle.append("alpha", 1), 1);
}

#[test]
fn a_tombstone_survives_drop_reap_and_reopen_and_refuses_only_appends_b3_33() {
    let (mut f, mut handle) = fixture("sqlite");
    handle.append("alpha", "one");
    let held = handle.claim("alpha", "ann").unwrap();
    for of in ["alpha", "fresh"] {
        handle.0.tombstones().unwrap().tombstone(&at(of), NOW).unwrap();
        handle.0.tombstones().unwrap().tombstone(&at(of), NOW).unwrap();
    }
    handle.0.close().unwrap();
    let mut handle = f.attach();
    for of in ["alpha", "fresh"] {
        let refused = handle.mailbox().append(&at(of), &json!("more"), NOW);
        assert_eq!(common::refusal(refused), "recipient_deleted");
    }
    assert_eq!(handle.claim("alpha", "ann"), Some(held.clone()));
    assert_eq!(handle.ack("alpha", "ann", &held.lease, 1), 1);
    handle.drop_box("alpha");
    handle.reap();
    let refused = handle.mailbox().append(&at("alpha"), &json!("more"), NOW);
    assert_eq!(common::refusal(refused), "recipient_deleted");
    assert_eq!(handle.append("alphabet", "free"), 1);
}
