//! Names and bodies: every name is a box of its own, none is a path, and bodies come back equal.
#![cfg(all(
    feature = "memory",
    feature = "jsonl",
    feature = "sqlite",
    feature = "postgres",
    feature = "redis"
))]

mod common;

use common::{Handle, NOW, refusal};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use storeproof_contract::json::same;
use storeproof_contract::mailbox::store::{Address, ClaimAsk, LeaseId, Millis, Seq};
use storeproof_contract::subject::{Opened, Subject};
use storeproof_contract::world::{Clockwork, World};

const ALL: &[&str] = &["memory", "jsonl", "sqlite", "postgres", "redis"];

fn each(test: impl Fn(&str, &mut dyn Subject, Opened)) {
    for name in common::running(ALL) {
        let base = common::scratch();
        let mut subject = common::subject(name, base.path());
        let opened = subject.open().unwrap();
        let location = opened.location.clone();
        test(name, subject.as_mut(), opened);
        if let Some(location) = location {
            subject.destroy(&location).unwrap();
        }
    }
}

/// Names of public bug reports (B3-17 to B3-31 of the project's log) and of the contract's own list.
fn hard_names() -> Vec<String> {
    let mut names: Vec<String> = [
        "a",
        "b",
        "c",
        "a:b",
        "b:c",
        "a/b",
        "b/c",
        "a|b",
        "b|c",
        "a#b",
        "b#c",
        "a b",
        "b c",
        "a-b",
        "a.b",
        "a_b",
        "a%b",
        "a\\b",
        "a\0b",
        "b\0c",
        "\0",
        "a\0",
        "工作",
        "Погода",
        "مهمة",
        "Worker",
        "worker",
        "WORKER",
        "straße",
        "STRASSE",
        "İx",
        "ix",
        "i̇x",
        "../canary",
        "..\\canary",
        "/tmp/canary",
        "a/../../canary",
        "%2e%2e%2fcanary",
        "C:\\canary",
        "\\\\host\\share",
        "....//canary",
        "..",
        ".",
        "...",
        ".lock",
        "lock",
        "log.jsonl",
        "mailbox.db",
        "index.json",
        "-rf",
        "~",
        "$HOME",
        "subjects?_d",
        "ÿÿÿ",
        "i",
        "I",
        "hi>>>",
        "a?>b",
        "CON",
        "con",
        "NUL",
        "nul.json",
        "AUX",
        "COM1",
        "LPT9",
        "CONIN$",
        "PRN.txt",
        "__proto__",
        "constructor",
        "hasOwnProperty",
        "length",
        "e\u{301}",
        "\u{e9}",
        "a ",
        " a",
        "a.",
        "\n",
        "\u{2028}",
        "\"",
        "[\"a\",\"b\"]",
        "' OR 1=1 --",
        "%",
        "_",
        "NULL",
    ]
    .map(str::to_owned)
    .to_vec();
    for long in [300, 1_000, 4_096] {
        names.extend(["x", "y"].map(|last| "n".repeat(long - 1) + last));
    }
    names.push("𝄞".repeat(100));
    names
}

#[test]
fn every_pair_of_names_is_a_box_of_its_own_and_none_is_a_path() {
    each(|store, subject, opened| {
        let names = hard_names();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        let mut pairs: Vec<(&str, &str)> = names.iter().map(|n| ("default", n.as_str())).collect();
        pairs.extend(names.iter().map(|n| (n.as_str(), "alpha")));
        pairs.extend(names[..20].iter().flat_map(|a| names[..20].iter().map(|b| (&**a, &**b))));
        pairs.sort_unstable();
        pairs.dedup();
        let mut handle = Handle(opened.store);
        for (n, (scope, name)) in pairs.iter().enumerate() {
            let of = Address::new(scope, name);
            assert_eq!(handle.mailbox().append(&of, &json!(n), NOW), Ok(Seq(1)), "{store} {of}");
        }
        handle.reap();
        if let Some(location) = &opened.location {
            handle.0.close().unwrap();
            handle = Handle(subject.attach(location).unwrap());
        }
        for (n, (scope, name)) in pairs.iter().enumerate() {
            let of = Address::new(scope, name);
            let found = handle.mailbox().peek(&of, NOW).unwrap();
            assert_eq!(common::pairs(found), vec![(1, json!(n))], "{store} {of}");
        }
        if let Some(root) = &opened.root {
            let files = std::fs::read_dir(root).unwrap().count();
            assert!(files <= 4, "{store} made {files} files, as if names were paths");
            let beside = std::fs::read_dir(Path::new(root).parent().unwrap()).unwrap().count();
            assert_eq!(beside, 1, "{store} left its root");
        }
    });
}

#[test]
fn empty_names_bad_ttls_and_bad_maxes_are_refused_everywhere_and_change_nothing_b3_30() {
    each(|store, _, opened| {
        let mut handle = Handle(opened.store);
        handle.append("alpha", 1);
        let mailbox = handle.mailbox();
        let ask = |ttl_ms, max| ClaimAsk { owner: "ann".to_owned(), ttl_ms, max };
        for of in [Address::new("", "h"), Address::new("s", ""), Address::new("", "")] {
            let lease = LeaseId("x".to_owned());
            let refusals = [
                refusal(mailbox.append(&of, &json!(1), NOW)),
                refusal(mailbox.claim(&of, &ask(1, None), NOW)),
                refusal(mailbox.ack(&of, "ann", &lease, Seq(1), NOW)),
                refusal(mailbox.release(&of, "ann", &lease, NOW)),
                refusal(mailbox.renew(&of, "ann", &lease, 1, NOW)),
                refusal(mailbox.peek(&of, NOW)),
                refusal(mailbox.drop_box(&of, NOW)),
            ];
            assert_eq!(refusals, ["invalid_name"; 7], "{store}");
        }
        let alpha = common::at("alpha");
        for (ttl_ms, max, code) in [
            (0, None, "invalid_ttl"),
            (-1, None, "invalid_ttl"),
            (i64::MIN, None, "invalid_ttl"),
            (1, Some(0), "invalid_max"),
            (1, Some(i64::MIN), "invalid_max"),
        ] {
            assert_eq!(refusal(mailbox.claim(&alpha, &ask(ttl_ms, max), NOW)), code, "{store}");
        }
        let held = mailbox.claim(&alpha, &ask(1, Some(i64::MAX)), NOW).unwrap().unwrap();
        assert_eq!(refusal(mailbox.renew(&alpha, "ann", &held.lease, 0, NOW)), "invalid_ttl");
    });
}

#[test]
fn the_end_of_time_does_not_wrap_round() {
    each(|store, _, opened| {
        let mut handle = Handle(opened.store);
        handle.append("alpha", 1);
        let (mailbox, alpha) = (handle.mailbox(), common::at("alpha"));
        let for_ever =
            |owner: &str| ClaimAsk { owner: owner.to_owned(), ttl_ms: i64::MAX, max: None };
        let held = mailbox.claim(&alpha, &for_ever("ann"), NOW).unwrap().unwrap();
        let late = Millis((1 << 53) - 1);
        assert_eq!(mailbox.claim(&alpha, &for_ever("bob"), late), Ok(None), "{store}");
        mailbox.renew(&alpha, "ann", &held.lease, i64::MAX, late).unwrap();
        mailbox.reap(late).unwrap();
        assert_eq!(mailbox.ack(&alpha, "ann", &held.lease, Seq(u64::MAX), late), Ok(1), "{store}");
        // Beyond any date there is: no panic, no lease that ended before it began.
        mailbox.append(&alpha, &json!(2), Millis(u64::MAX)).unwrap();
        mailbox.claim(&alpha, &for_ever("ann"), Millis(u64::MAX - 1)).unwrap().unwrap();
        mailbox.reap(Millis(u64::MAX)).unwrap();
    });
}

#[test]
fn bodies_come_back_equal_numbers_and_deep_ones_too() {
    let deep = |levels: usize| {
        (1..levels).fold(
            json!([]),
            |inner, n| if n % 2 == 0 { json!([inner]) } else { json!({"k": inner}) },
        )
    };
    let bodies = [
        json!({}),
        json!([]),
        json!(""),
        Value::Null,
        json!(true),
        json!(false),
        json!(9_007_199_254_740_991_u64),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(-0.5),
        json!(1e-7),
        json!(0.1 + 0.2),
        json!(-0.0),
        json!(5e-324),
        json!(f64::MAX),
        json!(2.225_073_858_507_201e-308),
        json!("\0"),
        json!("\u{2028}\u{2029}\u{feff}"),
        json!("𝄞😀"),
        json!("e\u{301}\u{e9}"),
        json!({"__proto__": 1, "": {"a": null}}),
        json!({"append": {"of": ["a", "b"]}}),
        json!({"$serde_json::private::Number": "1", "$serde_json::private::RawValue": "{"}),
        json!("line\r\nbreak\n"),
        json!("x".repeat(1 << 20)),
        deep(64),
    ];
    each(|store, subject, opened| {
        let mut handle = Handle(opened.store);
        for body in &bodies {
            handle.append("alpha", body.clone());
        }
        for compacted in [false, true] {
            if compacted {
                handle.append("beta", 1);
                handle.drop_box("beta");
                handle.reap();
            }
            if let Some(location) = &opened.location {
                handle = Handle(subject.attach(location).unwrap());
            }
            let found = handle.peek("alpha");
            assert_eq!(found.len(), bodies.len());
            for ((_, found), body) in found.iter().zip(&bodies) {
                assert!(same(found, body), "{store}: {found} for {body}");
                // Beyond what the contract asks: integers stay integers, and -0.0 keeps its sign.
                assert_eq!(found.to_string(), body.to_string(), "{store}");
            }
        }
    });
    // In a thread with the main thread's stack: how deep a test's own may go is not the question.
    let deepest = std::thread::Builder::new().stack_size(8 << 20).spawn(move || {
        each(|store, subject, opened| {
            let body = deep(1_000);
            let mut handle = Handle(opened.store);
            handle.append("alpha", body.clone());
            if let Some(location) = &opened.location {
                handle = Handle(subject.attach(location).unwrap());
            }
            assert_eq!(handle.peek("alpha"), vec![(1, body)], "{store}");
            let deeper = deep(1_001);
            let refused = handle.mailbox().append(&common::at("alpha"), &deeper, NOW);
            assert_eq!(refusal(refused), "too_large", "{store}");
        });
    });
    deepest.unwrap().join().unwrap();
}

#[test]
fn the_model_and_the_stores_agree_on_what_is_declared() {
    let model =
        storeproof_contract::mailbox::mutant::model(World::new(Clockwork::Caller)).manifest();
    each(|store, subject, mut opened| {
        let manifest = subject.manifest();
        assert_eq!(manifest.subject.name, store);
        assert_eq!(manifest.capabilities.clock, model.capabilities.clock);
        assert_eq!(manifest.capabilities.durable, opened.location.is_some());
        assert_eq!(manifest.capabilities.tombstone, opened.store.tombstones().is_some());
    });
}
