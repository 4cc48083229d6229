//! What can go wrong with a report.

use std::path::PathBuf;

/// Why a report could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The file system said no.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The report that was to be written.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is no JSON, or no record.
    #[error("not a storeproof report: {0}")]
    Json(#[from] serde_json::Error),
    /// The schema is another one, or none.
    #[error("unknown schema {found:?}: this build reads {:?} only", crate::record::SCHEMA)]
    Schema {
        /// What the file calls itself.
        found: String,
    },
    /// The values nest deeper than any report we write.
    #[error("nested more than {max} levels deep")]
    Depth {
        /// The deepest level read.
        max: usize,
    },
    /// The counts are not those of the rows.
    #[error(
        "the summary does not match the rows: it says {said} {outcome}, the rows hold {counted}"
    )]
    Summary {
        /// The outcome word.
        outcome: &'static str,
        /// The count in the summary.
        said: usize,
        /// The count over the rows.
        counted: usize,
    },
    /// Two rows carry one case id.
    #[error("two rows carry the case id {id:?}")]
    DuplicateId {
        /// The id.
        id: String,
    },
    /// A member holds what it may not.
    #[error("{what} is {found:?}")]
    Member {
        /// Which member.
        what: &'static str,
        /// What it holds.
        found: String,
    },
}
