//! Texts that try to break their readers, in the places where a cluster can hold them: labels, annotations,
//! messages, and names that no client uses in a later request.

use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, StreamBody};
use hyper::body::Frame;
use kube::client::Body;
use serde_json::{Map, Value};

use crate::interference::asked::Asked;

/// The key of every added label and annotation.
pub(crate) const KEY: &str = "hostile.example.com/text";

/// Escape sequences (colours, a title, a cleared screen), control characters, right-to-left text and its
/// override, the ends of CDATA, of attributes and of comments, characters that XML 1.0 cannot hold, and the
/// marks of Markdown tables and of workflow commands.
pub(crate) const TEXT: &str = "\u{1b}[31;1m\u{1b}[2J\u{1b}]0;owned\u{7}\r\n\t\u{0}\u{8}\u{9b}7m\u{202e}\u{5e9}\u{5dc}\u{5d5}\u{5dd}\
     \u{2066}\u{feff}\u{fffe}\u{ffff}]]></x><script>alert(1)</script>\"'&amp;&#0;--><!--\
     |**`~|\n::error::\u{7f}";

/// The length of the long text; etcd takes annotations of up to 256 KiB together.
const LONG: usize = 16 * 1024;

/// Resources whose names clients use in later requests.
const NAMED_AGAIN: [&str; 4] = ["nodes", "namespaces", "priorityclasses", "runtimeclasses"];

/// A request's body without the texts of an earlier answer, which a client may send back.
pub(crate) fn cleansed(body: Bytes) -> Bytes {
    let Ok(mut object) = serde_json::from_slice::<Value>(&body) else {
        return body;
    };
    match cleanse(&mut object) {
        true => object.to_string().into(),
        false => body,
    }
}

fn cleanse(value: &mut Value) -> bool {
    let mut any = false;
    match value {
        Value::Object(object) => {
            any = object.remove(KEY).is_some();
            for value in object.values_mut() {
                any |= cleanse(value);
            }
        }
        Value::Array(list) => {
            for value in list {
                any |= cleanse(value);
            }
        }
        Value::String(text) => {
            if let Some(clean) = text.strip_suffix(TEXT) {
                *text = clean.to_owned();
                any = true;
            }
        }
        _ => {}
    }
    any
}

/// A JSON answer with hostile texts; `None` for any other answer.
pub(crate) fn whole(asked: &Asked, body: &[u8]) -> Option<Bytes> {
    let mut object: Value = serde_json::from_slice(body).ok()?;
    if asked.verb == "list" && !NAMED_AGAIN.contains(&asked.resource.as_str()) {
        rename(&mut object);
    }
    taint(&mut object);
    Some(format!("{object}\n").into())
}

/// A container's log with hostile lines, one of them very long, and with bytes that are not UTF-8.
pub(crate) fn log(log: &[u8]) -> Bytes {
    let mut hostile = log.to_vec();
    hostile.extend_from_slice(b"\n\xff\xfe\x80 ");
    hostile.extend_from_slice(TEXT.as_bytes());
    hostile.extend_from_slice(&b"A".repeat(LONG));
    hostile.push(b'\n');
    hostile.into()
}

/// The events of a watch with hostile texts, each passed on as it comes.
pub(crate) fn events(body: Body) -> UnsyncBoxBody<Bytes, kube::Error> {
    let frames = BodyStream::new(body);
    let lines = stream::unfold((frames, Vec::new()), async |(mut frames, mut rest)| {
        loop {
            match frames.next().await? {
                Ok(frame) => {
                    let Ok(data) = frame.into_data() else {
                        continue;
                    };
                    rest.extend_from_slice(&data);
                    let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') else {
                        continue;
                    };
                    let unfinished = rest.split_off(end + 1);
                    let lines = tainted_lines(&rest);
                    return Some((Ok(Frame::data(lines)), (frames, unfinished)));
                }
                Err(error) => return Some((Err(error), (frames, rest))),
            }
        }
    });
    StreamBody::new(lines).boxed_unsync()
}

fn tainted_lines(lines: &[u8]) -> Bytes {
    lines
        .split_inclusive(|byte| *byte == b'\n')
        .flat_map(|line| match serde_json::from_slice::<Value>(line) {
            Ok(mut event) => {
                taint(&mut event);
                format!("{event}\n").into_bytes()
            }
            Err(_) => line.to_vec(),
        })
        .collect()
}

/// Makes the names of a list's cluster-scoped objects hostile, and those of the webhooks in them.
fn rename(list: &mut Value) {
    let items = list["items"].as_array_mut().map(Vec::as_mut_slice);
    for item in items.unwrap_or_default() {
        if item["metadata"]["namespace"].is_string() {
            continue;
        }
        append(&mut item["metadata"]["name"]);
        let webhooks = item["webhooks"].as_array_mut().map(Vec::as_mut_slice);
        for webhook in webhooks.unwrap_or_default() {
            append(&mut webhook["name"]);
        }
    }
}

/// Adds hostile texts wherever an object can have one.
fn taint(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                match key.as_str() {
                    "metadata" => mark(value),
                    "message" | "note" | "osImage" => append(value),
                    _ => {}
                }
                taint(value);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(taint),
        _ => {}
    }
}

/// Adds a label and an annotation to an object's metadata, but not to a list's or a schema's.
fn mark(metadata: &mut Value) {
    let Some(metadata) = metadata.as_object_mut() else {
        return;
    };
    if !metadata.get("name").is_some_and(Value::is_string) {
        return;
    }
    for (key, text) in [
        ("labels", TEXT.to_owned()),
        (
            "annotations",
            format!("{TEXT}{}", "A\u{301}".repeat(LONG / 3)),
        ),
    ] {
        let texts = metadata
            .entry(key)
            .or_insert_with(|| Value::Object(Map::new()));
        if let Some(texts) = texts.as_object_mut() {
            texts.insert(KEY.to_owned(), text.into());
        }
    }
}

fn append(text: &mut Value) {
    if let Value::String(text) = text {
        text.push_str(TEXT);
    }
}
