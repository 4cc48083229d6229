//! One call to a subject and what can come back: a result, an error it answered, or a fault.

use crate::json::Json;
use serde_json::json;

/// The error code of a refusal.
pub const REFUSED: i64 = -32001;
/// The error code for a method the subject does not have.
pub const METHOD_MISSING: i64 = -32601;
/// The error code for arguments the subject cannot take.
pub const INVALID_PARAMS: i64 = -32602;
/// The error code for a failure inside the subject that is no answer.
pub const INTERNAL: i64 = -32603;

/// What came back from one call.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The `result` member.
    Result(Json),
    /// The `error` member.
    Error(RpcError),
    /// No answer that could be judged.
    Fault(Fault),
}

impl Answer {
    /// The answer as a transcript shows it: the wire's own member, or `fault` with its message.
    #[must_use]
    pub fn shown(&self) -> Json {
        match self {
            Self::Result(value) => json!({ "result": value }),
            Self::Error(error) => json!({ "error": error.to_json() }),
            Self::Fault(fault) => json!({ "fault": fault.to_string() }),
        }
    }
}

/// An error that the subject answered.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// JSON-RPC error code.
    pub code: i64,
    /// The subject's own words.
    pub message: String,
    /// The `data` member, if there was one.
    pub data: Option<Json>,
}

impl RpcError {
    /// A refusal: code -32001 with its reason code.
    #[must_use]
    pub fn refused(reason: &str, message: impl Into<String>) -> Self {
        Self { code: REFUSED, message: message.into(), data: Some(json!({ "reason": reason })) }
    }

    /// The reason code of a refusal; empty where the subject gave none.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.data.as_ref().and_then(|data| data.get("reason")).and_then(Json::as_str).unwrap_or("")
    }

    /// The wire's `error` member.
    #[must_use]
    pub fn to_json(&self) -> Json {
        match &self.data {
            Some(data) => json!({ "code": self.code, "message": self.message, "data": data }),
            None => json!({ "code": self.code, "message": self.message }),
        }
    }
}

/// A loud "no" from the store: an answer, judged by the clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason code, such as `lease_not_held`; empty where none was given.
    pub reason: String,
    /// The store's own words.
    pub message: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reason = if self.reason.is_empty() { "no reason code" } else { &self.reason };
        write!(f, "refused ({reason}: {})", crate::json::cut(&self.message))
    }
}

/// Something that leaves a clause without a verdict: never a pass, never a violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What kind of trouble it was.
    pub kind: FaultKind,
    /// What happened and where, for a person.
    pub message: String,
}

impl Fault {
    /// A fault of `kind`.
    #[must_use]
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.kind.word(), self.message)
    }
}

/// The kinds of fault, each with the word that reports use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// No answer within the deadline.
    Deadline,
    /// The process ended.
    Died,
    /// A line on stdout that is not a protocol message.
    BadLine,
    /// A protocol message that is not a proper reply to the call.
    BadReply,
    /// A result without the form that the protocol's table gives.
    BadForm,
    /// An error answer that is no refusal.
    Errored,
    /// A loop over the subject's answers ran into its limit.
    Limit,
    /// The machine was too slow to decide anything about time.
    Undecided,
    /// The run was interrupted.
    Interrupted,
    /// The bench itself could not do its part.
    Bench,
}

impl FaultKind {
    /// The word that reports use.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::Died => "died",
            Self::BadLine => "bad-line",
            Self::BadReply => "bad-reply",
            Self::BadForm => "bad-form",
            Self::Errored => "errored",
            Self::Limit => "limit",
            Self::Undecided => "undecided",
            Self::Interrupted => "interrupted",
            Self::Bench => "bench",
        }
    }
}
