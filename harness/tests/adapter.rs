//! Children that misbehave in every way we know of: each ends in the right fault, in time, and leaves
//! no process behind. The children are `children/misbehave.py MODE`.
#![cfg(target_os = "linux")]

#[path = "children/stage.rs"]
mod stage;
mod support;

use serde_json::json;
use stage::{
    LONG, SHORT, Stage, alive, append, append_faults, children, fault, result, says,
    zombies_of_ours,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use storeproof::adapter::{
    ProcessBackend, RESTARTS_FAILED_MAX, RunSpace, Session, Stand, StartError, on_deep_stack,
};
use storeproof_contract::backend::{Backend, Side};
use storeproof_contract::call::{Answer, FaultKind};
use support::has;

#[test]
fn a_child_that_hangs_is_ended_at_each_deadline() {
    if !has("python3") {
        return;
    }
    let mut stage = Stage::new("hang_initialize");
    stage.launch.timing.startup = SHORT;
    let first = stage.handshake_fault();
    says(&first, FaultKind::Deadline, &["initialize (call 1): no reply within 500ms", "start-up"]);
    stage.over(());

    let stage = Stage::short("hang_open");
    let mut session = stage.session();
    let first = fault(session.call("store/open", &json!({})));
    says(&first, FaultKind::Deadline, &["store/open", "the call deadline", "opening for ever"]);
    stage.over(session);

    append_faults(Stage::short("hang_call"), FaultKind::Deadline, &["no reply within 500ms"]);

    for (mode, note) in [("hang_shutdown", "killed at shutdown"), ("stays_after_shutdown", "exit")]
    {
        let mut stage = Stage::new(mode);
        stage.launch.timing.grace = SHORT;
        let notes = stage.session().finish();
        assert!(notes.len() == 1 && notes[0].contains(note), "{notes:?}");
        stage.over(());
    }
}

#[test]
fn a_clause_has_a_deadline_of_its_own_that_waiting_does_not_use_up() {
    if !has("python3") {
        return;
    }
    let stage = Stage::new("hang_call");
    let mut session = stage.session();
    session.begin_clause(SHORT);
    let until = stage.launch.space.clock().now_ms() + 700;
    session.wait_until(until).expect("the wait");
    assert!(stage.launch.space.clock().now_ms() >= until);
    result(session.call("store/open", &json!({})));
    says(&fault(append(&mut session)), FaultKind::Deadline, &["the clause deadline"]);
    stage.over(session);
}

#[test]
fn a_child_that_shuts_down_is_not_killed() {
    if !has("python3") {
        return;
    }
    for mode in ["echo", "no_shutdown"] {
        let stage = Stage::new(mode);
        assert_eq!(stage.session().finish(), Vec::<String>::new());
        stage.over(());
    }
}

#[test]
fn an_exit_before_the_handshake_is_told_at_once_with_its_reason() {
    if !has("python3") {
        return;
    }
    let cases: [(&str, &[&str]); 3] = [
        ("exit_0", &["exited with status 0 before the handshake", "nothing on stderr"]),
        ("exit_3", &["exited with status 3 before the handshake", "no such driver"]),
        ("killed_at_start", &["signal 9 (SIGKILL) before the handshake"]),
    ];
    for (mode, words) in cases {
        let stage = Stage::new(mode);
        says(&stage.handshake_fault(), FaultKind::Died, words);
        assert!(stage.started.elapsed() < LONG, "the exit was waited out");
        stage.over(());
    }
}

#[test]
fn a_death_in_a_call_is_told_with_status_and_last_words() {
    if !has("python3") {
        return;
    }
    let died = FaultKind::Died;
    append_faults(Stage::new("killed_in_call"), died, &["signal 11 (SIGSEGV)", "about to fall"]);
    append_faults(Stage::new("half_then_exit"), died, &["status 1", "half a line", r#","res"#]);
    append_faults(Stage::new("cut_utf8_at_exit"), died, &["status 0", "last \u{fffd}"]);
    let words = ["status 6", "the last 65536 of 300015 bytes, 234479 cut", "the last word"];
    append_faults(Stage::new("stderr_then_exit"), died, &words);
    append_faults(Stage::new("exits_under_a_sleeper"), died, &["status 4", "holds the pipes"]);
    append_faults(Stage::new("closes_stdout"), died, &["closed its stdout", "it was killed"]);
}

#[test]
fn a_reply_before_the_death_still_counts() {
    if !has("python3") {
        return;
    }
    let stage = Stage::new("answers_then_exits");
    let mut session = stage.session();
    assert_eq!(result(append(&mut session)), json!({ "seq": 1 }));
    says(&fault(append(&mut session)), FaultKind::Died, &["call 3", "status 5"]);
    stage.over(session);
}

#[test]
fn what_is_no_message_is_shown() {
    if !has("python3") {
        return;
    }
    let bad = FaultKind::BadLine;
    for (mode, word) in [("banner", "`store ready v1.2`"), ("garbage", r"\u{1}{{{\u{1b}[31m`")] {
        let stage = Stage::new(mode);
        let first = stage.handshake_fault();
        says(&first, bad, &["initialize (call 1): stdout line 1: the line is not JSON", word]);
        stage.over(());
    }
    let words = ["stdout line 2: the line is not JSON", "at byte 0", "`debug: handled 2`"];
    append_faults(Stage::new("log_line"), bad, &words);
    append_faults(Stage::new("not_utf8"), bad, &["not UTF-8: byte 0xff at offset 39", r#"\xff"#]);
    append_faults(Stage::new("deep_1101"), bad, &["deeper than 1100 levels at byte 1132", "`{\""]);
    append_faults(Stage::new("deep_100000"), bad, &["deeper than 1100 levels"]);
    append_faults(Stage::new("batch"), bad, &["an array: the protocol has no batches", "`[{"]);
    append_faults(Stage::new("null"), bad, &["it is null: `null`"]);
    append_faults(Stage::new("string"), bad, &["it is a string"]);
    append_faults(Stage::new("number"), bad, &["it is a number"]);
    append_faults(Stage::new("two_on_a_line"), bad, &["trailing characters"]);
    let words = ["no reply within 500ms", "half a line was on its stdout", r#","res"#];
    append_faults(Stage::short("half_then_hang"), FaultKind::Deadline, &words);
}

#[test]
fn what_is_no_proper_reply_is_shown() {
    if !has("python3") {
        return;
    }
    for (mode, words) in [
        ("empty", "neither `id` nor `method`|`{}`"),
        ("id_alone", "neither `result` nor `error`|`{\"jsonrpc\":\"2.0\",\"id\":2}`"),
        ("no_id", "neither `id` nor `method`"),
        ("id_null", "whose `id` is null|parse error"),
        ("id_string", "whose `id` is a string"),
        ("id_fraction", "whose `id` is not an integer"),
        ("id_wrong", "the unknown id 92, which was never sent"),
        ("no_jsonrpc", "without `jsonrpc`"),
        ("jsonrpc_1", "without `jsonrpc`: \"2.0\""),
        ("both", "both `result` and `error`"),
        ("result_twice", "names a member twice (duplicate field `result`)"),
        ("error_string", "`error` is not an object"),
        ("error_code_string", "`error.code` is not an integer"),
        ("error_code_fraction", "`error.code` is not an integer"),
        ("error_no_message", "`error.message` is not a string"),
        ("request", "a request from the child|roots/list"),
    ] {
        let words: Vec<&str> = words.split('|').collect();
        append_faults(Stage::new(mode), FaultKind::BadReply, &words);
    }
}

#[test]
fn a_second_reply_is_no_reply_to_the_next_call() {
    if !has("python3") {
        return;
    }
    for (mode, words) in [
        ("repeated", ["a repeated reply: call 2 was answered before", "`{"]),
        ("early", ["the unknown id 3, which was never sent", "\"seq\":2"]),
    ] {
        let stage = Stage::new(mode);
        let mut session = stage.session();
        assert_eq!(result(append(&mut session)), json!({ "seq": 1 }));
        says(&fault(append(&mut session)), FaultKind::BadReply, &words);
        stage.over(session);
    }
}

#[test]
fn a_late_reply_never_reaches_the_next_call() {
    if !has("python3") {
        return;
    }
    let stage = Stage::short("late");
    let mut backend = ProcessBackend::start(stage.launch.clone()).expect("a start");
    let first = fault(backend.call(Side::HERE, "mailbox/append", &json!({})));
    says(&first, FaultKind::Deadline, &["no reply within 500ms"]);
    backend.renew().expect("a new child");
    std::thread::sleep(Duration::from_millis(900));
    assert_eq!(
        result(backend.call(Side::HERE, "store/open", &json!({}))),
        json!({ "store": "s1" })
    );
    stage.over(backend);
}

#[test]
fn a_flood_ends_at_the_limit_or_the_deadline() {
    if !has("python3") {
        return;
    }
    let limit = ["bytes so far, over the limit of 8388608: `xxx"];
    append_faults(Stage::new("long_line"), FaultKind::BadLine, &limit);
    let limit = ["over the limit of 8388608: `spamspam"];
    append_faults(Stage::new("flood"), FaultKind::BadLine, &limit);
    append_faults(Stage::new("flood_of_lines"), FaultKind::BadLine, &["not JSON", "`spam`"]);
    append_faults(Stage::short("flood_of_blank_lines"), FaultKind::Deadline, &["no reply"]);

    let stage = Stage::short("flood_of_notifications");
    let mut session = stage.session();
    says(&fault(append(&mut session)), FaultKind::Deadline, &["no reply"]);
    let notes = session.take_notes();
    assert_eq!(notes.len(), 101, "kept in bounds");
    assert!(notes[100].ends_with("notes more"), "{}", notes[100]);
    stage.over(session);
}

#[test]
fn stderr_is_drained_whatever_else_goes_on() {
    if !has("python3") {
        return;
    }
    let stage = Stage::new("stderr_50_mb");
    let mut session = stage.session();
    assert_eq!(result(append(&mut session)), json!({ "seq": 1 }));
    let notes = session.finish();
    assert!(notes.is_empty(), "{notes:?}");
    stage.over(());
}

#[test]
fn a_child_that_does_not_read_blocks_nothing() {
    if !has("python3") {
        return;
    }
    let big = json!({ "body": "b".repeat(8 * 1024 * 1024) });
    for (mode, kind, words) in [
        ("reads_nothing_then_exit_7", FaultKind::Died, "status 7|it took only|config missing"),
        ("reads_half_then_exit_3", FaultKind::Died, "status 3|it took only|unsupported op"),
        ("never_reads", FaultKind::Deadline, "no reply within 500ms|it took only"),
    ] {
        let stage = if kind == FaultKind::Died { Stage::new(mode) } else { Stage::short(mode) };
        let mut session = stage.session();
        result(session.call("store/open", &json!({})));
        let words: Vec<&str> = words.split('|').collect();
        says(&fault(session.call("mailbox/append", &big)), kind, &words);
        stage.over(session);
    }
    // Both sides write more than a pipe holds before either reads.
    let stage = Stage::new("talks_before_it_reads");
    let mut session = stage.session();
    result(session.call("store/open", &json!({})));
    result(session.call("mailbox/append", &big));
    stage.over(session);
}

#[test]
fn no_descendant_outlives_the_child() {
    if !has("python3") {
        return;
    }
    for mode in ["grandchild", "grandchild_setsid", "orphan_setsid", "grandchild_bare"] {
        let stage = Stage::short(mode);
        let mut session = stage.session();
        result(session.call("store/open", &json!({})));
        // In the middle of an exec a process shows no environment.
        let until = Instant::now() + LONG;
        while alive(&stage.tag).len() < 2 {
            assert!(Instant::now() < until, "{mode}: the grandchild never was");
        }
        let asked = Instant::now();
        says(&fault(append(&mut session)), FaultKind::Deadline, &["no reply within 500ms"]);
        assert!(asked.elapsed() < Duration::from_secs(5), "{mode}: held up by the grandchild");
        assert_eq!(alive(&stage.tag), Vec::<String>::new(), "{mode}");
        stage.over(session);

        let stage = Stage::new(mode);
        let mut session = stage.session();
        result(session.call("store/open", &json!({})));
        stage.over(session);
    }
    append_faults(Stage::short("sigterm_ignored"), FaultKind::Deadline, &["no reply"]);
}

#[test]
fn handshakes_are_judged() {
    if !has("python3") {
        return;
    }
    for (mode, what, theirs, ours) in
        [("protocol_2", "protocol", "2.0", "1"), ("kit_2", "kit", "2.1", "1.0")]
    {
        let stage = Stage::new(mode);
        let error = stage.start_error();
        assert_eq!(error, StartError::WrongMajor { what, theirs: theirs.into(), ours });
        assert!(error.to_string().contains(theirs) && error.to_string().contains(ours));
        stage.over(());
    }
    for (mode, kind, word) in [
        ("kit_word", FaultKind::BadForm, "`kit` is no version"),
        ("no_manifest", FaultKind::BadForm, "invalid type"),
        ("handshake_error", FaultKind::Errored, "no db"),
    ] {
        let stage = Stage::new(mode);
        says(&stage.handshake_fault(), kind, &[word]);
        stage.over(());
    }
    let stage = Stage::new("kit_minor");
    let notes = stage.session().take_notes();
    assert!(notes.len() == 1 && notes[0].contains("kit 1.7, this bench kit 1.0"), "{notes:?}");
    stage.over(());

    let stage = Stage::new("echoes_handshake");
    let manifest = stage.session().manifest().clone();
    let asked = &manifest.server.expect("server")["asked"];
    assert_eq!(asked["protocol"], json!("1"));
    assert_eq!(asked["kit"], json!("1.0"));
    assert_eq!(asked["harness"]["name"], json!("storeproof"));
    assert_eq!(asked["run"], json!({ "seed": 42 }));
    assert!(manifest.capabilities.mailbox);
    stage.over(());
}

#[test]
fn what_cannot_be_started_is_no_fault_of_a_child() {
    if !has("python3") {
        return;
    }
    let there = |name: &str| children().join(name).into_os_string();
    for program in ["no-such-program-1f2e".into(), there("not_executable.txt"), there("no_format")]
    {
        let mut stage = Stage::new("echo");
        stage.launch.program.clone_from(&program);
        let error = stage.start_error();
        assert!(matches!(error, StartError::NotStartable { .. }), "{error}");
        assert!(error.to_string().contains(&*program.to_string_lossy()), "{error}");
        stage.over(());
    }
}

#[test]
fn unusual_is_not_wrong() {
    if !has("python3") {
        return;
    }
    let stage = Stage::new("slow_start");
    let mut session = stage.session();
    result(append(&mut session));
    stage.over(session);

    let stage = Stage::new("notifies");
    let mut session = stage.session();
    assert_eq!(result(append(&mut session)), json!({ "seq": 1 }));
    let notes = session.take_notes();
    assert!(notes.len() == 1 && notes[0].contains("log/message"), "{notes:?}");
    stage.over(session);

    let stage = Stage::new("crlf");
    let mut session = stage.session();
    for _ in 0..2 {
        assert_eq!(result(append(&mut session)), json!({ "body": "a\r\nb" }));
    }
    stage.over(session);

    let stage = Stage::new("byte_by_byte");
    assert_eq!(result(append(&mut stage.session())), json!({ "body": "读—🙂é" }));
    stage.over(());

    let stage = Stage::new("large");
    let mut session = stage.session();
    for bytes in [65_537, 1_048_577, 4_194_304] {
        let answer = session.call("mailbox/append", &json!({ "bytes": bytes }));
        assert_eq!(result(answer)["pad"].as_str().map(str::len), Some(bytes));
    }
    stage.over(session);

    let stage = Stage::new("refuses");
    match append(&mut stage.session()) {
        Answer::Error(error) => assert_eq!((error.code, error.reason()), (-32001, "invalid_name")),
        answer @ (Answer::Result(_) | Answer::Fault(_)) => panic!("{answer:?}"),
    }
    stage.over(());

    let stage = Stage::new("deep_1100");
    let passed = on_deep_stack(|| matches!(append(&mut stage.session()), Answer::Result(_)));
    assert!(passed.expect("a thread"));
    stage.over(());
}

#[test]
fn after_a_crash_a_new_child_serves_the_next_clause() {
    if !has("python3") {
        return;
    }
    let stage = Stage::new("crashes");
    let mut backend = ProcessBackend::start(stage.launch.clone()).expect("a start");
    let pid = backend.session().expect("a session").pid();
    let crash = fault(backend.call(Side::HERE, "mailbox/append", &json!({ "crash": true })));
    says(&crash, FaultKind::Died, &["status 9"]);
    assert_eq!(
        fault(backend.call(Side::HERE, "mailbox/append", &json!({}))),
        crash,
        "the clause ends"
    );
    backend.renew().expect("a new child");
    backend.begin_clause(LONG);
    assert_eq!(result(backend.call(Side::HERE, "mailbox/append", &json!({}))), json!({ "seq": 1 }));
    let again = backend.session().expect("a session").pid();
    assert_ne!(pid, again);
    backend.renew().expect("nothing to do");
    assert_eq!(backend.session().expect("a session").pid(), again, "a living child stays");
    backend.finish();
    assert_eq!(backend.take_notes(), Vec::<String>::new());
    stage.over(backend);
}

#[test]
fn restarts_that_fail_are_given_up() {
    if !has("python3") {
        return;
    }
    let stage = Stage::new("starts_once");
    let mut backend = ProcessBackend::start(stage.launch.clone()).expect("a start");
    backend.kill_own();
    for _ in 0..RESTARTS_FAILED_MAX {
        let fault = backend.renew().expect_err("no second start");
        says(&fault, FaultKind::Died, &["did not start again", "already started once"]);
    }
    let fault = backend.renew().expect_err("given up");
    says(&fault, FaultKind::Died, &["can no longer be started", "already started once"]);
    stage.over(backend);

    let stage = Stage::new("other_manifest_each_time");
    let mut backend = ProcessBackend::start(stage.launch.clone()).expect("a start");
    backend.kill_own();
    let fault = backend.renew().expect_err("another manifest");
    says(&fault, FaultKind::BadReply, &["declares something else: `limits` was"]);
    stage.over(backend);
}

#[test]
fn an_interruption_ends_a_call_and_a_wait() {
    if !has("python3") {
        return;
    }
    let stage = Stage::new("hang_call");
    let flag = Arc::new(AtomicBool::new(false));
    let mut launch = stage.launch.clone();
    launch.space = RunSpace::create(Arc::clone(&flag)).expect("scratch folder");
    let mut session = Session::start(&launch).expect("a start");
    let soon = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        flag.store(true, Ordering::Relaxed);
    });
    says(&fault(append(&mut session)), FaultKind::Interrupted, &["interrupted"]);
    let waited = session.wait_until(launch.space.clock().now_ms() + 60_000);
    says(&waited.expect_err("interrupted"), FaultKind::Interrupted, &["interrupted"]);
    soon.join().expect("the flag");
    stage.over((session, launch));
}

#[test]
fn each_child_has_its_own_folder_and_the_benchs_place() {
    if !has("python3") {
        return;
    }
    let stage = Stage::new("locked_folder");
    let (mut one, mut two) = (stage.session(), stage.session());
    let seen = result(one.call("store/open", &json!({})));
    assert_eq!(seen["tmp"], json!(one.folder().to_string_lossy()));
    assert_eq!(seen["cwd"], json!(std::env::current_dir().expect("cwd").to_string_lossy()));
    assert_ne!(seen["tmp"], result(two.call("store/open", &json!({})))["tmp"]);
    assert!(one.folder().starts_with(stage.launch.space.folder()));
    // Removed with all they hold, though the child has locked a folder.
    stage.over((one, two));
}

#[test]
fn no_zombie_is_left() {
    if !has("python3") {
        return;
    }
    let stage = Stage::new("echo");
    for _ in 0..3 {
        drop(stage.session());
    }
    // Other tests' children may be between death and reaping; they do not stay there.
    let until = Instant::now() + LONG;
    while zombies_of_ours() > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(zombies_of_ours(), 0);
    stage.over(());
}
