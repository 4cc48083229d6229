//! What every test with a misbehaving child needs: the child's launch, and a look at who is left.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use storeproof::adapter::{Launch, RunSpace, Session, StartError};
use storeproof_contract::call::{Answer, Fault, FaultKind};

/// Nothing here takes as long unless something hangs.
pub const HANG_S: u64 = 25;
/// A deadline that is meant to pass.
pub const SHORT: Duration = Duration::from_millis(500);
/// A deadline that is meant not to, however busy the machine is.
pub const LONG: Duration = Duration::from_secs(20);

/// One child's launch, with a tag in its environment by which its family is looked for afterwards.
pub struct Stage {
    pub launch: Launch,
    pub tag: String,
    pub started: Instant,
}

impl Stage {
    pub fn new(mode: &str) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let space = RunSpace::create(Arc::new(AtomicBool::new(false))).expect("scratch folder");
        let script = children().join("misbehave.py");
        // Without site packages: it starts in half the time.
        let args = ["-I".as_ref(), "-S".as_ref(), script.as_os_str(), mode.as_ref()];
        let mut launch = Launch::new("python3", args, 42, space);
        launch.timing.call = LONG;
        launch.timing.startup = LONG;
        launch.timing.grace = LONG;
        launch.timing.line_bytes_max = 8 * 1024 * 1024;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let tag = format!("{}-{number}-{mode}", std::process::id());
        launch.env.push(("STOREPROOF_TEST".into(), tag.clone().into()));
        Self { launch, tag, started: Instant::now() }
    }

    /// The same with a deadline for calls that is meant to pass.
    pub fn short(mode: &str) -> Self {
        let mut stage = Self::new(mode);
        stage.launch.timing.call = SHORT;
        stage
    }

    pub fn session(&self) -> Session {
        Session::start(&self.launch).unwrap_or_else(|error| panic!("{}: {error}", self.tag))
    }

    pub fn start_error(&self) -> StartError {
        match Session::start(&self.launch) {
            Err(error) => error,
            Ok(_) => panic!("{}: the handshake passed", self.tag),
        }
    }

    pub fn handshake_fault(&self) -> Fault {
        match self.start_error() {
            StartError::Handshake(fault) => fault,
            error @ (StartError::NotStartable { .. } | StartError::WrongMajor { .. }) => {
                panic!("{}: {error}", self.tag)
            }
        }
    }

    /// Lets go of `holding`; then: in time, and nobody left, neither in the group nor outside it.
    pub fn over<T>(self, holding: T) {
        drop(holding);
        let taken = self.started.elapsed();
        assert!(taken < Duration::from_secs(HANG_S), "{} took {taken:?}", self.tag);
        let left = alive(&self.tag);
        assert!(left.is_empty(), "{}: processes {left:?} are left", self.tag);
        let folder = self.launch.space.folder().to_path_buf();
        drop(self.launch);
        assert!(!folder.exists(), "{} is left", folder.display());
    }
}

pub fn children() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/children")
}

/// The processes, zombies apart, whose environment has `tag`.
pub fn alive(tag: &str) -> Vec<String> {
    let entry = format!("STOREPROOF_TEST={tag}");
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().into_string().ok());
    pids.filter(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|pid| {
            std::fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|text| text.split(|byte| *byte == 0).any(|at| at == entry.as_bytes()))
        })
        .collect()
}

pub fn zombies_of_ours() -> usize {
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    entries
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok())
        .filter_map(|stat| stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned()))
        .filter(|rest| rest.starts_with("Z ") && rest.split(' ').nth(1) == Some(&own))
        .count()
}

pub fn append(session: &mut Session) -> Answer {
    session.call("mailbox/append", &json!({}))
}

pub fn fault(answer: Answer) -> Fault {
    match &answer {
        Answer::Fault(fault) => fault.clone(),
        Answer::Result(_) | Answer::Error(_) => panic!("an answer: {}", answer.shown()),
    }
}

pub fn result(answer: Answer) -> Value {
    match &answer {
        Answer::Result(value) => value.clone(),
        Answer::Error(_) | Answer::Fault(_) => panic!("no result: {}", answer.shown()),
    }
}

#[track_caller]
pub fn says(fault: &Fault, kind: FaultKind, words: &[&str]) {
    assert_eq!(fault.kind, kind, "{fault}");
    for word in words {
        assert!(fault.message.contains(word), "no {word:?} in: {:.600}", fault.message);
    }
}

/// The fault of the first `mailbox/append`, which ends the session.
#[track_caller]
pub fn append_faults(stage: Stage, kind: FaultKind, words: &[&str]) {
    let mut session = stage.session();
    let first = fault(append(&mut session));
    says(&first, kind, words);
    assert!(first.message.starts_with("mailbox/append (call 2): "), "{first}");
    assert_eq!(fault(append(&mut session)), first, "a dead session repeats its fault");
    assert!(!session.is_alive());
    // The family is gone at the fault, not only when somebody drops the session.
    assert_eq!(alive(&stage.tag), Vec::<String>::new());
    stage.over(session);
}
