//! Files with one lie each, and the error that every reader must give.

use serde_json::{Value as Json, json};

use super::forge::{Forge, HEADER, put, replace, u64_at};
use super::golden;

/// A hostile file.
pub(crate) struct Lie {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    code: &'static str,
    stage: &'static str,
    attribute: Option<&'static str>,
    what: String,
}

impl Lie {
    /// What `EXPECTED.json` says of it: SPEC.md 22.
    pub(crate) fn entry(&self) -> Json {
        let mut entry = json!({ "code": self.code, "stage": self.stage, "what": self.what });
        if let Some(attribute) = self.attribute {
            entry["attribute"] = json!(attribute);
        }
        entry
    }
}

/// The files that lies are made from, and the lies so far.
struct Lies {
    base: Vec<u8>,
    small: Vec<u8>,
    lies: Vec<Lie>,
}

// Places in the header, by SPEC.md 3.
const MAJOR: usize = 8;
const BLOCK_SIZE: usize = 12;
const CRITICAL: usize = 16;
const FILE_LENGTH: usize = 24;
const SAMPLES: usize = 32;
const DIRECTORY_OFFSET: usize = 40;
const DIRECTORY_LENGTH: usize = 48;
const DIRECTORY_COPY_OFFSET: usize = 56;
const CHECKSUMS_OFFSET: usize = 64;
const CHECKSUMS_LENGTH: usize = 72;
const DIRECTORY_CRC: usize = 80;
const CHECKSUMS_CRC: usize = 84;
const RESERVED: usize = 88;
const HEADER_CRC: usize = 4092;

const MAX: u64 = i64::MAX as u64;

impl Lies {
    fn add(
        &mut self,
        stage: &'static str,
        name: &str,
        code: &'static str,
        what: &str,
        bytes: Vec<u8>,
    ) {
        let (name, what) = (name.to_owned(), what.to_owned());
        self.lies.push(Lie { name, bytes, code, stage, attribute: None, what });
    }

    /// Refused at open: the small file, changed.
    fn open(&mut self, name: &str, code: &'static str, what: &str, edit: impl FnOnce(&mut Forge)) {
        let mut forge = Forge::open(&self.small);
        edit(&mut forge);
        self.add("open", name, code, what, forge.seal());
    }

    /// Refused at open: the base file, changed.
    fn open_base(
        &mut self,
        name: &str,
        code: &'static str,
        what: &str,
        edit: impl FnOnce(&mut Forge),
    ) {
        let mut forge = Forge::open(&self.base);
        edit(&mut forge);
        self.add("open", name, code, what, forge.seal());
    }

    /// Refused at open: a u64 of the small file's header.
    fn header(&mut self, name: &str, code: &'static str, what: &str, at: usize, to: u64) {
        self.open(name, code, what, |forge| {
            forge.header = Some(Box::new(move |header| put(header, at, &to.to_le_bytes())));
        });
    }

    /// Refused at open: the small file's finished bytes, not sealed again.
    fn raw(&mut self, name: &str, code: &'static str, what: &str, edit: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.small.clone();
        edit(&mut bytes);
        self.add("open", name, code, what, bytes);
    }

    /// Refused at open: the small file's directory text.
    fn text(
        &mut self,
        name: &str,
        code: &'static str,
        what: &str,
        edit: impl Fn(&mut Vec<u8>) + 'static,
    ) {
        self.open(name, code, what, |forge| forge.text = Some(Box::new(edit)));
    }

    /// Refused at open: the small file's section list.
    fn list(
        &mut self,
        name: &str,
        code: &'static str,
        what: &str,
        edit: impl Fn(&mut Json) + 'static,
    ) {
        self.open(name, code, what, |forge| forge.list = Some(Box::new(edit)));
    }

    /// Refused when `attribute` of the base file is read.
    fn access(
        &mut self,
        name: &str,
        code: &'static str,
        attribute: &'static str,
        what: &str,
        edit: impl FnOnce(&mut Forge),
    ) {
        let mut forge = Forge::open(&self.base);
        edit(&mut forge);
        self.add("access", name, code, what, forge.seal());
        self.lies.last_mut().expect("just added").attribute = Some(attribute);
    }

    /// Found by `verify` in the base file.
    fn verify(
        &mut self,
        name: &str,
        code: &'static str,
        what: &str,
        edit: impl FnOnce(&mut Forge),
    ) {
        let mut forge = Forge::open(&self.base);
        edit(&mut forge);
        self.add("verify", name, code, what, forge.seal());
    }
}

/// Every hostile file.
pub(crate) fn all() -> Vec<Lie> {
    let mut lies = Lies { base: golden::base(), small: golden::small(), lies: vec![] };
    lies.magic_and_length();
    lies.truncation();
    lies.header_fields();
    lies.json();
    lies.root_and_sections();
    lies.axes();
    lies.attributes();
    lies.schema_rules();
    lies.refused_attributes();
    lies.bad_tables();
    lies.bad_values();
    lies.found_by_verify();
    lies.lies
}

impl Lies {
    fn magic_and_length(&mut self) {
        self.raw("empty", "magic", "no bytes at all", |file| file.clear());
        self.raw("magic_cut", "magic", "5 bytes", |file| file.truncate(5));
        self.raw("magic_only", "truncated", "the signature and nothing else", |file| {
            file.truncate(8)
        });
        self.raw("magic_wrong", "magic", "another signature", |file| put(file, 0, b"\x89PNG"));
        self.raw("magic_text_mode", "magic", "CR LF became LF on the way", |file| {
            let mut at = 0;
            while at + 1 < file.len() {
                if file[at..].starts_with(b"\r\n") {
                    file.remove(at);
                }
                at += 1;
            }
        });
        self.raw("magic_seven_bits", "magic", "the eighth bits were cleared on the way", |file| {
            file.iter_mut().for_each(|byte| *byte &= 0x7f);
        });
        for major in [0u16, 2, u16::MAX] {
            let what = format!("major version {major}");
            self.open(&format!("version_{major}"), "version", &what, |forge| {
                forge.header =
                    Some(Box::new(move |header| put(header, MAJOR, &major.to_le_bytes())));
            });
        }
        self.raw("header_crc", "checksum", "the header's checksum is another", |file| {
            file[HEADER_CRC] ^= 1;
        });
        self.raw("header_flipped_bit", "checksum", "a flipped bit in the reserved bytes", |file| {
            file[2000] ^= 0x10;
        });
        self.raw("trailing_byte", "trailing-bytes", "a zero byte follows", |file| file.push(0));
        self.raw("trailing_block", "trailing-bytes", "4096 zero bytes follow", |file| {
            file.resize(file.len() + 4096, 0);
        });
        self.raw("trailing_twice", "trailing-bytes", "the file twice in a row", |file| {
            file.extend_from_within(..);
        });
        let length = self.small.len() as u64;
        let lies = [
            (
                "file_length_shorter",
                "trailing-bytes",
                "file_length is 64 less than the file",
                length - 64,
            ),
            (
                "file_length_longer",
                "truncated",
                "file_length is 64 more than the file",
                length + 64,
            ),
            ("file_length_0", "trailing-bytes", "file_length is 0", 0),
            ("file_length_max", "truncated", "file_length is 2^64 - 1", u64::MAX),
        ];
        for (name, code, what, to) in lies {
            self.header(name, code, what, FILE_LENGTH, to);
        }
    }

    fn truncation(&mut self) {
        let file = self.base.clone();
        let mut cuts = vec![
            (100, "inside the header".to_owned(), "header_inside".to_owned()),
            (HEADER - 1, "one byte before the header's end".to_owned(), "header_almost".to_owned()),
            (HEADER, "at the header's end".to_owned(), "header_end".to_owned()),
        ];
        let forge = Forge::open(&file);
        for (index, section) in
            forge.directory["sections"].as_array().expect("a list").iter().enumerate()
        {
            let number = |key: &str| section[key].as_u64().expect("a number") as usize;
            let (start, end) = (number("offset"), number("offset") + number("length"));
            cuts.push((
                start,
                format!("at the start of section {index}"),
                format!("section_{index:02}_start"),
            ));
            cuts.push((
                end,
                format!("at the end of section {index}"),
                format!("section_{index:02}_end"),
            ));
        }
        for (what, name, offset, length) in [
            ("checksum table", "checksums", CHECKSUMS_OFFSET, CHECKSUMS_LENGTH),
            ("directory", "directory", DIRECTORY_OFFSET, DIRECTORY_LENGTH),
            ("directory's copy", "directory_copy", DIRECTORY_COPY_OFFSET, DIRECTORY_LENGTH),
        ] {
            let start = u64_at(&file, offset) as usize;
            let end = start + u64_at(&file, length) as usize;
            cuts.push((start, format!("at the start of the {what}"), format!("{name}_start")));
            cuts.push((end, format!("at the end of the {what}"), format!("{name}_end")));
        }
        let end = file.len();
        cuts.push((
            end - HEADER,
            "before the header's copy".to_owned(),
            "header_copy_start".to_owned(),
        ));
        cuts.push((end - 1, "of its last byte".to_owned(), "last_byte".to_owned()));
        cuts.sort_by_key(|cut| cut.0);
        let mut last = 0;
        for (cut, what, name) in cuts {
            // A section may end just where the next one starts, and an empty one is nowhere.
            if cut > last {
                let what = format!("cut off {what}");
                self.add(
                    "open",
                    &format!("truncated_{name}"),
                    "truncated",
                    &what,
                    file[..cut].to_vec(),
                );
                last = cut;
            }
        }
    }

    fn header_fields(&mut self) {
        self.header("critical_bit_0", "critical-feature", "an unknown critical bit", CRITICAL, 1);
        self.header(
            "critical_bit_63",
            "critical-feature",
            "an unknown critical bit",
            CRITICAL,
            1 << 63,
        );
        for size in [0u32, 4096, 1 << 31] {
            let what = format!("block_size {size}");
            self.open(&format!("block_size_{size}"), "header", &what, |forge| {
                forge.header =
                    Some(Box::new(move |header| put(header, BLOCK_SIZE, &size.to_le_bytes())));
            });
        }
        for (name, at) in [("reserved_first", RESERVED), ("reserved_last", HEADER_CRC - 1)] {
            self.open(name, "header", "a reserved byte is not zero", |forge| {
                forge.header = Some(Box::new(move |header| header[at] = 1));
            });
        }
        let file = self.small.clone();
        let (checksums, directory) =
            (u64_at(&file, CHECKSUMS_OFFSET), u64_at(&file, DIRECTORY_OFFSET));
        let copy = u64_at(&file, DIRECTORY_COPY_OFFSET);
        let end = file.len() as u64;
        #[rustfmt::skip]
        let lies = [
            ("samples_max", "header", "2^64 - 1 samples", SAMPLES, u64::MAX),
            ("samples_limit", "header", "2^63 - 1 samples, one more than allowed", SAMPLES, MAX),
            ("samples_huge", "overflow", "2^63 - 2 samples: allowed, but the tables would be beyond 2^63 bytes", SAMPLES, MAX - 1),
            ("samples_many", "section-size", "2^40 samples in a small file", SAMPLES, 1 << 40),
            ("samples_one_more", "section-size", "one sample more than there is", SAMPLES, 4),
            ("samples_one_less", "section-size", "one sample less than there is", SAMPLES, 2),
            ("samples_none", "section-size", "no samples, but their bytes", SAMPLES, 0),
            ("directory_length_limit", "header", "a directory of one byte more than 64 MiB", DIRECTORY_LENGTH, (64 << 20) + 1),
            ("directory_length_64_mib", "header", "a directory of 64 MiB: allowed, but not in this file", DIRECTORY_LENGTH, 64 << 20),
            ("directory_length_max", "header", "a directory of 2^64 - 1 bytes", DIRECTORY_LENGTH, u64::MAX),
            ("directory_length_wraps", "header", "a directory whose end wraps around to its start", DIRECTORY_LENGTH, u64::MAX - directory + 1),
            ("directory_offset_0", "header", "the directory is the header", DIRECTORY_OFFSET, 0),
            ("directory_offset_unaligned", "header", "the directory starts at no multiple of 64", DIRECTORY_OFFSET, directory + 1),
            ("directory_offset_low", "header", "the directory starts before the checksum table's end", DIRECTORY_OFFSET, checksums),
            ("directory_offset_beyond", "header", "the directory starts behind the file", DIRECTORY_OFFSET, end + 64),
            ("directory_offset_max", "header", "the directory starts at 2^64 - 64", DIRECTORY_OFFSET, u64::MAX - 63),
            ("directory_copy_is_directory", "header", "the directory is its own copy", DIRECTORY_COPY_OFFSET, directory),
            ("directory_copy_in_header_copy", "header", "the directory's copy lies in the header's", DIRECTORY_COPY_OFFSET, end - 4096),
            ("directory_copy_beyond", "header", "the directory's copy lies behind the file", DIRECTORY_COPY_OFFSET, end),
            ("checksums_offset_in_header", "header", "the checksum table lies in the header", CHECKSUMS_OFFSET, 64),
            ("checksums_offset_unaligned", "header", "the checksum table starts at no multiple of 64", CHECKSUMS_OFFSET, checksums + 4),
            ("checksums_offset_high", "header", "the checksum table lies behind the directory", CHECKSUMS_OFFSET, copy),
            ("checksums_offset_max", "header", "the checksum table starts at 2^64 - 64", CHECKSUMS_OFFSET, u64::MAX - 63),
            ("checksums_length_max", "header", "a checksum table of 2^64 - 4 bytes", CHECKSUMS_LENGTH, u64::MAX - 3),
            ("checksums_length_more", "header", "a checksum table with one entry too many", CHECKSUMS_LENGTH, 16),
            ("checksums_length_less", "header", "a checksum table with one entry too few", CHECKSUMS_LENGTH, 8),
            ("checksums_length_odd", "header", "a checksum table with half an entry", CHECKSUMS_LENGTH, 14),
        ];
        for (name, code, what, at, to) in lies {
            self.header(name, code, what, at, to);
        }
        let length = end + 32;
        self.raw(
            "file_length_odd",
            "header",
            "the header's copy starts at no multiple of 64",
            |bytes| {
                put(bytes, FILE_LENGTH, &length.to_le_bytes());
                let crc = crc32fast::hash(&bytes[..HEADER_CRC]);
                put(bytes, HEADER_CRC, &crc.to_le_bytes());
                let header = bytes[..HEADER].to_vec();
                bytes.truncate(bytes.len() - HEADER);
                bytes.resize(bytes.len() + 32, 0);
                bytes.extend(header);
            },
        );
        self.raw(
            "header_twice",
            "header",
            "nothing but a header and its copy, both alike",
            |bytes| {
                put(bytes, FILE_LENGTH, &8192u64.to_le_bytes());
                let crc = crc32fast::hash(&bytes[..HEADER_CRC]);
                put(bytes, HEADER_CRC, &crc.to_le_bytes());
                bytes.truncate(HEADER);
                bytes.extend_from_within(..);
            },
        );
        self.open("directory_crc", "checksum", "the directory's checksum is another", |forge| {
            forge.header = Some(Box::new(|header| header[DIRECTORY_CRC] ^= 0x80));
        });
        self.raw("directory_flipped_bit", "checksum", "a flipped bit in the directory", |file| {
            file[directory as usize + 7] ^= 1;
        });
    }

    fn json(&mut self) {
        self.text("json_empty", "json", "a directory of no bytes", |text| text.clear());
        self.text("json_zeros", "json", "a directory of zero bytes", |text| text.fill(0));
        self.text("json_cut", "json", "the last brace is missing", |text| {
            text.truncate(text.len() - 1)
        });
        self.text("json_open_string", "json", "a string without end", |text| {
            text.truncate(text.len() - 6)
        });
        self.text("json_two_values", "json", "a second value follows", |text| text.extend(b"{}"));
        self.text("json_zero_byte", "json", "a zero byte follows", |text| text.push(0));
        self.text("json_bom", "json", "a byte order mark", |text| {
            text.splice(0..0, *b"\xef\xbb\xbf");
        });
        self.text("json_utf16", "json", "UTF-16 instead of UTF-8", |text| {
            *text = text.iter().flat_map(|&byte| [byte, 0]).collect();
        });
        let user = "\"user\":1";
        for (name, what, to) in [
            ("not_utf8", "a string that is not UTF-8", &b"\"user\":\"\xff\""[..]),
            ("utf8_surrogate", "a surrogate in UTF-8", b"\"user\":\"\xed\xa0\x80\""),
            ("utf8_overlong", "an overlong form in UTF-8", b"\"user\":\"\xc0\x80\""),
            ("lone_surrogate", "an escape that is half a character", b"\"user\":\"\\ud800\""),
            ("lone_surrogate_in_key", "a key that is half a character", b"\"\\udc00\":1"),
            ("control_character", "a control character inside a string", b"\"user\":\"\x01\""),
            ("bad_escape", "an escape that JSON does not have", b"\"user\":\"\\x41\""),
            ("nan", "NaN", b"\"user\":NaN"),
            ("infinity", "-Infinity", b"\"user\":-Infinity"),
            ("comment", "a comment", b"\"user\":1/**/"),
            ("trailing_comma", "a comma before the brace", b"\"user\":1,"),
            ("single_quotes", "single quotes", b"'user':1"),
            ("leading_zero", "a number with a leading zero", b"\"user\":01"),
            ("leading_plus", "a number with a plus sign", b"\"user\":+1"),
            ("bare_fraction", "a number without digits behind the point", b"\"user\":1."),
            ("hex", "a hexadecimal number", b"\"user\":0x10"),
            ("integer_2_63", "the integer 2^63", b"\"user\":9223372036854775808"),
            ("integer_below", "the integer -2^63 - 1", b"\"user\":-9223372036854775809"),
            (
                "integer_of_100_digits",
                "an integer of 100 digits",
                &[&b"\"user\":"[..], &[b'7'; 100]].concat(),
            ),
            ("float_overflow", "a number beyond all binary64", b"\"user\":1e400"),
            ("unquoted_key", "a key without quotes", b"user:1"),
            ("missing_colon", "a member without a colon", b"\"user\" 1"),
        ] {
            let to = to.to_vec();
            self.text(&format!("json_{name}"), "json", what, move |text| replace(text, user, &to));
        }
        for (name, what, depth) in [
            ("depth_33", "arrays nested 33 deep", 31usize),
            ("depth_2000", "arrays nested 2000 deep", 1998),
        ] {
            self.text(&format!("json_{name}"), "json", what, move |text| {
                let nested = format!("\"user\":{}{}", "[".repeat(depth), "]".repeat(depth));
                replace(text, user, nested.as_bytes());
            });
        }
        self.text("json_brackets", "json", "1000 opening brackets", |text| {
            *text = vec![b'['; 1000]
        });
        for (name, what, from, to) in [
            ("root", "two members `metadata`", user, "\"user\":1},\"metadata\":{"),
            ("user", "two members of the user's metadata", user, "\"user\":1,\"user\":1"),
            ("escaped", "the same name, once with an escape", user, "\"user\":1,\"\\u0075ser\":2"),
            (
                "deep",
                "two members of an object in an array",
                user,
                "\"user\":[{\"a\":{\"b\":1,\"b\":2}}]",
            ),
            (
                "of_section",
                "a section with two lengths",
                "\"offset\":4096",
                "\"offset\":4096,\"length\":20",
            ),
        ] {
            self.text(&format!("duplicate_key_{name}"), "duplicate", what, move |text| {
                replace(text, from, to.as_bytes());
            });
        }
    }

    fn root_and_sections(&mut self) {
        for (name, what, root) in [
            ("array", "the root is an array", "[]"),
            ("null", "the root is null", "null"),
            ("number", "the root is a number", "7"),
            ("empty_object", "the root is an empty object", "{}"),
        ] {
            self.text(&format!("root_{name}"), "directory", what, move |text| *text = root.into());
        }
        for (name, what, to) in [
            ("missing", "no alignment", Json::Null),
            ("0", "alignment 0", json!(0)),
            ("1", "alignment 1, less than 64", json!(1)),
            ("96", "alignment 96, no power of two", json!(96)),
            ("2_31", "alignment 2^31, beyond the limit", json!(1u32 << 31)),
            ("text", "alignment is text", json!("64")),
            ("float", "alignment is 64.0, which is no integer", json!(64.0)),
            ("negative", "alignment -64", json!(-64)),
        ] {
            self.open(&format!("alignment_{name}"), "directory", what, |forge| {
                forge.directory["alignment"] = to;
            });
        }
        self.open(
            "section_unaligned_for_file",
            "section-alignment",
            "alignment 128, sections at 64",
            |forge| {
                forge.text =
                    Some(Box::new(|text| replace(text, "\"alignment\":64", b"\"alignment\":128")));
            },
        );
        for key in ["axes", "attributes"] {
            for (name, to) in [("missing", Json::Null), ("object", json!({}))] {
                let what = format!("{key} is {to}");
                self.open(&format!("{key}_{name}"), "directory", &what, |forge| {
                    forge.directory[key] = to;
                });
            }
            let what = format!("an entry of {key} is a number");
            self.open(&format!("{key}_of_numbers"), "directory", &what, |forge| {
                forge.directory[key][0] = json!(1);
            });
        }
        let shard = |key: &str, to: Json| {
            let mut shard = json!({ "dataset": "d", "number": 0 });
            shard[key] = to;
            shard
        };
        let base = |key: &str, to: Json| {
            let mut base =
                json!({ "file_bytes": 1, "samples": 3, "directory_crc": 2, "checksums_crc": 3 });
            base[key] = to;
            base
        };
        for (name, code, key, what, to) in [
            ("shard_of_number", "directory", "shard", "shard is a number", json!(1)),
            (
                "shard_dataset_missing",
                "directory",
                "shard",
                "a shard of no dataset",
                shard("dataset", Json::Null),
            ),
            (
                "shard_dataset_empty",
                "directory",
                "shard",
                "a dataset named by no byte",
                shard("dataset", json!("")),
            ),
            (
                "shard_dataset_long",
                "directory",
                "shard",
                "a dataset named by 1,025 bytes",
                shard("dataset", json!("d".repeat(1025))),
            ),
            (
                "shard_number_missing",
                "directory",
                "shard",
                "a shard without number",
                shard("number", Json::Null),
            ),
            ("shard_number_negative", "directory", "shard", "shard -1", shard("number", json!(-1))),
            (
                "shard_first_float",
                "directory",
                "shard",
                "a first sample of index 1.0",
                shard("first", json!(1.0)),
            ),
            (
                "shard_first_beyond",
                "overflow",
                "shard",
                "samples of indices beyond 2^63 - 1",
                shard("first", json!(i64::MAX)),
            ),
            ("shard_last_number", "directory", "shard", "last is 1", shard("last", json!(1))),
            ("shard_source_number", "directory", "shard", "source is 1", shard("source", json!(1))),
            ("base_of_text", "directory", "base", "base is a text", json!("three_samples.fence")),
            (
                "base_samples_other",
                "directory",
                "base",
                "a base of other samples",
                base("samples", json!(4)),
            ),
            (
                "base_crc_missing",
                "directory",
                "base",
                "a base without checksum",
                base("checksums_crc", Json::Null),
            ),
            (
                "base_crc_33_bits",
                "directory",
                "base",
                "a base with a checksum of 33 bits",
                base("directory_crc", json!(1u64 << 32)),
            ),
            (
                "base_bytes_negative",
                "directory",
                "base",
                "a base of -1 bytes",
                base("file_bytes", json!(-1)),
            ),
        ] {
            self.open(name, code, what, |forge| forge.directory[key] = to);
        }
        self.list("sections_missing", "directory", "no section list", |list| *list = Json::Null);
        self.list("sections_object", "directory", "the section list is an object", |list| {
            *list = json!({})
        });
        self.list("sections_of_numbers", "directory", "sections are numbers", |list| {
            list[0] = json!(4096)
        });
        for (name, what, key, to) in [
            ("offset_missing", "a section without offset", "offset", Json::Null),
            ("offset_negative", "a section at -64", "offset", json!(-64)),
            ("offset_minus_0", "a section at -0, which is no integer", "offset", json!(-0.0)),
            ("length_float", "a section of 20.0 bytes", "length", json!(20.0)),
            ("length_text", "a section of \"20\" bytes", "length", json!("20")),
            ("crc_missing", "a section without checksum", "crc", Json::Null),
            ("crc_33_bits", "a checksum of 33 bits", "crc", json!(1u64 << 32)),
            ("crc_negative", "a negative checksum", "crc", json!(-1)),
        ] {
            self.list(&format!("section_{name}"), "directory", what, move |list| {
                list[0][key] = to.clone();
            });
        }
        let (low, high) = (HEADER as u64, u64_at(&self.small, CHECKSUMS_OFFSET));
        #[rustfmt::skip]
        let bounds: [(&str, &str, u64, u64); 9] = [
            ("at_0", "a section at 0", 0, 20),
            ("in_header", "a section inside the header", 64, 20),
            ("from_header", "a section from the header into the data", low - 64, 128),
            ("in_checksums", "a section in the checksum table", high, 12),
            ("into_checksums", "a section that ends in the checksum table", high - 64, 65),
            ("beyond_file", "a section behind the file", 1 << 40, 20),
            ("offset_max", "a section at 2^63 - 64", MAX - 63, 20),
            ("length_max", "a section of 2^63 - 1 bytes", low, MAX),
            ("wraps", "a section whose end wraps around", MAX - 63, MAX),
        ];
        for (name, what, offset, length) in bounds {
            self.list(&format!("section_{name}"), "section-bounds", what, move |list| {
                list[0]["offset"] = json!(offset);
                list[0]["length"] = json!(length);
            });
        }
        self.list(
            "section_unaligned",
            "section-alignment",
            "a section at no multiple of 64",
            |list| {
                list[0]["offset"] = json!(4100);
                list[0]["length"] = json!(4);
            },
        );
        self.list("section_same_place", "section-overlap", "two sections at one place", |list| {
            list[1]["offset"] = list[0]["offset"].clone();
        });
        self.list(
            "section_overlap",
            "section-overlap",
            "a section that reaches into the next",
            |list| {
                list[0]["length"] = json!(65);
            },
        );
        self.list(
            "section_empty_elsewhere",
            "directory",
            "an empty section with an offset",
            |list| {
                list.as_array_mut()
                    .expect("a list")
                    .push(json!({ "offset": 4096, "length": 0, "crc": 0 }));
            },
        );
        self.open(
            "statistics_index",
            "directory",
            "statistics in a section that is not there",
            |forge| {
                forge.directory["statistics"] = json!(99);
            },
        );
        self.open("statistics_text", "directory", "statistics is text", |forge| {
            forge.directory["statistics"] = json!("0");
        });
        self.open("metadata_array", "directory", "metadata is an array", |forge| {
            forge.directory["metadata"] = json!([]);
        });
        self.open("metadata_text", "directory", "metadata is text", |forge| {
            forge.directory["metadata"] = json!("{}");
        });
    }

    fn axes(&mut self) {
        let long = "n".repeat(1025);
        for (name, code, what, to) in [
            ("name_missing", "directory", "an axis without name", json!({ "name": null })),
            ("name_number", "directory", "an axis named 7", json!({ "name": 7 })),
            ("name_empty", "directory", "an axis with an empty name", json!({ "name": "" })),
            (
                "name_long",
                "directory",
                "an axis with a name of 1025 bytes",
                json!({ "name": long }),
            ),
            ("total_missing", "directory", "an axis without total", json!({ "total": null })),
            ("total_negative", "directory", "an axis of total -1", json!({ "total": -1 })),
            ("both", "directory", "an axis with a table and a constant", json!({ "constant": 1 })),
            ("neither", "directory", "an axis with neither", json!({ "offsets": null })),
            (
                "offsets_index",
                "directory",
                "a table in a section that is not there",
                json!({ "offsets": 99 }),
            ),
            (
                "offsets_2_32",
                "directory",
                "a table in section 2^32",
                json!({ "offsets": 1u64 << 32 }),
            ),
            ("offsets_text", "directory", "a table in section \"0\"", json!({ "offsets": "0" })),
            ("stored_missing", "directory", "a table without width", json!({ "stored": null })),
            ("stored_unknown", "directory", "a table of u16", json!({ "stored": "u16" })),
            (
                "stored_wide",
                "directory",
                "a table of u64 for a total below 2^32",
                json!({ "stored": "u64" }),
            ),
            (
                "stored_narrow",
                "directory",
                "a table of u32 for a total of 2^32",
                json!({ "total": 1u64 << 32 }),
            ),
            (
                "table_short",
                "section-size",
                "a table that would need 8 bytes an entry",
                json!({ "total": 1u64 << 32, "stored": "u64" }),
            ),
            (
                "constant_total",
                "directory",
                "samples times the constant is another total",
                json!({ "offsets": null, "constant": 2 }),
            ),
            (
                "constant_float",
                "directory",
                "a constant of 1.0",
                json!({ "offsets": null, "constant": 1.0 }),
            ),
            (
                "constant_overflow",
                "overflow",
                "samples times the constant is beyond 2^63",
                json!({ "offsets": null, "constant": 1u64 << 62 }),
            ),
        ] {
            self.open(&format!("axis_{name}"), code, what, |forge| merge(forge.axis("nodes"), to));
        }
        self.open_base(
            "axis_other_table",
            "directory",
            "a total that the attribute's does not fit",
            |forge| {
                let other = forge.axis("flags").clone();
                let axis = forge.axis("nodes");
                axis["offsets"] = other["offsets"].clone();
                axis["total"] = json!(9);
            },
        );
        self.open("duplicate_axis", "duplicate", "two axes of one name", |forge| {
            let axis = forge.axis("nodes").clone();
            forge.directory["axes"].as_array_mut().expect("a list").push(axis);
        });
        self.open("duplicate_attribute", "duplicate", "two attributes of one name", |forge| {
            let attribute = forge.attribute("x").clone();
            forge.directory["attributes"].as_array_mut().expect("a list").push(attribute);
        });
        self.open(
            "duplicate_refused_attribute",
            "duplicate",
            "one of two attributes of one name is refused",
            |forge| {
                let attribute = json!({ "name": "x", "dtype": "u128" });
                forge.directory["attributes"].as_array_mut().expect("a list").push(attribute);
            },
        );
    }

    fn attributes(&mut self) {
        let long = "é".repeat(513);
        // Of the small file's attribute `y`: f32, shape [2], three samples.
        #[rustfmt::skip]
        let lies = [
            ("name_missing", "directory", "an attribute without name", json!({ "name": null })),
            ("name_empty", "directory", "an attribute with an empty name", json!({ "name": "" })),
            ("name_long", "directory", "a name of 1026 bytes in 513 characters", json!({ "name": long })),
            ("dtype_missing", "directory", "no dtype", json!({ "dtype": null })),
            ("dtype_number", "directory", "a dtype that is a number", json!({ "dtype": 4 })),
            ("stored_number", "directory", "a stored that is a number", json!({ "stored": 4 })),
            ("encoding_number", "directory", "an encoding that is a number", json!({ "encoding": 0 })),
            ("requires_text", "directory", "requires is text", json!({ "requires": "x" })),
            ("shape_missing", "directory", "no shape", json!({ "shape": null })),
            ("shape_text", "directory", "the shape is text", json!({ "shape": "nodes" })),
            ("shape_unknown_axis", "directory", "a dimension named after no axis", json!({ "shape": ["edges"] })),
            ("shape_negative", "directory", "an extent of -1", json!({ "shape": [-1] })),
            ("shape_float", "directory", "an extent of 2.0", json!({ "shape": [2.0] })),
            ("shape_null", "directory", "an extent of null", json!({ "shape": [null] })),
            ("shape_nested", "directory", "a shape in a shape", json!({ "shape": [[2]] })),
            ("shape_overflow", "overflow", "2^32 times 2^32 elements a sample", json!({ "shape": [1u64 << 32, 1u64 << 32] })),
            ("shape_wraps", "overflow", "extents whose product is 0 in 64 bits", json!({ "shape": [1u64 << 32, 1u64 << 32, 2] })),
            ("shape_bytes_overflow", "overflow", "2^61 elements of 4 bytes a sample", json!({ "shape": [1u64 << 61] })),
            ("shape_count_overflow", "overflow", "3 * 2^60 bytes a sample, beyond 2^63 for all", json!({ "dtype": "u8", "shape": [3u64 << 60] })),
            ("total_missing", "directory", "no total", json!({ "total": null })),
            ("total_wrong", "directory", "a total that is not samples times the fixed extents", json!({ "total": 7 })),
            ("total_float", "directory", "a total of 6.0", json!({ "total": 6.0 })),
            ("data_missing", "directory", "no arena", json!({ "data": null })),
            ("data_index", "directory", "an arena in a section that is not there", json!({ "data": 99 })),
            ("data_negative", "directory", "an arena in section -1", json!({ "data": -1 })),
            ("data_size", "section-size", "an arena of twice the size would be needed", json!({ "dtype": "f64" })),
            ("data_too_small", "section-size", "an arena for other extents would be needed", json!({ "shape": [2, 1000], "total": 6000 })),
            ("cat_dim_beyond", "directory", "cat_dim 1 of 1 dimension", json!({ "cat_dim": 1 })),
            ("cat_dim_max", "directory", "cat_dim 2^63 - 1", json!({ "cat_dim": MAX })),
            ("cat_dim_negative", "directory", "cat_dim -1", json!({ "cat_dim": -1 })),
            ("cat_dim_text", "directory", "cat_dim is text", json!({ "cat_dim": "0" })),
            ("optional_number", "directory", "optional is 1", json!({ "optional": 1 })),
            ("hidden_text", "directory", "hidden is text", json!({ "hidden": "false" })),
            ("validity_missing", "directory", "optional without bitmap", json!({ "optional": true })),
            ("validity_size", "section-size", "a bitmap of another size", json!({ "optional": true, "validity": 0 })),
        ];
        for (name, code, what, to) in lies {
            self.open(&format!("attribute_{name}"), code, what, |forge| {
                merge(forge.attribute("y"), to)
            });
        }
        self.open(
            "attribute_axis_total_overflow",
            "overflow",
            "the axis' total times the fixed extents is beyond 2^63",
            |forge| {
                *forge.axis("nodes") =
                    json!({ "name": "nodes", "constant": 1u64 << 60, "total": 3u64 << 60 });
                merge(forge.attribute("x"), json!({ "shape": ["nodes", 4] }));
            },
        );
        self.open(
            "attribute_widened_overflow",
            "overflow",
            "2^61 bytes stored, beyond 2^63 when widened",
            |forge| {
                *forge.axis("nodes") =
                    json!({ "name": "nodes", "constant": 1u64 << 60, "total": 3u64 << 60 });
                merge(forge.attribute("x"), json!({ "stored": "u8", "total": 3u64 << 60 }));
            },
        );
        self.open(
            "attribute_constant_size",
            "section-size",
            "a constant axis of 2^40 in a small file",
            |forge| {
                *forge.axis("nodes") =
                    json!({ "name": "nodes", "constant": 1u64 << 40, "total": 3u64 << 40 });
                forge.attribute("x")["total"] = json!(3u64 << 40);
            },
        );
        self.open("attribute_rank_9", "directory", "nine dimensions", |forge| {
            forge.attribute("y")["shape"] = json!([2, 1, 1, 1, 1, 1, 1, 1, 1]);
        });
        // Of the base file: attributes with tables of their own.
        #[rustfmt::skip]
        let lies = [
            ("own_missing", "directory", "square", "two ragged dimensions without a table", json!({ "offsets": null })),
            ("own_index", "directory", "square", "a table in a section that is not there", json!({ "offsets": 1000 })),
            ("own_stored", "directory", "square", "a table of another width than the total asks for", json!({ "offsets_stored": "u64" })),
            ("own_total", "section-size", "square", "a total that the arena does not have", json!({ "total": 11 })),
            ("own_size", "section-size", "square", "a table that is an arena", json!({ "offsets": 0 })),
            ("optional_ragged_own_missing", "directory", "runs", "optional and ragged without a table", json!({ "offsets": null })),
            ("bytes_missing", "directory", "title", "strings without a table of bytes", json!({ "bytes": null })),
            ("bytes_stored", "directory", "title", "a table of another width", json!({ "bytes_stored": "u64" })),
            ("bytes_size", "section-size", "title", "a table that is an arena", json!({ "bytes": 0 })),
            ("ends_missing", "directory", "tags", "strings with dimensions without ends", json!({ "ends": null })),
            ("ends_stored", "directory", "tags", "ends of another width", json!({ "ends_stored": null })),
            ("ends_size", "section-size", "tags", "ends that are an arena", json!({ "ends": 0 })),
            ("string_total", "directory", "title", "another number of strings than samples", json!({ "total": 6 })),
        ];
        for (name, code, attribute, what, to) in lies {
            self.open_base(&format!("attribute_{name}"), code, what, |forge| {
                merge(forge.attribute(attribute), to);
            });
        }
    }

    fn schema_rules(&mut self) {
        #[rustfmt::skip]
        let lies = [
            ("narrow_float_as_u32", "y", "f32 stored as u32", json!({ "stored": "u32" })),
            ("narrow_float_as_i32", "y", "f32 stored as i32", json!({ "stored": "i32" })),
            ("narrow_signs", "x", "i32 stored as u32", json!({ "stored": "u32" })),
            ("narrow_bool", "x", "i32 stored as bool", json!({ "stored": "bool", "total": 5, "data": 1 })),
            ("increment_number", "x", "increment 1", json!({ "increment": 1 })),
            ("increment_true", "x", "increment true", json!({ "increment": true })),
            ("increment_unknown_axis", "x", "increment by no axis", json!({ "increment": "edges" })),
            ("increment_of_float", "y", "a float incremented by an axis", json!({ "increment": "nodes" })),
            ("increment_rows_ragged", "x", "increments for rows of a ragged dimension", json!({ "increment": ["nodes"] })),
            ("increment_rows_count", "y", "one increment for two rows", json!({ "increment": ["nodes"] })),
            ("increment_rows_number", "y", "increments that are numbers", json!({ "increment": [1, 2] })),
            ("increment_rows_unknown", "y", "increments by no axis", json!({ "increment": [null, "edges"] })),
            ("increment_rows_of_float", "y", "rows of floats incremented", json!({ "increment": [null, null] })),
            ("increment_empty_object", "x", "an object without attribute", json!({ "increment": {} })),
            ("increment_attribute_number", "x", "increment by attribute 7", json!({ "increment": { "attribute": 7 } })),
            ("increment_attribute_unknown", "x", "increment by no attribute", json!({ "increment": { "attribute": "z" } })),
            ("increment_attribute_other_type", "x", "increment by an attribute of another type", json!({ "increment": { "attribute": "y" } })),
            ("increment_attribute_ragged", "x", "increment by a ragged attribute", json!({ "increment": { "attribute": "x" } })),
        ];
        for (name, attribute, what, to) in lies {
            self.open(name, "directory", what, |forge| {
                if name.starts_with("narrow") {
                    // Make the sizes fit, so that the pair is what is wrong.
                    let (size, total) =
                        (if name == "narrow_bool" { 1 } else { 4 }, to["total"].as_u64());
                    if total.is_some() {
                        forge.section("attributes", attribute, "data").truncate(5 * size);
                    }
                }
                let mut to = to;
                to.as_object_mut().expect("an object").remove("data");
                merge(forge.attribute(attribute), to);
            });
        }
        for (name, what, attribute, to) in [
            (
                "increment_attribute_optional",
                "increment by an optional attribute",
                "y",
                json!({ "increment": { "attribute": "mark" } }),
            ),
            (
                "increment_attribute_count",
                "increment by two values for three rows",
                "step",
                json!({ "increment": { "attribute": "ids" } }),
            ),
            (
                "increment_of_strings",
                "strings incremented by strings",
                "note",
                json!({ "increment": { "attribute": "title" } }),
            ),
            ("narrow_strings", "utf8 stored as bytes", "title", json!({ "stored": "bytes" })),
        ] {
            self.open_base(name, "directory", what, |forge| merge(forge.attribute(attribute), to));
        }
    }

    fn refused_attributes(&mut self) {
        for (name, what, to) in [
            ("unknown_dtype", "a dtype of a later version", json!({ "dtype": "f4e2m1" })),
            (
                "unknown_dtype_case",
                "a dtype that is known in lower case",
                json!({ "dtype": "F64" }),
            ),
            ("unknown_stored", "a stored of a later version", json!({ "stored": "f4e2m1" })),
            ("unknown_encoding", "an encoding of a later version", json!({ "encoding": "zstd" })),
            ("requires", "a requirement of a later version", json!({ "requires": ["delta"] })),
            (
                "refused_wins",
                "members that would refuse the file, behind an unknown encoding",
                json!({ "encoding": "x-test", "dtype": 7, "shape": ["nowhere"], "data": -1 }),
            ),
        ] {
            self.access(name, "attribute-refused", "y", what, |forge| {
                merge(forge.attribute("y"), to)
            });
        }
    }

    fn bad_tables(&mut self) {
        // Fenceposts of the base file. nodes: 0 1 3 3 6 7.
        for (name, what, entry, to) in [
            ("offsets_decreasing", "an axis table that goes back", 2, 0),
            ("offsets_beyond_total", "an axis table beyond its total", 4, 8),
            ("offsets_u32_max", "an axis table with 2^32 - 1", 3, u32::MAX),
            ("offsets_last_beyond_total", "the last entry is beyond the total", 5, 8),
        ] {
            self.access(name, "offsets", "x", what, |forge| {
                forge.set_entry("axes", "nodes", "offsets", entry, to);
            });
        }
        // square: sides 1 0 2 1 2, own table 0 1 1 5 6 10.
        for (name, what, entry, to) in [
            ("own_product", "an own table that differs from the product of the extents", 3, 4),
            ("own_decreasing", "an own table that goes back", 2, 0),
            ("own_beyond_total", "an own table beyond its total", 3, 11),
            ("own_first", "an own table that does not start at 0", 0, 1),
        ] {
            self.access(name, "offsets", "square", what, |forge| {
                forge.set_entry("attributes", "square", "offsets", entry, to);
            });
        }
        self.access(
            "own_optional",
            "offsets",
            "runs",
            "an optional ragged attribute whose table differs from its axis",
            |forge| {
                forge.set_entry("attributes", "runs", "offsets", 1, 1);
            },
        );
        self.access(
            "own_present",
            "offsets",
            "runs",
            "a bit says that a sample has what it has no elements for",
            |forge| {
                forge.section("attributes", "runs", "validity")[0] |= 2;
            },
        );
        // title: one, zwei, três, "", пять: 0 3 7 12 12 20.
        for (name, what, entry, to) in [
            ("bytes_decreasing", "string bytes that go back", 2, 2),
            ("bytes_beyond_total", "string bytes beyond the arena", 3, 21),
            ("bytes_u32_max", "string bytes at 2^32 - 1", 1, u32::MAX),
        ] {
            self.access(name, "offsets", "title", what, |forge| {
                forge.set_entry("attributes", "title", "bytes", entry, to);
            });
        }
        // tags: 0 2 1 3 2 strings of é, éé, ééé: ends 2 6 | 8 | 10 14 20 | 22 26; bytes 0 0 6 8 20 26.
        for (name, what, entry, to) in [
            ("ends_decreasing", "an end before the one before it", 4, 9),
            ("ends_before_start", "the first end of a sample is before its start", 2, 5),
            ("ends_beyond_sample", "an end beyond the sample's bytes", 3, 21),
            ("ends_short", "the last end of a sample is before its end", 5, 18),
            ("ends_u32_max", "an end at 2^32 - 1", 0, u32::MAX),
        ] {
            self.access(name, "offsets", "tags", what, |forge| {
                forge.set_entry("attributes", "tags", "ends", entry, to);
            });
        }
        self.access(
            "ends_of_nothing",
            "offsets",
            "tags",
            "a sample without strings has bytes",
            |forge| {
                forge.set_entry("attributes", "tags", "bytes", 1, 2);
            },
        );
    }

    fn bad_values(&mut self) {
        for (name, what, byte) in [("bool_2", "a bool of 2", 2), ("bool_255", "a bool of 255", 255)]
        {
            self.access(name, "bool", "flags", what, |forge| {
                *forge.section("attributes", "flags", "data").last_mut().expect("a byte") = byte;
            });
        }
        for (name, what, at, bytes) in [
            ("utf8_stray_byte", "a byte that starts nothing", 0, &b"\xff"[..]),
            ("utf8_cut", "a character cut off by the string's end", 2, b"\xc3"),
            ("utf8_surrogate", "a surrogate", 3, b"\xed\xa0\x80"),
            ("utf8_overlong", "an overlong zero", 3, b"\xc0\x80"),
            ("utf8_too_high", "a character beyond U+10FFFF", 3, b"\xf4\x90\x80\x80"),
        ] {
            self.access(name, "utf8", "title", what, |forge| {
                put(forge.section("attributes", "title", "data"), at, bytes);
            });
        }
        self.access(
            "utf8_split",
            "utf8",
            "tags",
            "a character whose bytes belong to two strings",
            |forge| {
                forge.set_entry("attributes", "tags", "ends", 0, 1);
            },
        );
    }

    fn found_by_verify(&mut self) {
        self.verify(
            "offsets_first",
            "offsets",
            "an axis table that does not start at 0",
            |forge| {
                forge.set_entry("axes", "nodes", "offsets", 0, 1);
            },
        );
        self.verify(
            "offsets_last",
            "offsets",
            "an axis table that does not end at its total",
            |forge| {
                forge.set_entry("axes", "nodes", "offsets", 5, 6);
            },
        );
        self.verify("bytes_first", "offsets", "string bytes that do not start at 0", |forge| {
            forge.set_entry("attributes", "title", "bytes", 0, 1);
        });
        self.verify(
            "bytes_last",
            "offsets",
            "string bytes that do not end at the arena's end",
            |forge| {
                forge.set_entry("attributes", "title", "bytes", 5, 18);
            },
        );
        self.verify(
            "absent_elements",
            "offsets",
            "a sample that lacks the attribute has elements",
            |forge| {
                forge.section("attributes", "runs", "validity")[0] &= !1;
            },
        );
        self.verify(
            "absent_string",
            "offsets",
            "a sample that lacks a string has bytes of it",
            |forge| {
                forge.section("attributes", "note", "validity")[0] &= !1;
            },
        );
        self.verify(
            "absent_strings",
            "offsets",
            "a sample that lacks strings has bytes of them",
            |forge| {
                forge.section("attributes", "couple", "validity")[0] &= !8;
            },
        );
        for attribute in ["mark", "runs"] {
            self.verify(
                &format!("validity_unused_{attribute}"),
                "padding",
                "an unused bit of a bitmap is set",
                |forge| {
                    // Equal bitmaps would share a section; these differ.
                    forge.section("attributes", attribute, "validity")[0] |= 0x80;
                },
            );
        }
        let file = self.base.clone();
        let at = |field: usize| u64_at(&file, field) as usize;
        let sections = Forge::open(&file).directory["sections"].clone();
        let first = &sections[0];
        let first_end = (first["offset"].as_u64().expect("a number")
            + first["length"].as_u64().expect("a number")) as usize;
        #[rustfmt::skip]
        let padding = [
            ("padding_between_sections", "a byte between two sections", first_end),
            ("padding_before_checksums", "the byte before the checksum table", at(CHECKSUMS_OFFSET) - 1),
            ("padding_before_directory", "the byte before the directory", at(DIRECTORY_OFFSET) - 1),
            ("padding_before_copy", "the byte before the directory's copy", at(DIRECTORY_COPY_OFFSET) - 1),
            ("padding_before_header_copy", "the byte before the header's copy", file.len() - HEADER - 1),
        ];
        for (name, what, place) in padding {
            let what = format!("{what} is not zero");
            self.verify(name, "padding", &what, |forge| {
                forge.raw = Some(Box::new(move |file| {
                    assert_eq!(file[place], 0, "there is padding");
                    file[place] = 1;
                }));
            });
        }
        let end = file.len();
        let copy = at(DIRECTORY_COPY_OFFSET);
        for (name, what, place) in [
            ("copy_header", "the header's copy differs", end - HEADER + SAMPLES),
            (
                "copy_header_reserved",
                "the header's copy differs in a reserved byte",
                end - HEADER + 1000,
            ),
            ("copy_header_last", "the header's copy differs in its checksum", end - 1),
            ("copy_directory", "the directory's copy differs", copy + 1),
        ] {
            self.verify(name, "copy", what, |forge| {
                forge.raw = Some(Box::new(move |file| file[place] ^= 1));
            });
        }
        self.verify(
            "crc_of_table",
            "checksum",
            "the checksum table's checksum is another",
            |forge| {
                forge.header = Some(Box::new(|header| header[CHECKSUMS_CRC] ^= 1));
            },
        );
        self.verify(
            "crc_table_entry",
            "checksum",
            "an entry of the checksum table is another",
            |forge| {
                forge.checksums = Some(Box::new(|table| table[0] ^= 1));
            },
        );
        self.verify("crc_of_section", "checksum", "a section's checksum is another", |forge| {
            forge.list = Some(Box::new(|list| {
                list[0]["crc"] = json!(list[0]["crc"].as_u64().expect("a number") ^ 1);
            }));
        });
        self.verify(
            "crc_of_empty_section",
            "checksum",
            "an empty section has a checksum",
            |forge| {
                forge.list = Some(Box::new(|list| {
                    list.as_array_mut()
                        .expect("a list")
                        .push(json!({ "offset": 0, "length": 0, "crc": 1 }));
                }));
            },
        );
        let data = Forge::open(&file).attribute("y")["data"].as_u64().expect("an index") as usize;
        let place = sections[data]["offset"].as_u64().expect("a number") as usize;
        self.verify("data_flipped_bit", "checksum", "a flipped bit in an arena", |forge| {
            forge.raw = Some(Box::new(move |file| file[place + 9] ^= 4));
        });
    }
}

/// Sets members; null removes.
fn merge(entry: &mut Json, to: Json) {
    let entry = entry.as_object_mut().expect("an object");
    for (key, value) in to.as_object().expect("an object") {
        if value.is_null() {
            entry.remove(key);
        } else {
            entry.insert(key.clone(), value.clone());
        }
    }
}
