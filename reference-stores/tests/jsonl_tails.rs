//! What a crash, an editor or a broken writer leaves in a log: the end is mended, anything else is loud.
//!
//! Names like B2-01 are entries of the project's log of public bug reports.
#![cfg(all(feature = "jsonl", feature = "memory"))]

mod common;

use common::{Fixture, Handle, at, breakdown, fixture, read, refusal, write};
use serde_json::{Value, json};

const BOXES: [&str; 2] = ["alpha", "alphabet"];

/// One record in the log each, in this order; every kind of record is among them.
fn script() -> Vec<fn(&mut Handle)> {
    fn claim_and_ack_one(handle: &mut Handle, owner: &str) {
        let delivery = handle.claim("alpha", owner).unwrap();
        handle.ack("alpha", owner, &delivery.lease, delivery.messages[0].seq.0);
    }
    vec![
        |h| {
            h.append("alpha", "one");
        },
        |h| {
            h.append("alpha", json!({"deep": [[["\u{2028}𝄞\n\0"]]], "x": -0.5e-7}));
        },
        |h| {
            h.append("alphabet", Value::Null);
        },
        |h| {
            h.append("alpha", "three");
        },
        |h| drop(h.claim("alphabet", "bob").unwrap()),
        |h| {
            let lease = h.claim("alphabet", "bob").unwrap().lease;
            h.mailbox().renew(&at("alphabet"), "bob", &lease, 90_000, common::NOW).unwrap();
        },
        |h| drop(h.claim("alpha", "ann").unwrap()),
        |h| claim_and_ack_one(h, "ann"),
        |h| drop(h.claim("alpha", "cid").unwrap()),
        |h| {
            let lease = h.claim("alpha", "cid").unwrap().lease;
            h.mailbox().release(&at("alpha"), "cid", &lease, common::NOW).unwrap();
        },
        |h| {
            h.drop_box("alphabet");
        },
        |h| {
            h.append("alphabet", "after the drop");
        },
    ]
}

/// All that can be seen of the boxes without changing them, and whether strangers are fenced off.
fn seen(handle: &mut Handle) -> Vec<(Vec<(u64, Value)>, bool)> {
    BOXES.map(|of| (handle.peek(of), handle.claim(of, "stranger").is_some())).to_vec()
}

/// What a store that lost nothing shows after the first `steps` steps.
fn expected(steps: usize) -> Vec<(Vec<(u64, Value)>, bool)> {
    let mut subject = storeproof_reference_stores::memory::subject();
    let mut handle = Handle(subject.open().unwrap().store);
    script()[..steps].iter().for_each(|step| step(&mut handle));
    seen(&mut handle)
}

#[test]
fn at_every_cut_what_is_whole_is_served_and_the_next_append_has_its_own_line() {
    let (mut f, mut first) = fixture("jsonl");
    let header = read(&f.log()).len();
    let mut ends = vec![header];
    for step in script() {
        step(&mut first);
        ends.push(read(&f.log()).len());
    }
    let whole = read(&f.log());
    assert!(ends.windows(2).all(|pair| pair[0] < pair[1]), "every step writes a record");
    for cut in 0..=whole.len() {
        write(&f.log(), &whole[..cut]);
        if cut < header - 1 {
            // A log gets its first line by rename, so no crash leaves less; an empty one is a loss.
            let message = breakdown(f.try_attach());
            assert!(message.contains("line 1, byte 0"), "cut {cut}: {message}");
            assert_eq!(read(&f.log()), &whole[..cut], "nothing is written over it");
            continue;
        }
        // A record that lacks only its newline is whole.
        let steps = ends.iter().filter(|end| **end - 1 <= cut).count() - 1;
        let mut handle = f.attach();
        assert_eq!(seen(&mut handle), expected(steps), "cut {cut}, {steps} steps");
        let seq = handle.append("fresh", json!({ "cut": cut }));
        assert_eq!(seq, 1);
        let log = read(&f.log());
        assert!(log.ends_with(b"\n"), "cut {cut}");
        for line in log.strip_suffix(b"\n").unwrap().split(|byte| *byte == b'\n') {
            assert!(serde_json::from_slice::<Value>(line).is_ok(), "cut {cut}");
        }
        assert_eq!(f.attach().peek("fresh"), vec![(1, json!({ "cut": cut }))]);
    }
}

/// A log of three appends to `alpha`, as its lines with their newlines.
fn three() -> (Fixture, Vec<Vec<u8>>) {
    let (f, mut handle) = fixture("jsonl");
    for body in ["one", "two", "three"] {
        handle.append("alpha", body);
    }
    let lines = read(&f.log()).split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    (f, lines)
}

fn bodies(handle: &mut Handle, of: &str) -> Vec<Value> {
    handle.peek(of).into_iter().map(|(_, body)| body).collect()
}

/// Line `n` (from 0) is changed and the log must be refused, naming that line and its first byte;
/// nothing may be written over it, not even by an append of a handle that was open before.
fn assert_loud(change: impl FnOnce(&mut Vec<Vec<u8>>), n: usize) {
    let (mut f, mut lines) = three();
    let mut warm = f.attach();
    change(&mut lines);
    let at_byte: usize = lines[..n].iter().map(Vec::len).sum();
    // A new file of that name, as editors and restored backups make it.
    let log = lines.concat();
    std::fs::remove_file(f.log()).unwrap();
    write(&f.log(), &log);
    let message = breakdown(f.try_attach());
    let place = format!("log.jsonl is corrupt at line {}, byte {at_byte}:", n + 1);
    assert!(message.contains(&place), "{message}");
    breakdown(warm.mailbox().peek(&at("alpha"), common::NOW));
    breakdown(warm.mailbox().append(&at("alpha"), &json!("more"), common::NOW));
    breakdown(warm.mailbox().reap(common::NOW));
    assert_eq!(read(&f.log()), log);
}

#[test]
fn a_line_cut_short_in_the_middle_is_loud_b1_01() {
    assert_loud(|lines| drop(lines[2].splice(10.., *b"\n")), 2);
}

#[test]
fn a_torn_start_with_the_whole_record_behind_it_is_loud_b2_05() {
    assert_loud(|lines| lines[2] = [&lines[2][..20], &lines[2]].concat(), 2);
}

#[test]
fn two_records_on_one_line_are_loud_b2_07() {
    assert_loud(|lines| assert_eq!(lines[1].pop(), Some(b'\n')), 1);
}

#[test]
fn padding_in_front_of_a_record_is_loud_b2_03() {
    assert_loud(|lines| lines[2] = [&[0; 64][..], &lines[2]].concat(), 2);
}

#[test]
fn bytes_that_are_no_utf8_are_loud_b2_09() {
    assert_loud(|lines| lines[2] = b"{\"drop\":\"\xE4\xB8\"}\n".to_vec(), 2);
}

#[test]
fn records_parted_by_a_lone_cr_are_one_bad_line_b2_16() {
    let join = |lines: &mut Vec<Vec<u8>>| {
        let last = lines[1].len() - 1;
        lines[1][last] = b'\r';
    };
    assert_loud(join, 1);
}

#[test]
fn records_out_of_sequence_are_loud() {
    assert_loud(|lines| lines.insert(2, lines[1].clone()), 2);
    assert_loud(|lines| lines.swap(2, 3), 3);
    let ack = br#"{"ack":{"of":["default","alpha"],"lease":1,"through":1}}"#;
    assert_loud(|lines| lines.insert(2, [ack, &b"\n"[..]].concat()), 2);
}

#[test]
fn a_record_of_an_unknown_kind_is_loud() {
    assert_loud(|lines| lines.insert(1, b"{\"erase\":{\"of\":[\"a\",\"b\"]}}\n".to_vec()), 1);
}

#[test]
fn an_end_that_no_write_of_ours_leaves_is_loud() {
    assert_loud(|lines| *lines[3].last_mut().unwrap() = b'x', 3);
    assert_loud(|lines| lines.push(b"null".to_vec()), 4);
}

#[test]
fn a_log_of_another_format_is_refused_by_its_number() {
    let (mut f, mut lines) = three();
    lines[0] = b"{\"storeproofJsonl\":2,\"storage\":\"x\",\"generation\":0,\"new\":1}\n".to_vec();
    write(&f.log(), &lines.concat());
    assert!(breakdown(f.try_attach()).contains("its format is 2, not 1"));
}

#[test]
fn an_empty_or_missing_log_is_no_fresh_store_b1_03() {
    let (mut f, _) = three();
    let mut warm = f.attach();
    write(&f.log(), b"");
    breakdown(f.try_attach());
    breakdown(warm.mailbox().append(&at("alpha"), &json!(1), common::NOW));
    std::fs::remove_file(f.log()).unwrap();
    breakdown(f.try_attach());
    breakdown(warm.mailbox().peek(&at("alpha"), common::NOW));
    assert!(!f.log().exists());
}

#[test]
fn a_torn_end_is_cut_and_the_next_record_has_its_own_line_b2_01() {
    for torn in [&b"{\"append\":{\"of\":[\"default\",\"al"[..], &[0; 64], b"{\"drop\"\0\0\0"] {
        let (mut f, lines) = three();
        let mut warm = f.attach();
        write(&f.log(), &[&lines.concat(), torn].concat());
        assert_eq!(warm.append("alpha", "four"), 4);
        let log = read(&f.log());
        assert!(log.starts_with(&lines.concat()));
        assert_eq!(bodies(&mut f.attach(), "alpha"), ["one", "two", "three", "four"]);
    }
}

#[test]
fn a_whole_record_without_its_newline_is_served_before_and_after_b2_02() {
    for padding in [&b""[..], &[0; 5]] {
        let (mut f, mut lines) = three();
        lines[3].pop();
        lines.push(padding.to_vec());
        write(&f.log(), &lines.concat());
        let mut handle = f.attach();
        assert_eq!(bodies(&mut handle, "alpha"), ["one", "two", "three"]);
        assert_eq!(handle.append("alpha", "four"), 4);
        assert_eq!(bodies(&mut f.attach(), "alpha"), ["one", "two", "three", "four"]);
    }
}

#[test]
fn byte_order_mark_crlf_and_blank_lines_are_nothing_b2_14_b2_15_b2_19() {
    let (mut f, lines) = three();
    let mut log = b"\xEF\xBB\xBF".to_vec();
    for line in &lines {
        log.extend([&line[..line.len() - 1], b"\r\n", b"\n", b"   \r\n"].concat());
    }
    write(&f.log(), &log);
    let mut handle = f.attach();
    assert_eq!(bodies(&mut handle, "alpha"), ["one", "two", "three"]);
    handle.ack_all("alpha");
    handle.reap();
    assert_eq!(f.attach().append("alpha", "four"), 4);
}

#[test]
fn separators_that_only_unicode_knows_part_nothing_b2_12() {
    let (mut f, mut handle) = fixture("jsonl");
    let odd = "a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\r\ng";
    handle.append(odd, odd);
    handle.append(odd, json!({ odd: odd }));
    assert_eq!(bodies(&mut f.attach(), odd), [json!(odd), json!({ odd: odd })]);
    let raw = String::from_utf8(read(&f.log())).unwrap();
    assert!(raw.contains('\u{2028}'), "it is kept raw, so splitting really had the chance to fail");
}

#[test]
fn a_giant_line_and_what_stands_behind_it_are_served_b2_11_b2_17() {
    let (mut f, mut handle) = fixture("jsonl");
    let giant = "𝄞z".repeat(1_000_000);
    handle.append("alpha", giant.as_str());
    handle.append("alpha", "behind");
    assert_eq!(bodies(&mut f.attach(), "alpha"), [json!(giant), json!("behind")]);
}

#[test]
fn an_old_copy_put_in_place_of_the_log_is_loud() {
    let (mut f, lines) = three();
    let mut handle = f.attach();
    handle.ack_all("alpha");
    handle.reap();
    handle.append("alpha", "four");
    let old = f.root.join("old");
    write(&old, &lines.concat());
    std::fs::rename(&old, f.log()).unwrap();
    let answer = handle.mailbox().append(&at("alpha"), &json!("five"), common::NOW);
    assert!(breakdown(answer).contains("generation 0 came back"));
}

#[test]
fn what_a_killed_compaction_left_is_no_log() {
    let (mut f, _) = three();
    write(&f.root.join("log.jsonl.new"), b"{\"half");
    let mut handle = f.attach();
    assert_eq!(bodies(&mut handle, "alpha"), ["one", "two", "three"]);
    handle.ack_all("alpha");
    handle.reap();
    assert!(!f.root.join("log.jsonl.new").exists());
    assert_eq!(f.attach().append("alpha", "four"), 4);
}

#[test]
fn what_the_lock_file_says_means_nothing_b3_14() {
    let (mut f, _) = three();
    write(&f.root.join("lock"), b"1\n");
    assert_eq!(f.attach().append("alpha", "four"), 4);
}

#[test]
fn a_second_lock_file_makes_no_second_owner_b3_16() {
    let (mut f, _) = three();
    let mut old = f.attach();
    std::fs::remove_file(f.root.join("lock")).unwrap();
    breakdown(f.try_attach());
    write(&f.root.join("lock"), b"");
    let mut new = f.attach();
    new.append("alpha", "four");
    breakdown(old.mailbox().append(&at("alpha"), &json!("five"), common::NOW));
    assert_eq!(bodies(&mut new, "alpha").len(), 4);
}

#[test]
fn a_held_lock_is_waited_for_however_old_it_is_b3_15() {
    let (mut f, _) = three();
    let mut waiting = f.attach();
    let lock = std::fs::File::open(f.root.join("lock")).unwrap();
    lock.lock().unwrap();
    let (answered, answer) = std::sync::mpsc::channel();
    let waiter = std::thread::spawn(move || answered.send(waiting.append("alpha", "four")));
    let early = answer.recv_timeout(std::time::Duration::from_millis(100));
    assert!(early.is_err(), "it answered while another held the lock");
    lock.unlock().unwrap();
    assert_eq!(answer.recv(), Ok(4));
    waiter.join().unwrap().unwrap();
}

#[test]
fn a_refused_body_leaves_nothing_behind() {
    let (mut f, _) = three();
    let mut handle = f.attach();
    let before = read(&f.log());
    let deep = (0..1_001).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(refusal(handle.mailbox().append(&at("alpha"), &deep, common::NOW)), "too_large");
    assert_eq!(read(&f.log()), before);
}
