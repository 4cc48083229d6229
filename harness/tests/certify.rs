//! The built binary end to end: exit statuses, outcomes, patterns, expectations, shards, reports.

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use storeproof_contract::suite::{clauses, mutants};
use storeproof_reference_stores::bundled;
use support::{certify, example, has, has_server, storeproof, text};

const NO_ESCAPE: &str = "mailbox/tenancy/no-escape";

#[test]
fn a_bundled_store_has_equal_verdicts_in_process_and_through_serve() {
    for store in ["memory", "jsonl", "sqlite", "postgres", "redis"] {
        let server = bundled(store).and_then(|store| store.url_variable);
        if !server.is_none_or(has_server) {
            continue;
        }
        // A server syncs a real disk for each of keys-injective's thousands of calls.
        let suite = if server.is_some() { "mailbox/core" } else { "**" };
        let serve = ["--suite", suite, "--", env!("CARGO_BIN_EXE_storeproof"), "serve", store];
        let (local, served) = (certify(&[store, "--suite", suite]), certify(&serve));
        assert_eq!((local.status, served.status), (0, 0), "{}{}", local.stdout, served.stdout);
        assert_eq!(local.outcomes(), served.outcomes(), "{store}");
        assert_eq!(local.json["mounts"], served.json["mounts"], "{store}");
        assert_eq!(local.json["subject"], served.json["subject"], "{store}");
    }
}

#[test]
fn a_store_without_its_server_is_refused_before_anything_runs() {
    for (store, variable) in
        [("postgres", "STOREPROOF_POSTGRES_URL"), ("redis", "STOREPROOF_REDIS_URL")]
    {
        let absent = format!("{store}://user:secret@127.0.0.1:1/");
        for (command, url) in [
            (&["certify", store][..], None),
            (&["serve", store], None),
            (&["certify", store, "--url", &absent], None),
            (&["serve", store, "--url", &absent], None),
            (&["certify", store], Some(&absent)),
        ] {
            let mut run = storeproof(command);
            run.env_remove(variable).envs(url.map(|url| (variable, url)));
            let output = run.output().expect("the binary");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{said}");
            assert!(said.contains(variable) && said.contains("scripts/services start"), "{said}");
            assert!(!said.contains("secret"), "{said}");
        }
    }
    for args in [&["sqlite", "--url", "x"][..], &["--url", "x", "--", "true"]] {
        assert_eq!(certify(args).status, 2);
    }
}

#[test]
fn a_replay_line_names_the_variable_and_not_the_url() {
    let variable = "STOREPROOF_REDIS_URL";
    if !has_server(variable) {
        return;
    }
    let url = std::env::var(variable).expect("a URL");
    // Kept whole, so that each row has its replay line: none of these clauses fails.
    let expect = tempfile::NamedTempFile::new().expect("a file");
    let known = "[[expect]]\nclause = \"mailbox/core/fifo\"\nreason = \"to see its line\"\n";
    std::fs::write(expect.path(), known).expect("written");
    let path = expect.path().to_string_lossy().into_owned();
    let run =
        certify(&["redis", "--url", &url, "--clause", "mailbox/core/fifo", "--expect", &path]);
    assert_eq!(run.ids("unexpected-pass"), ["mailbox/core/fifo"], "{}", run.stderr);
    let shown = format!("{}{}{}", run.json, run.stdout, run.stderr);
    assert!(run.stdout.contains("certify redis --url \"$STOREPROOF_REDIS_URL\""), "{shown}");
    assert!(!shown.contains(&url), "the report holds the URL");
}

#[test]
fn every_mutant_fails_its_own_clause_over_the_wire() {
    let wrong_store = example("wrong_store");
    // One child a mutant: the first of each clause, so that every clause kills over a real pipe too.
    for (suite, clause) in clauses() {
        let (id, mutant) = (suite.clause_id(clause), clause.mutants[0].name);
        if id == NO_ESCAPE {
            continue; // its mutants only pretend to write; a store that does write has its own test
        }
        // Only a store that answers nothing any more waits for the deadline.
        let timeout = if clause.slug == "not-blocked-by-the-dead" { "1s" } else { "10s" };
        let args = ["--timeout", timeout, "--clause", &id, "--", &wrong_store, mutant];
        let run = certify(&args);
        assert_eq!((run.status, run.ids("fail")), (1, vec![id]), "{mutant}: {}", run.stdout);
    }
}

#[test]
fn a_store_that_writes_outside_its_root_fails_no_escape() {
    if !has("python3") {
        return;
    }
    let run =
        certify(&["--clause", NO_ESCAPE, "--", "python3", "harness/tests/children/escapes.py"]);
    assert_eq!((run.status, run.ids("fail")), (1, vec![NO_ESCAPE.to_owned()]), "{}", run.stdout);
}

#[test]
fn a_failure_tells_its_story() {
    let wrong_store = example("wrong_store");
    let id = "mailbox/core/claim-fences";
    let run = certify(&["--clause", id, "--seed", "7", "--", &wrong_store, "no-fence"]);
    assert_eq!(run.status, 1);
    let row = run.row(id);
    let message = text(&row["message"]);
    assert!(message.contains("promised: ") && message.contains("seen: "), "{message}");
    let steps = row["steps"].as_array().expect("steps");
    let numbers: Vec<_> = steps.iter().map(|step| step["n"].as_u64().expect("n")).collect();
    assert_eq!(numbers, (1..=steps.len() as u64).collect::<Vec<_>>());
    assert_eq!(steps[0]["call"], "store/open");
    for step in steps {
        assert!(step["params"].is_object() && step["answer"].is_object(), "{step}");
    }
    let replay = text(&row["replay"]);
    assert!(
        replay.starts_with("storeproof certify --clause mailbox/core/claim-fences --seed 7 -- "),
        "{replay}"
    );
    for part in [&message[..40], "mailbox/claim", &replay] {
        let words: Vec<&str> = part.split_whitespace().collect();
        assert!(words.iter().all(|word| run.stdout.contains(word)), "{part:?} in {}", run.stdout);
    }
}

#[test]
fn what_is_found_before_the_run_is_exit_2_and_nothing_runs() {
    let wrong_store = example("wrong_store");
    let cases: &[&[&str]] = &[
        &[],
        &["no-such-store"],
        &["memory", "--suite", "mailbox/cor"],
        &["memory", "--clause", "mailbox/core/fif"],
        &["memory", "--suite", "mailbox/core", "--clause", "mailbox/tenancy"],
        &["memory", "--suite", "mailbox/tombstone"],
        &["memory", "--kit", "2.0"],
        &["memory", "--shard", "4/3"],
        &["memory", "--jobs", "0"],
        &["memory", "--timeout", "5"],
        &["memory", "--seed", "9007199254740992"],
        &["memory", "--expect", "no-such-file.toml"],
        &["memory", "--junit", "no/such/folder/report.xml"],
        &["--", "./no-such-program"],
        &["memory", "--", &wrong_store, "model"],
    ];
    for args in cases {
        let run = certify(args);
        assert_eq!(run.status, 2, "{args:?}: {}", run.stdout);
        assert!(!run.stderr.is_empty(), "{args:?} says nothing");
        let judged = run.json["summary"]["pass"].as_u64().unwrap_or(0);
        assert_eq!(judged, 0, "{args:?} judged something");
    }
}

#[test]
fn what_no_reader_would_get_through_is_cut_in_the_report() {
    if !has("python3") {
        return;
    }
    let child = "harness/tests/children/odd_answers.py";
    for (mode, outcome) in
        [("deep", "error"), ("long", "error"), ("twice-at-the-end", "error"), ("chatty", "pass")]
    {
        let run =
            certify(&["--clause", "mailbox/core/empty-claim-null", "--", "python3", child, mode]);
        let row = run.row("mailbox/core/empty-claim-null");
        assert_eq!(row["outcome"], outcome, "{mode}: {row}");
        assert!(row.to_string().len() < 200_000, "{mode}: {} bytes", row.to_string().len());
        let advisories = row["advisories"].as_array().map_or(0, Vec::len);
        assert!(advisories <= 4, "{mode}: {row}");
    }
}

#[test]
fn limits_out_of_bounds_end_the_run_as_errors() {
    if !has("python3") {
        return;
    }
    let child = ["python3", "harness/tests/children/odd_answers.py", "granularity"];
    let run = certify(&[&["--"][..], &child].concat());
    assert_eq!(run.status, 3, "{}", run.stdout);
    assert_eq!(run.ids("error").len(), clauses().count());
    assert!(run.stdout.contains("leaseGranularityMs"), "{}", run.stdout);
}

#[test]
fn a_refused_mount_runs_nothing_and_leaves_no_green_report() {
    if !has("python3") {
        return;
    }
    let child = ["python3", "harness/tests/children/odd_answers.py", "tombstone-alone"];
    let run = certify(&[&["--"][..], &child].concat());
    assert_eq!(run.status, 2, "{}", run.stdout);
    assert!(run.stderr.contains("tombstone without tenancy"), "{}", run.stderr);
    assert_eq!(run.ids("error").len(), 12, "the refused suite's rows");
    assert!(run.ids("pass").is_empty() && run.ids("fail").is_empty());
}

#[test]
fn a_run_that_judges_nothing_is_not_green() {
    // Through a wider pattern the suite is not-declared, so nothing is judged.
    let run = certify(&["memory", "--clause", "mailbox/tombstone/**"]);
    assert_eq!(run.status, 2, "{}", run.stdout);
    assert_eq!(run.json["summary"]["not-declared"], 12);
}

#[test]
fn every_clause_has_a_row_in_every_report() {
    for args in [
        &["memory"][..],
        &["memory", "--clause", "mailbox/core/fifo"],
        &["memory", "--shard", "1/2"],
    ] {
        let run = certify(args);
        assert_eq!(run.outcomes().len(), clauses().count(), "{args:?}");
        let summary = run.json["summary"].as_object().expect("a summary");
        let counted: u64 = summary.values().map(|n| n.as_u64().expect("a count")).sum();
        assert_eq!(counted, clauses().count() as u64);
        assert_eq!(summary.len(), 9, "every outcome word is there, zeros too");
    }
}

#[test]
fn shards_add_up_to_the_whole() {
    let whole = certify(&["memory"]).outcomes();
    let mut joined: BTreeMap<String, String> = BTreeMap::new();
    for shard in ["1/3", "2/3", "3/3"] {
        let run = certify(&["memory", "--shard", shard]);
        assert_eq!((run.status, text(&run.json["run"]["shard"])), (0, shard.to_owned()));
        for (id, outcome) in run.outcomes() {
            if outcome != "not-run" {
                let before = joined.insert(id.clone(), outcome);
                assert!(before.is_none_or(|before| before == "not-declared"), "{id} ran twice");
            }
        }
    }
    assert_eq!(joined, whole);
}

#[test]
fn expectations_need_a_failure_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("expect.toml");
    let path = file.to_string_lossy().into_owned();
    let wrong_store = example("wrong_store");
    let expect = |clause: &str| {
        let text = format!(
            "[[expect]]\nclause = \"{clause}\"\nreason = \"known\"\nissue = \"example#1\"\n"
        );
        std::fs::write(&file, text).expect("the file");
    };
    let fences = "mailbox/core/claim-fences";
    let narrow = ["--clause", fences, "--expect", &path];

    expect(fences);
    let met =
        certify(&[&narrow[..], &["--", &wrong_store, "max-slips-through-the-fence"]].concat());
    assert_eq!(
        (met.status, met.ids("expected-fail")),
        (0, vec![fences.to_owned()]),
        "{}",
        met.stdout
    );
    assert!(text(&met.row(fences)["message"]).contains("known (example#1)"));

    let passed = certify(&[&narrow[..], &["--", &wrong_store, "model"]].concat());
    assert_eq!((passed.status, passed.ids("unexpected-pass")), (2, vec![fences.to_owned()]));

    if has("python3") {
        let dies = ["--", "python3", "-c", "import sys; sys.exit(3)"];
        let unjudged = certify(&[&narrow[..], &dies[..]].concat());
        assert_eq!((unjudged.status, unjudged.ids("error")), (3, vec![fences.to_owned()]));
    }

    expect("mailbox/core/no-such-clause");
    assert_eq!(certify(&["memory", "--expect", &path]).status, 2);
}

#[test]
fn a_seed_decides_the_run() {
    let wrong_store = example("wrong_store");
    let steps = |seed: &str| {
        let id = "mailbox/tenancy/keys-injective";
        let run = certify(&["--clause", id, "--seed", seed, "--", &wrong_store, "keys-lowercased"]);
        assert_eq!(run.status, 1, "{}", run.stdout);
        // Where the storage lies is another place in each run.
        let mut steps = run.row(id)["steps"].as_array().expect("steps").clone();
        for step in &mut steps {
            step["params"]["location"] = Value::Null;
            step["answer"]["result"]["location"] = Value::Null;
        }
        steps
    };
    assert_eq!(steps("11"), steps("11"));
}

#[test]
fn several_jobs_judge_the_same() {
    let wrong_store = example("wrong_store");
    let one = certify(&["--", &wrong_store, "seq-stalls"]);
    let four = certify(&["--jobs", "4", "--", &wrong_store, "seq-stalls"]);
    assert_eq!(one.outcomes(), four.outcomes());
    assert_eq!((one.status, four.status), (1, 1));
}

#[test]
fn reports_are_written_beside_each_other_and_agree() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (junit, html) = (path("r.xml"), path("r.html"));
    let run =
        certify(&["--junit", &junit, "--html", &html, "--", &example("wrong_store"), "no-fence"]);
    assert_eq!(run.status, 1);
    let xml = std::fs::read_to_string(&junit).expect("JUnit");
    let failures = run.json["summary"]["fail"].as_u64().expect("a count") as usize;
    assert!(failures > 0);
    assert_eq!(xml.matches("<failure ").count(), failures);
    assert_eq!(xml.matches("<testcase ").count(), clauses().count());
    assert!(std::fs::read_to_string(&html).expect("HTML").contains("mailbox/core/claim-fences"));
}

#[test]
fn examples_of_both_sdks_certify() {
    let examples = [
        ("python3", "adapters/python/examples/memory_mailbox.py"),
        ("python3", "adapters/python/examples/sqlite_mailbox.py"),
        ("python3", "adapters/python/examples/wall_mailbox.py"),
        ("node", "adapters/node/examples/memory-mailbox.mjs"),
        ("node", "adapters/node/examples/file-mailbox.mjs"),
        ("node", "adapters/node/examples/wall-mailbox.mjs"),
    ];
    for (program, path) in examples {
        if !has(program) {
            continue;
        }
        let run = certify(&["--jobs", "2", "--", program, path]);
        assert_eq!(run.status, 0, "{path}: {}", run.stdout);
        let unfit = [run.ids("fail"), run.ids("error"), run.ids("not-run")].concat();
        assert!(unfit.is_empty(), "{path}: {unfit:?}");
    }
}

#[test]
fn lists_and_pages_say_what_there_is() {
    let json = |args: &[&str]| -> serde_json::Value {
        let output = storeproof(args).output().expect("the binary");
        assert!(output.status.success(), "{args:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let listed = json(&["list", "clauses", "--json"]);
    let rows = listed["clauses"].as_array().expect("rows");
    assert_eq!(rows.len(), clauses().count());
    for row in rows {
        for member in ["id", "suite", "tier", "statement"] {
            assert!(row[member].is_string(), "{row}");
        }
        assert!(!row["mutants"].as_array().expect("mutants").is_empty(), "{row}");
    }
    assert_eq!(
        json(&["list", "mutants", "--json"])["mutants"].as_array().map(Vec::len),
        Some(mutants().count())
    );

    for (args, status, part) in [
        (&["explain", "mailbox/core/fifo"][..], 0, "Why it matters"),
        (&["explain", "fifo"], 0, "mailbox/core/fifo"),
        (&["explain", "keys-injective"], 2, ""),
        (&["explain", "no-such-clause-at-all"], 2, ""),
        (&["list", "nonsense"], 2, ""),
        (&["--version"], 0, "storeproof"),
    ] {
        let output = storeproof(args).output().expect("the binary");
        assert_eq!(output.status.code(), Some(status), "{args:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains(part), "{args:?}");
    }
}

#[test]
fn doctor_says_what_to_mend() {
    let serve = env!("CARGO_BIN_EXE_storeproof");
    let well = storeproof(["doctor", "--", serve, "serve", "sqlite"]).output().expect("the binary");
    assert_eq!(well.status.code(), Some(0), "{}", String::from_utf8_lossy(&well.stdout));
    if !has("python3") {
        return;
    }
    let loud = ["doctor", "--", "python3", "-c", "print('store ready v1.2', flush=True); input()"];
    let ill = storeproof(loud).output().expect("the binary");
    let page = String::from_utf8_lossy(&ill.stdout).into_owned();
    assert_eq!(ill.status.code(), Some(3), "{page}");
    assert!(page.contains("store ready v1.2") && page.contains("stderr"), "{page}");
}
