//! Strict JSON: what serde_json lets through and the format does not is refused here.
//!
//! Duplicate keys (serde_json keeps the last silently), integers outside the signed 64-bit range (serde_json turns
//! them into floats), and nesting deeper than the limit.

#![forbid(unsafe_code)]

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::MAX_JSON_DEPTH;
use crate::error::FormatError;

/// Parses one JSON document by the rules of the format.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, FormatError> {
    let text = std::str::from_utf8(bytes).map_err(|error| FormatError::Json {
        problem: format!("not UTF-8 from byte {}", error.valid_up_to()),
    })?;
    check_tokens(text)?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let strict = Strict::deserialize(&mut deserializer).map_err(fault)?;
    deserializer.end().map_err(fault)?;
    Ok(strict.0)
}

const DUPLICATE: &str = "duplicate key ";

fn fault(error: serde_json::Error) -> FormatError {
    // serde_json appends " at line L column C" to a custom message.
    let text = error.to_string();
    match text.strip_prefix(DUPLICATE).and_then(|rest| rest.rsplit_once(" at line ")) {
        Some((name, _)) => FormatError::Duplicate { what: "key", name: name.to_owned() },
        None => FormatError::Json { problem: text },
    }
}

/// Depth and integer ranges, by one pass over the characters outside strings.
fn check_tokens(text: &str) -> Result<(), FormatError> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0usize);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at += 1;
                while let Some(&inner) = bytes.get(at) {
                    match inner {
                        b'"' => break,
                        b'\\' => at += 2,
                        _ => at += 1,
                    }
                }
            }
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_JSON_DEPTH {
                    return Err(FormatError::Json {
                        problem: format!("nested deeper than {MAX_JSON_DEPTH} at byte {at}"),
                    });
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'-' | b'0'..=b'9' => {
                let start = at;
                while matches!(
                    bytes.get(at + 1),
                    Some(b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')
                ) {
                    at += 1;
                }
                let token = &text[start..=at];
                if !token.contains(['.', 'e', 'E']) && token.parse::<i64>().is_err() {
                    return Err(FormatError::Json {
                        problem: format!(
                            "the integer {token} at byte {start} is outside -2^63..2^63"
                        ),
                    });
                }
            }
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = sequence.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(de::Error::custom(format!("{DUPLICATE}{key}")));
            }
            let Strict(value) = entries.next_value()?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// How deep arrays and objects are nested; 0 for a scalar.
pub(crate) fn depth(value: &Value) -> usize {
    let below = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(map) => map.values().map(depth).max(),
        _ => return 0,
    };
    1 + below.unwrap_or(0)
}

/// Writes a value without white space and with keys in byte order, so that equal values give equal bytes whatever
/// order serde_json's map has.
pub(crate) fn to_canonical(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort_unstable();
            out.push('{');
            for (index, key) in keys.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_canonical(&map[key], out);
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_are_refused_at_any_depth() {
        assert_eq!(
            parse(br#"{"a": [{"b": 1, "b": 2}]}"#),
            Err(FormatError::Duplicate { what: "key", name: "b".to_owned() })
        );
        // The same key, spelled with an escape.
        assert!(matches!(parse(br#"{"a": 1, "\u0061": 2}"#), Err(FormatError::Duplicate { .. })));
    }

    #[test]
    fn integers_beyond_63_bits_are_refused_and_floats_are_not() {
        assert!(
            parse(b"[9223372036854775807, -9223372036854775808, 1e300, 18446744073709551616.0]")
                .is_ok()
        );
        assert!(matches!(parse(b"[9223372036854775808]"), Err(FormatError::Json { .. })));
        assert!(matches!(parse(b"[99999999999999999999999]"), Err(FormatError::Json { .. })));
        assert!(parse(br#"["9223372036854775808 \" [[["]"#).is_ok());
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(nested(MAX_JSON_DEPTH).as_bytes()).is_ok());
        assert!(matches!(
            parse(nested(MAX_JSON_DEPTH + 1).as_bytes()),
            Err(FormatError::Json { .. })
        ));
        assert!(parse(&vec![b'['; 1 << 20]).is_err());
    }

    #[test]
    fn nothing_may_follow_and_nothing_may_lack() {
        for bad in [&b"{} {}"[..], b"", b"{", b"\xff", b"{\"a\":\"\\", b"[1,]", b"NaN"] {
            assert!(matches!(parse(bad), Err(FormatError::Json { .. })), "{bad:?}");
        }
    }

    #[test]
    fn canonical_text_sorts_keys() {
        let value = parse(r#"{"b": [1, 2.5], "a": {"é": null, "d": "x\n"}}"#.as_bytes()).unwrap();
        assert_eq!(to_canonical(&value), r#"{"a":{"d":"x\n","é":null},"b":[1,2.5]}"#);
    }

    #[test]
    fn floats_of_the_metadata_are_the_nearest_ones() {
        // serde_json is off by one bit here unless its `float_roundtrip` is on.
        for text in [
            "1.7976931348623157e308",
            "51.24817837550540",
            "31.245270191439438",
            "121.48791951161945",
            "100.78399658203125",
            "0.1",
        ] {
            let exact: f64 = text.parse().unwrap();
            assert_eq!(
                parse(text.as_bytes()).unwrap().as_f64().unwrap().to_bits(),
                exact.to_bits(),
                "{text}"
            );
        }
    }
}
