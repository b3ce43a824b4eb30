//! Strict JSON, by a parser of our own.
//!
//! serde_json keeps the last of two equal keys silently, turns large integers into floats, and reads numbers in ways that
//! depend on its features, which any other crate of a program can switch on. What a file means must depend on the file.
//! Values are kept in serde_json's types, which people know.

#![forbid(unsafe_code)]

use serde_json::{Map, Value};

use super::MAX_JSON_DEPTH;
use crate::error::FormatError;

/// Parses one JSON document by the rules of the format.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, FormatError> {
    let text = std::str::from_utf8(bytes).map_err(|error| FormatError::Json {
        problem: format!("not UTF-8 from byte {}", error.valid_up_to()),
    })?;
    let mut parser = Parser { text, at: 0, depth: 0 };
    let value = parser.value()?;
    parser.space();
    if parser.at == text.len() { Ok(value) } else { Err(parser.fault("nothing behind the value")) }
}

struct Parser<'a> {
    text: &'a str,
    /// Next byte; at the edge of a character wherever the text is sliced.
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn fault(&self, expected: &str) -> FormatError {
        FormatError::Json { problem: format!("expected {expected} at byte {}", self.at) }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<Value, FormatError> {
        self.space();
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Result<Value, FormatError> {
        let rest = &self.text.as_bytes()[self.at..];
        for (word, value) in
            [("null", Value::Null), ("true", Value::Bool(true)), ("false", Value::Bool(false))]
        {
            if rest.starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.fault("a value"))
    }

    /// The inside of an array or object. Recursion ends at the format's limit.
    fn nested(
        &mut self,
        inside: fn(&mut Self) -> Result<Value, FormatError>,
    ) -> Result<Value, FormatError> {
        self.depth += 1;
        if self.depth > MAX_JSON_DEPTH {
            return Err(self.fault(&format!("nesting of at most {MAX_JSON_DEPTH}")));
        }
        self.at += 1;
        let value = inside(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn array(&mut self) -> Result<Value, FormatError> {
        let mut items = Vec::new();
        self.space();
        if self.take(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value()?);
            self.space();
            if self.take(b']') {
                return Ok(Value::Array(items));
            }
            if !self.take(b',') {
                return Err(self.fault("a comma or the array's end"));
            }
        }
    }

    fn object(&mut self) -> Result<Value, FormatError> {
        let mut map = Map::new();
        self.space();
        if self.take(b'}') {
            return Ok(Value::Object(map));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.fault("a key"));
            }
            let name = self.string()?;
            if map.contains_key(&name) {
                return Err(FormatError::Duplicate { what: "key", name });
            }
            self.space();
            if !self.take(b':') {
                return Err(self.fault("a colon"));
            }
            let value = self.value()?;
            map.insert(name, value);
            self.space();
            if self.take(b'}') {
                return Ok(Value::Object(map));
            }
            if !self.take(b',') {
                return Err(self.fault("a comma or the object's end"));
            }
        }
    }

    fn string(&mut self) -> Result<String, FormatError> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let start = self.at;
            while matches!(self.peek(), Some(byte) if byte >= 0x20 && byte != b'"' && byte != b'\\')
            {
                self.at += 1;
            }
            // From behind an ASCII character to one, or to the end: both are edges of characters.
            out.push_str(&self.text[start..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    self.at += 1;
                    out.push(self.escape()?);
                }
                _ => return Err(self.fault("the rest of the string, control characters escaped,")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, FormatError> {
        let character = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode();
            }
            _ => return Err(self.fault("one of the escapes of JSON")),
        };
        self.at += 1;
        Ok(character)
    }

    fn unicode(&mut self) -> Result<char, FormatError> {
        let first = self.unit()?;
        let mut code = first;
        if (0xd800..0xdc00).contains(&first) && self.take(b'\\') && self.take(b'u') {
            let second = self.unit()?;
            if (0xdc00..0xe000).contains(&second) {
                code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            }
        }
        // A surrogate that is left alone is no character.
        char::from_u32(code).ok_or_else(|| self.fault("the other half of a character"))
    }

    fn unit(&mut self) -> Result<u32, FormatError> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            unit = unit << 4 | digit.ok_or_else(|| self.fault("a hexadecimal digit"))?;
            self.at += 1;
        }
        Ok(unit)
    }

    fn digits(&mut self) -> Result<(), FormatError> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.fault("a digit"));
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Value, FormatError> {
        let start = self.at;
        self.take(b'-');
        // A zero stands alone; what follows it is refused by whoever comes next.
        if !self.take(b'0') {
            self.digits()?;
        }
        let mut integer = true;
        if self.take(b'.') {
            integer = false;
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            integer = false;
            let _sign = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        let token = &self.text[start..self.at];
        let value = if integer && token != "-0" {
            token.parse::<i64>().ok().map(Value::from)
        } else {
            token.parse::<f64>().ok().filter(|value| value.is_finite()).map(Value::from)
        };
        value.ok_or_else(|| FormatError::Json {
            problem: format!(
                "the number at byte {start} is outside of what 64 bits hold{}",
                if integer { ", -2^63..2^63" } else { "" }
            ),
        })
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

    proptest::proptest! {
        #[test]
        #[cfg_attr(miri, ignore = "its texts are made by a regular expression, which Miri does not finish in 15 minutes")]
        fn whatever_is_taken_is_what_serde_json_takes_too(
            text in r#"([\[\]{},: ]|"[a\\u0d8c"]{0,6}"|-?[0-9]{0,3}|[.eE+]|true|null|"a":|NaN){0,14}"#
        ) {
            if let Ok(value) = parse(text.as_bytes()) {
                proptest::prop_assert_eq!(serde_json::from_str::<Value>(&text).ok(), Some(value));
            } else if let Ok(value) = serde_json::from_str::<Value>(&text) {
                // Ours is stricter in two ways only, and these texts have no large integers.
                let duplicate = matches!(parse(text.as_bytes()), Err(FormatError::Duplicate { .. }));
                proptest::prop_assert!(duplicate || depth(&value) > MAX_JSON_DEPTH, "{}", text);
            }
        }

        #[test]
        fn numbers_are_read_exactly(number in proptest::prelude::any::<f64>(), integer in proptest::prelude::any::<i64>()) {
            if number.is_finite() {
                for text in [format!("{number:?}"), format!("{number:e}"), format!("{number:.17e}")] {
                    let found = parse(text.as_bytes()).unwrap();
                    if found.is_f64() {
                        proptest::prop_assert_eq!(found.as_f64().unwrap().to_bits(), number.to_bits());
                    }
                }
            }
            proptest::prop_assert_eq!(parse(integer.to_string().as_bytes()).unwrap().as_i64(), Some(integer));
        }
    }

    #[test]
    fn characters_are_whole() {
        assert_eq!(parse(br#""\ud83d\ude00\u00e9\/""#).unwrap(), "\u{1f600}\u{e9}/");
        for bad in [
            r#""\ud83d""#,
            r#""\ud83d\u0041""#,
            r#""\ude00""#,
            r#""\ud83d\\ude00""#,
            r#""\u12g4""#,
            r#""\é""#,
            "\"\u{1}\"",
        ] {
            assert!(matches!(parse(bad.as_bytes()), Err(FormatError::Json { .. })), "{bad}");
        }
    }

    #[test]
    fn minus_0_is_no_integer() {
        let value = parse(b"-0").unwrap();
        assert!(value.as_u64().is_none() && value.as_f64().unwrap().is_sign_negative());
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
