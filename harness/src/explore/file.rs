//! Replay files: a finding as a value, so that it runs again on any subject and outlives the generator
//! that drew it.

use super::judge::Violation;
use super::script::Script;
use super::search::Finding;
use super::shrink::Rate;
use serde::{Deserialize, Serialize};
use storeproof_contract::KIT;

/// The form that this build writes and reads.
pub const SCHEMA: &str = "storeproof.replay/1";
/// The only family that is explored.
const FAMILY: &str = "mailbox";
/// The largest file that is read, in bytes.
pub const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// A replay file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// [`SCHEMA`].
    pub schema: String,
    /// The kit that judged.
    pub kit: String,
    /// The seed of the run that found it; it plays no part in the replay.
    pub seed: u64,
    /// The published clause that was broken.
    pub clause: String,
    /// The kind of answer that broke it, such as `claim/delivery`.
    pub kind: String,
    /// The family.
    pub family: String,
    /// Whether calls overlap.
    pub mode: Mode,
    /// What to ask.
    pub steps: Script,
    /// What the contract promises at the answer that broke it.
    pub expected: String,
    /// What was seen.
    pub seen: String,
    /// Where.
    pub found_on: FoundOn,
    /// How often it showed, where calls overlap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
}

/// Whether calls overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// One call after the other.
    Sequential,
    /// Some calls overlap.
    Concurrent,
}

/// The subject that showed it first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundOn {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Replay {
    /// The file of a finding.
    #[must_use]
    pub fn of(finding: &Finding, seed: u64, name: &str, version: &str) -> Self {
        let Violation { clause, kind, promised, seen, .. } = finding.violation.clone();
        let mode = if finding.script.is_concurrent() { Mode::Concurrent } else { Mode::Sequential };
        Self {
            schema: SCHEMA.to_owned(),
            kit: KIT.to_owned(),
            seed,
            clause,
            kind,
            family: FAMILY.to_owned(),
            mode,
            steps: finding.script.clone(),
            expected: promised,
            seen,
            found_on: FoundOn { name: name.to_owned(), version: version.to_owned() },
            rate: finding.rate,
        }
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// What is wrong with it: no JSON, another schema, a kit of another major version, steps that cannot
    /// be asked or judged.
    pub fn read(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
            kit: String,
            family: String,
        }
        let head: Head = serde_json::from_str(text)
            .map_err(|error| format!("this is no replay file: {error}"))?;
        if head.schema != SCHEMA {
            return Err(format!("its schema is {:?}; this build reads {SCHEMA}", head.schema));
        }
        if major(&head.kit) != major(KIT) {
            return Err(format!("its kit is {:?}; this build judges by kit {KIT}", head.kit));
        }
        if head.family != FAMILY {
            return Err(format!("its family is {:?}; this build replays {FAMILY}", head.family));
        }
        let replay: Self = serde_json::from_str(text)
            .map_err(|error| format!("it has not the form of {SCHEMA}: {error}"))?;
        replay.steps.check()?;
        let concurrent = replay.mode == Mode::Concurrent;
        if concurrent != replay.steps.is_concurrent() {
            return Err("its mode does not fit the lanes of its steps".to_owned());
        }
        Ok(replay)
    }

    /// The file's text.
    ///
    /// # Errors
    /// Serde's, which does not happen with these types.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// A file name: the clause, and a hash of the steps.
    ///
    /// # Errors
    /// As [`Replay::to_text`].
    pub fn file_name(&self) -> Result<String, serde_json::Error> {
        let steps = serde_json::to_string(&self.steps)?;
        // FNV-1a: stable for ever, which std's hasher does not promise.
        let hash = steps.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Ok(format!("{}-{hash:016x}.json", self.clause.replace('/', "-")))
    }
}

fn major(version: &str) -> &str {
    version.split('.').next().unwrap_or_default()
}
