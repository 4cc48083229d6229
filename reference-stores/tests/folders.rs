//! Storages on disk: fresh ones are fresh, and a location leads to no place but a storage.
#![cfg(all(feature = "jsonl", feature = "sqlite"))]

mod common;

use common::{breakdown, fixture, read, refusal, write};
use serde_json::{Value, json};
use std::path::Path;

const DURABLE: [&str; 2] = ["jsonl", "sqlite"];

fn at(store: &str, folder: &Path) -> Value {
    json!({ "store": store, "folder": folder.to_str().unwrap() })
}

#[test]
fn each_open_makes_a_folder_of_its_own_and_destroy_takes_just_that_one() {
    for name in DURABLE {
        let (mut f, mut first) = fixture(name);
        first.append("alpha", 1);
        let mut second = f.subject.open().unwrap();
        assert_ne!(second.location.as_ref(), Some(&f.location));
        assert_eq!(
            second.store.mailbox().unwrap().peek(&common::at("alpha"), common::NOW),
            Ok(vec![])
        );
        second.store.close().unwrap();
        f.subject.destroy(&second.location.clone().unwrap()).unwrap();
        assert!(!Path::new(&second.root.unwrap()).exists());
        assert_eq!(first.peek("alpha"), vec![(1, json!(1))], "{name}");
        // Gone already is fine; attaching to it is not.
        f.subject.destroy(second.location.as_ref().unwrap()).unwrap();
        breakdown(f.subject.attach(second.location.as_ref().unwrap()));
    }
}

#[test]
fn a_storage_that_is_still_open_can_be_destroyed_and_then_answers_nothing_jsonl() {
    let (mut f, mut handle) = fixture("jsonl");
    handle.append("alpha", 1);
    f.subject.destroy(&f.location).unwrap();
    breakdown(handle.mailbox().peek(&common::at("alpha"), common::NOW));
    handle.0.close().unwrap();
}

#[test]
fn another_subject_with_another_base_attaches_but_does_not_destroy() {
    for name in DURABLE {
        let (f, mut handle) = fixture(name);
        handle.append("alpha", 1);
        let elsewhere = tempfile::tempdir().unwrap();
        let mut peer = common::subject(name, elsewhere.path());
        let mut attached = common::Handle(peer.attach(&f.location).unwrap());
        assert_eq!(attached.append("alpha", 2), 2);
        assert_eq!(handle.peek("alpha").len(), 2);
        assert_eq!(refusal(peer.destroy(&f.location)), "invalid_location");
        assert_eq!(handle.peek("alpha").len(), 2, "{name}");
    }
}

#[test]
fn destroy_follows_no_hostile_location() {
    for name in DURABLE {
        let (mut f, handle) = fixture(name);
        drop(handle);
        let base = std::fs::canonicalize(f.base.path()).unwrap();
        let other = if name == "jsonl" { "sqlite" } else { "jsonl" };
        let ours = f.root.clone();
        let canary = base.join("canary");
        let stranger = base.join(format!("{name}-stranger"));
        let nested = base.join(format!("{name}-nested"));
        let link = base.join(format!("{name}-link"));
        std::fs::create_dir_all(&stranger).unwrap();
        std::fs::create_dir_all(nested.join("lock")).unwrap();
        write(&canary, b"alive");
        write(&stranger.join("precious"), b"alive");
        std::os::unix::fs::symlink(&ours, &link).unwrap();
        let file = base.join(format!("{name}-file"));
        write(&file, b"alive");
        let hostile = [
            Value::Null,
            json!("/"),
            json!({ "folder": ours.to_str().unwrap() }),
            json!({ "store": other, "folder": ours.to_str().unwrap() }),
            json!({ "store": name, "folder": ours.file_name().unwrap().to_str().unwrap() }),
            json!({ "store": name, "folder": 1 }),
            at(name, Path::new("/")),
            at(name, &base),
            at(name, &base.join("canary")),
            at(name, &base.join(format!("{name}-gone/../canary"))),
            at(name, &ours.join("..")),
            at(name, &ours.join(".").join("..").join("..")),
            at(name, &stranger),
            at(name, &nested),
            at(name, &link),
            at(name, &file),
            at(name, &ours.join("lock")),
            at(name, Path::new("/nowhere/jsonl-abcdef")),
        ];
        for location in &hostile {
            assert_eq!(refusal(f.subject.destroy(location)), "invalid_location", "{location}");
        }
        // One foreign file among ours keeps the whole folder.
        write(&ours.join("notes.txt"), b"mine");
        assert_eq!(refusal(f.subject.destroy(&f.location)), "invalid_location");
        std::fs::remove_file(ours.join("notes.txt")).unwrap();
        f.attach().append("alpha", 1);
        assert_eq!(
            (read(&canary), read(&stranger.join("precious"))),
            (b"alive".into(), b"alive".into())
        );
        f.subject.destroy(&f.location).unwrap();
        assert!(!ours.exists());
    }
}

#[test]
fn attaching_to_no_storage_is_loud_and_makes_none() {
    for name in DURABLE {
        let (mut f, _) = fixture(name);
        let empty = f.base.path().join("empty");
        std::fs::create_dir(&empty).unwrap();
        breakdown(f.subject.attach(&at(name, &empty)));
        breakdown(f.subject.attach(&at(name, Path::new("/dev/null"))));
        assert_eq!(refusal(f.subject.attach(&json!([]))), "invalid_location");
        assert_eq!(refusal(f.subject.attach(&at(name, Path::new("relative")))), "invalid_location");
        assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0);
    }
}
