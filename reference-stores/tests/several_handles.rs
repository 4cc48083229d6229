//! Several handles on one storage, each with its own descriptors as another process would have.
#![cfg(all(feature = "jsonl", feature = "sqlite", feature = "postgres", feature = "redis"))]

mod common;

use common::{Handle, NOW, at, fixture, pairs, refusal};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use storeproof_contract::mailbox::store::{ClaimAsk, Millis};

const DURABLE: &[&str] = &["jsonl", "sqlite", "postgres", "redis"];

#[test]
fn a_warm_handle_sees_what_the_other_did_compaction_included_b3_03() {
    for name in common::running(DURABLE) {
        let (mut f, mut a) = fixture(name);
        let mut b = f.attach();
        assert_eq!(b.append("alpha", "a1"), 1);
        assert_eq!(a.peek("alpha"), vec![(1, json!("a1"))], "{name}");
        for round in 0..10 {
            let seq = b.append("alpha", round);
            assert_eq!(a.append("alpha", round), seq + 1, "{name}: minted above the other");
            a.ack_all("alpha");
            // The log is replaced under b's warm view, and once more before b looks again.
            a.reap();
            a.append("other", round);
            assert_eq!(a.drop_box("other"), 1);
            a.reap();
            assert_eq!(b.peek("alpha"), vec![], "{name}: acked messages stay gone");
            assert_eq!(b.append("alpha", "next"), seq + 2, "{name}");
            assert_eq!(b.drop_box("alpha"), 1);
            assert!(a.claim("alpha", "ann").is_none(), "{name}: no resurrection");
        }
    }
}

#[test]
fn a_lease_of_one_handle_fences_the_other_through_reap_and_reopen() {
    for name in common::running(DURABLE) {
        let (mut f, mut a) = fixture(name);
        let mut b = f.attach();
        a.append("alpha", "m1");
        a.append("beta", "n1");
        let held = a.claim("alpha", "ann").unwrap();
        let late = b.claim("beta", "bob").unwrap();
        b.append("alpha", "m2");
        // Two live leases in the snapshot, on boxes whose order is not the order of granting.
        b.append("gone", "x");
        b.drop_box("gone");
        b.reap();
        b.0.close().unwrap();
        b = f.attach();
        assert!(b.claim("alpha", "bob").is_none(), "{name}");
        assert_eq!(a.claim("alpha", "ann"), Some(held.clone()), "{name}: the same lease");
        assert_eq!(b.claim("beta", "bob").as_ref(), Some(&late), "{name}");
        let stolen = b.mailbox().ack(&at("alpha"), "bob", &held.lease, held.messages[0].seq, NOW);
        assert_eq!(refusal(stolen), "lease_not_held");
        // Its holder may settle it through any handle.
        assert_eq!(b.ack("alpha", "ann", &held.lease, u64::MAX >> 11), 1);
        assert_eq!(a.peek("alpha"), vec![(2, json!("m2"))], "{name}");
    }
}

#[test]
fn no_seq_and_no_lease_id_comes_back_after_drop_reap_and_reopen() {
    for name in common::running(DURABLE) {
        let (mut f, mut handle) = fixture(name);
        let (mut last, mut leases) = (0, BTreeSet::new());
        for round in 0..12 {
            let seq = handle.append("alpha", round);
            assert!(seq > last, "{name}: {seq} after {last}");
            last = seq;
            let delivery = handle.claim("alpha", "ann").unwrap();
            assert!(leases.insert(delivery.lease.clone()), "{name}: {:?} again", delivery.lease);
            match round % 4 {
                0 => drop(handle.drop_box("alpha")),
                1 => drop(handle.ack("alpha", "ann", &delivery.lease, seq)),
                2 => handle.mailbox().reap(Millis(NOW.0 + 60_000)).unwrap(),
                _ => handle.mailbox().release(&at("alpha"), "ann", &delivery.lease, NOW).unwrap(),
            }
            handle.reap();
            handle.reap();
            handle.0.close().unwrap();
            handle = f.attach();
        }
    }
}

#[test]
fn an_expired_lease_is_gone_for_every_handle_and_its_late_ack_is_refused_b3_07() {
    for name in common::running(DURABLE) {
        let (mut f, mut a) = fixture(name);
        let mut b = f.attach();
        a.append("alpha", "m1");
        let short = ClaimAsk { owner: "ann".to_owned(), ttl_ms: 50, max: None };
        let old = a.mailbox().claim(&at("alpha"), &short, NOW).unwrap().unwrap();
        let just_before = b.mailbox().claim(&at("alpha"), &common::ask("bob"), Millis(NOW.0 + 49));
        assert_eq!(just_before, Ok(None), "{name}");
        let later = Millis(NOW.0 + 50);
        let new = b.mailbox().claim(&at("alpha"), &common::ask("bob"), later).unwrap().unwrap();
        assert_eq!(pairs(new.messages), pairs(old.messages.clone()), "{name}");
        let late = a.mailbox().ack(&at("alpha"), "ann", &old.lease, old.messages[0].seq, later);
        assert_eq!(refusal(late), "lease_not_held");
        assert_eq!(b.ack("alpha", "bob", &new.lease, 1), 1);
    }
}

/// Four writers at full speed while a fifth handle reaps in a loop: B3-01, B3-05, B3-32.
#[test]
fn every_receipt_of_busy_writers_is_found_though_another_compacts() {
    const WRITERS: usize = 4;
    const APPENDS: usize = 50;
    for name in common::running(DURABLE) {
        let (mut f, mut reaper) = fixture(name);
        reaper.append("noise", 0);
        let mut handles: Vec<Handle> = (0..WRITERS).map(|_| f.attach()).collect();
        let mut receipts: Vec<(u64, Value)> = std::thread::scope(|scope| {
            let writers: Vec<_> = handles
                .iter_mut()
                .enumerate()
                .map(|(w, handle)| {
                    scope.spawn(move || {
                        let mut sent = Vec::new();
                        for n in 0..APPENDS {
                            let body = json!([w, n]);
                            sent.push((handle.append("alpha", body.clone()), body));
                        }
                        assert!(sent.is_sorted_by_key(|(seq, _)| *seq), "increasing on each side");
                        sent
                    })
                })
                .collect();
            while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                // Something to compact each time: the drop's record and what it dropped.
                reaper.append("noise", 0);
                reaper.drop_box("noise");
                reaper.reap();
            }
            writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
        });
        receipts.sort_by_key(|(seq, _)| *seq);
        assert_eq!(receipts.len(), WRITERS * APPENDS);
        assert_eq!(f.attach().peek("alpha"), receipts, "{name}");
        assert_eq!(reaper.peek("alpha"), receipts, "{name}");
    }
}

#[test]
fn close_is_idempotent_and_what_comes_after_it_is_refused_b3_10() {
    for name in common::running(&["memory", "jsonl", "sqlite", "postgres", "redis"]) {
        let base = common::scratch();
        let mut subject = common::subject(name, base.path());
        let opened = subject.open().unwrap();
        let mut handle = Handle(opened.store);
        let lease = storeproof_contract::mailbox::store::LeaseId("x".to_owned());
        handle.0.close().unwrap();
        handle.0.close().unwrap();
        let (of, mailbox) = (at("alpha"), handle.mailbox());
        let seq = storeproof_contract::mailbox::store::Seq(1);
        let refusals = [
            refusal(mailbox.append(&of, &json!(1), NOW)),
            refusal(mailbox.claim(&of, &common::ask("ann"), NOW)),
            refusal(mailbox.ack(&of, "ann", &lease, seq, NOW)),
            refusal(mailbox.release(&of, "ann", &lease, NOW)),
            refusal(mailbox.renew(&of, "ann", &lease, 1, NOW)),
            refusal(mailbox.peek(&of, NOW)),
            refusal(mailbox.reap(NOW)),
            refusal(mailbox.drop_box(&of, NOW)),
        ];
        assert_eq!(refusals, ["closed"; 8], "{name}");
        if let Some(hook) = handle.0.tombstones() {
            assert_eq!(refusal(hook.tombstone(&of, NOW)), "closed");
        }
        if let Some(location) = opened.location {
            subject.destroy(&location).unwrap();
        }
    }
}
