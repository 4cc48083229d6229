//! Serves a Rust subject over the protocol: `storeproof serve STORE`, and the child of every test that
//! stands a bundled store before the bench as a stranger.

use super::frame::{LINE_BYTES_MAX, Lines, Shape, decode, nesting, text};
use std::io::{self, BufRead, Write};
use storeproof_contract::call::{Answer, INVALID_PARAMS, RpcError};
use storeproof_contract::host::Host;
use storeproof_contract::json::Json;
use storeproof_contract::subject::Subject;

/// The error code for a line that is not JSON.
const PARSE_ERROR: i64 = -32700;
/// The error code for JSON that is no request.
const INVALID_REQUEST: i64 = -32600;
/// Memory that is kept for the next reply; what a larger one took is given back.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// Answers the requests on `input`, one line each, until `shutdown` or the end of `input`.
///
/// JSON of the protocol's full depth recurses: call it on [`super::on_deep_stack`].
///
/// # Errors
/// The streams' own, and a line over the limit, which is answered first: what follows it cannot be told
/// from the rest of it.
pub fn serve(
    subject: Box<dyn Subject>,
    mut input: impl BufRead,
    mut output: impl Write,
) -> io::Result<()> {
    let mut host = Host::new(subject);
    let mut lines = Lines::new(LINE_BYTES_MAX);
    let mut reply = Vec::new();
    loop {
        loop {
            let line = match lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(fault) => {
                    write_reply(
                        &mut reply,
                        &Json::Null,
                        &refused(INVALID_REQUEST, &fault.message),
                    )?;
                    send(&mut output, &mut reply)?;
                    return Err(io::Error::new(io::ErrorKind::InvalidData, fault.message));
                }
            };
            let is_last = answer(&mut host, line, &mut reply)?;
            send(&mut output, &mut reply)?;
            if is_last {
                return Ok(());
            }
        }
        let more = input.fill_buf()?;
        if more.is_empty() {
            return Ok(());
        }
        let count = more.len();
        lines.push(more);
        input.consume(count);
    }
}

/// Puts the answer to one line into `reply`, nothing for a notification; answers whether it was the last.
fn answer(host: &mut Host, line: &[u8], reply: &mut Vec<u8>) -> io::Result<bool> {
    let request = match read(line) {
        Ok(Some(request)) => request,
        Ok(None) => return Ok(false),
        Err(refusal) => {
            let (id, error) = *refusal;
            write_reply(reply, &id, &Answer::Error(error))?;
            return Ok(false);
        }
    };
    let mut answer = host.call(&request.method, &request.params);
    if let (true, Answer::Result(manifest)) = (request.method == "initialize", &mut answer) {
        // The subject cannot know in which process it is served.
        manifest["pid"] = Json::from(std::process::id());
    }
    write_reply(reply, &request.id, &answer)?;
    Ok(request.method == "shutdown")
}

struct Request {
    id: Json,
    method: String,
    params: Json,
}

/// A request; none where the line is a notification. An error comes with the id to answer it under.
fn read(line: &[u8]) -> Result<Option<Request>, Box<(Json, RpcError)>> {
    let wrong =
        |code, message: String| Box::new((Json::Null, RpcError { code, message, data: None }));
    let text = text(line).map_err(|fault| wrong(PARSE_ERROR, fault.message))?;
    nesting(line).map_err(|fault| wrong(PARSE_ERROR, fault.message))?;
    if text.trim_ascii_start().starts_with('[') {
        return Err(wrong(INVALID_REQUEST, "this protocol has no batches".to_owned()));
    }
    let shape: Shape = decode(text).map_err(|error| {
        let code = if error.is_data() { INVALID_REQUEST } else { PARSE_ERROR };
        wrong(code, format!("no request: {error}"))
    })?;
    let id = match shape.id {
        None if shape.method.is_some() => return Ok(None),
        Some(id @ (Json::Number(_) | Json::String(_))) => id,
        Some(_) | None => {
            return Err(wrong(INVALID_REQUEST, "a request needs an integer `id`".to_owned()));
        }
    };
    let refuse = |code, message: &str| {
        Box::new((id.clone(), RpcError { code, message: message.to_owned(), data: None }))
    };
    if shape.jsonrpc.as_ref().and_then(Json::as_str) != Some("2.0") {
        return Err(refuse(INVALID_REQUEST, "a request needs `jsonrpc`: \"2.0\""));
    }
    let Some(Json::String(method)) = shape.method else {
        return Err(refuse(INVALID_REQUEST, "a request needs a `method`, a string"));
    };
    let params = match shape.params {
        Some(params @ Json::Object(_)) => params,
        None => Json::Object(serde_json::Map::new()),
        Some(_) => return Err(refuse(INVALID_PARAMS, "`params` must be an object")),
    };
    Ok(Some(Request { id, method, params }))
}

fn refused(code: i64, message: &str) -> Answer {
    Answer::Error(RpcError { code, message: message.to_owned(), data: None })
}

fn write_reply(reply: &mut Vec<u8>, id: &Json, answer: &Answer) -> io::Result<()> {
    write!(reply, r#"{{"jsonrpc":"2.0","id":{id},"#)?;
    match answer {
        Answer::Result(result) => {
            reply.extend_from_slice(br#""result":"#);
            serde_json::to_writer(&mut *reply, result)?;
        }
        Answer::Error(error) => {
            reply.extend_from_slice(br#""error":"#);
            serde_json::to_writer(&mut *reply, &error.to_json())?;
        }
        // A host never answers one; it stands for what goes wrong between bench and subject.
        Answer::Fault(fault) => {
            return Err(io::Error::other(fault.to_string()));
        }
    }
    reply.extend_from_slice(b"}\n");
    Ok(())
}

/// One write a reply, so that a reader never sees half of a short one.
fn send(output: &mut impl Write, reply: &mut Vec<u8>) -> io::Result<()> {
    if !reply.is_empty() {
        output.write_all(reply)?;
        output.flush()?;
        reply.clear();
        if reply.capacity() > KEPT_BYTES_MAX {
            *reply = Vec::new();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use storeproof_contract::mailbox::mutant::model;
    use storeproof_contract::world::{Clockwork, World};

    fn served(input: &str) -> Vec<Json> {
        let mut output = Vec::new();
        serve(model(World::new(Clockwork::Caller)), input.as_bytes(), &mut output).expect("served");
        let text = String::from_utf8(output).expect("UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    fn request(id: u64, method: &str, params: &Json) -> String {
        format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
    }

    #[test]
    fn a_store_is_served_from_handshake_to_shutdown() {
        let append =
            json!({ "store": "s1", "scope": "default", "handle": "h", "body": 7, "now": 1 });
        let input = request(1, "initialize", &json!({}))
            + "\r\n\n"
            + &request(2, "store/open", &json!({}))
            + r#"{"jsonrpc":"2.0","method":"a/notification"}"#
            + "\n"
            + &request(3, "mailbox/append", &append)
            + &request(4, "shutdown", &json!({}))
            + &request(5, "store/open", &json!({}));
        let replies = served(&input);
        assert_eq!(replies[0]["result"]["pid"], json!(std::process::id()));
        assert_eq!(replies[1]["result"]["store"], json!("s1"));
        assert_eq!(replies[2], json!({ "jsonrpc": "2.0", "id": 3, "result": { "seq": 1 } }));
        assert_eq!(replies[3], json!({ "jsonrpc": "2.0", "id": 4, "result": {} }));
        assert_eq!(replies.len(), 4, "nothing is answered after shutdown");
    }

    #[test]
    fn what_is_no_request_is_refused_and_the_next_one_served() {
        for (line, id, code) in [
            ("{", Json::Null, PARSE_ERROR),
            ("17", Json::Null, INVALID_REQUEST),
            ("[]", Json::Null, INVALID_REQUEST),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"shutdown"}]"#, Json::Null, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":null,"method":"shutdown"}"#, Json::Null, INVALID_REQUEST),
            (r#"{"id":1,"method":"shutdown"}"#, json!(1), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, json!(1), INVALID_REQUEST),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"store/close","params":["s1"]}"#,
                json!(1),
                INVALID_PARAMS,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#, json!(1), -32601),
        ] {
            let replies = served(&format!("{line}\n{}", request(9, "store/open", &json!({}))));
            assert_eq!(
                (&replies[0]["id"], &replies[0]["error"]["code"]),
                (&id, &json!(code)),
                "{line}"
            );
            assert_eq!(replies[1]["id"], json!(9), "{line}");
        }
        let deep = format!("{}\n", "[".repeat(100_000));
        assert_eq!(served(&deep)[0]["error"]["code"], json!(PARSE_ERROR));
    }
}
