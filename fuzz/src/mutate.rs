//! Files that are right but for some lies: each field of a valid file changed by name, and all checksums made right again.

use arbitrary::Arbitrary;
use serde_json::Value as Json;

use crate::forge::{Forge, u64_at};
use crate::touch::touch;

/// A value for a place in the directory.
#[derive(Arbitrary, Debug, Clone)]
pub enum Filler {
    Null,
    Bool(bool),
    Small(u8),
    /// A power of two and a bit more or less: where sizes overflow.
    Edge(u8, i8),
    Number(u64),
    Negative(i64),
    Float(f64),
    Name(u8),
    Text(String),
    Empty,
    Object,
    /// What stands at another place.
    Like(Vec<u8>),
}

#[derive(Arbitrary, Debug, Clone)]
pub enum Edit {
    /// A place in the directory: which child, level by level.
    Set(Vec<u8>, Filler),
    Remove(Vec<u8>),
    Insert(Vec<u8>, Filler),
    /// After the places are known.
    Section(u8, u8, Filler),
    Bytes(u8, u16, Vec<u8>),
    /// Offsets are four or eight bytes.
    Entry(u8, u8, bool, Filler),
    Resize(u8, u16),
    Samples(Filler),
    Minor(u16),
    Header(u8, Filler),
    Checksums(u8, u8),
    Text(u16, Vec<u8>),
    Reverse,
    Cut(u16),
}

#[derive(Arbitrary, Debug)]
pub struct Mutation {
    pub file: u8,
    pub edits: Vec<Edit>,
}

const NAMES: [&str; 36] = [
    "nodes",
    "edges",
    "x",
    "y",
    "u8",
    "u16",
    "u32",
    "u64",
    "i8",
    "i16",
    "i32",
    "i64",
    "f16",
    "bf16",
    "f32",
    "f64",
    "c64",
    "c128",
    "bool",
    "utf8",
    "bytes",
    "f8e4m3",
    "f8e5m2",
    "raw",
    "name",
    "total",
    "constant",
    "offsets",
    "stored",
    "data",
    "validity",
    "ends",
    "shape",
    "cat_dim",
    "increment",
    "optional",
];

impl Filler {
    fn number(&self) -> u64 {
        match self {
            Filler::Small(small) => u64::from(*small),
            Filler::Edge(power, more) => {
                (1u64 << (power % 64)).wrapping_add_signed(i64::from(*more))
            }
            Filler::Number(number) => *number,
            Filler::Negative(number) => number.cast_unsigned(),
            _ => 0,
        }
    }

    fn json(&self, whole: &Json) -> Json {
        match self {
            Filler::Null => Json::Null,
            Filler::Bool(yes) => (*yes).into(),
            Filler::Small(_) | Filler::Edge(..) | Filler::Number(_) => self.number().into(),
            Filler::Negative(number) => (*number).into(),
            Filler::Float(number) => (*number).into(),
            Filler::Name(name) => NAMES[*name as usize % NAMES.len()].into(),
            Filler::Text(text) => text.as_str().into(),
            Filler::Empty => Json::Array(vec![]),
            Filler::Object => Json::Object(serde_json::Map::new()),
            Filler::Like(path) => {
                let mut copy = whole.clone();
                place(&mut copy, path).clone()
            }
        }
    }
}

fn place<'a>(mut json: &'a mut Json, path: &[u8]) -> &'a mut Json {
    for &step in path.iter().take(8) {
        let children = match &*json {
            Json::Array(list) => list.len(),
            Json::Object(map) => map.len(),
            _ => 0,
        };
        if children == 0 {
            break;
        }
        let at = step as usize % children;
        json = match json {
            Json::Array(list) => &mut list[at],
            Json::Object(map) => map.values_mut().nth(at).expect("counted above"),
            other => other,
        };
    }
    json
}

pub fn mutate(mutation: &Mutation) {
    let files = crate::golden();
    let mut forge = Forge::open(&files[mutation.file as usize % files.len()]);
    let mut lists: Vec<(u8, u8, Filler)> = Vec::new();
    let mut headers: Vec<(u8, Filler)> = Vec::new();
    let mut checksums: Vec<(u8, u8)> = Vec::new();
    let mut texts: Vec<(u16, Vec<u8>)> = Vec::new();
    let mut cut = 0;
    for edit in mutation.edits.iter().take(12) {
        let sections = forge.sections.len();
        match edit.clone() {
            Edit::Set(path, filler) => {
                let value = filler.json(&forge.directory);
                *place(&mut forge.directory, &path) = value;
            }
            Edit::Remove(path) => {
                let Some((last, path)) = path.split_last() else { continue };
                match place(&mut forge.directory, path) {
                    Json::Array(list) if !list.is_empty() => {
                        list.remove(*last as usize % list.len());
                    }
                    Json::Object(map) if !map.is_empty() => {
                        let key = map.keys().nth(*last as usize % map.len()).cloned();
                        map.remove(&key.expect("counted above"));
                    }
                    _ => {}
                }
            }
            Edit::Insert(path, filler) => {
                let value = filler.json(&forge.directory);
                match place(&mut forge.directory, &path) {
                    Json::Array(list) => list.push(value),
                    Json::Object(map) => {
                        let key = NAMES[path.len() * 7 % NAMES.len()];
                        map.insert(key.to_owned(), value);
                    }
                    _ => {}
                }
            }
            Edit::Section(index, key, filler) => lists.push((index, key, filler)),
            Edit::Bytes(index, at, bytes) if sections > 0 => {
                let section = &mut forge.sections[index as usize % sections];
                for (offset, byte) in bytes.into_iter().enumerate() {
                    if let Some(place) = section.get_mut(at as usize + offset) {
                        *place = byte;
                    }
                }
            }
            Edit::Entry(index, entry, wide, filler) if sections > 0 => {
                let section = &mut forge.sections[index as usize % sections];
                let width = if wide { 8 } else { 4 };
                let at = entry as usize * width;
                if let Some(place) = section.get_mut(at..at + width) {
                    place.copy_from_slice(&filler.number().to_le_bytes()[..width]);
                }
            }
            Edit::Resize(index, length) if sections > 0 => {
                forge.sections[index as usize % sections].resize(length as usize, 0);
            }
            Edit::Bytes(..) | Edit::Entry(..) | Edit::Resize(..) => {}
            Edit::Samples(filler) => forge.samples = filler.number(),
            Edit::Minor(minor) => forge.minor = minor,
            Edit::Header(field, filler) => headers.push((field, filler)),
            Edit::Checksums(at, by) => checksums.push((at, by)),
            Edit::Text(at, bytes) => texts.push((at, bytes)),
            Edit::Reverse => forge.compact = false,
            Edit::Cut(bytes) => cut = bytes as usize,
        }
    }
    // A directory that is no object has no list.
    let has_list = forge.directory.is_object() && !lists.is_empty();
    let change_list = move |list: &mut Json| {
        for (index, key, filler) in &lists {
            let value = filler.json(list);
            if let Json::Array(sections) = list
                && !sections.is_empty()
            {
                let at = *index as usize % sections.len();
                let key = ["offset", "length", "crc"][*key as usize % 3];
                sections[at][key] = value;
            }
        }
    };
    forge.list = has_list.then(|| Box::new(change_list) as _);
    forge.header = Some(Box::new(move |header: &mut Vec<u8>| {
        for (field, filler) in &headers {
            let at = usize::from(field % 23) * 4;
            let number = filler.number().to_le_bytes();
            header[at..at + 4].copy_from_slice(&number[..4]);
            if field % 2 == 0 && number[4..] != [0; 4] {
                header[at + 4..at + 8].copy_from_slice(&number[4..]);
            }
        }
    }));
    forge.checksums = Some(Box::new(move |table: &mut Vec<u8>| {
        for &(at, by) in &checksums {
            if let Some(byte) = table.get_mut(at as usize) {
                *byte ^= by;
            }
        }
    }));
    forge.text = Some(Box::new(move |text: &mut Vec<u8>| {
        for (at, bytes) in &texts {
            let at = (*at as usize).min(text.len());
            let end = (at + 1).min(text.len());
            text.splice(at..end, bytes.iter().copied());
        }
    }));
    let mut file = forge.seal();
    file.truncate(file.len() - cut.min(file.len()));
    touch(&file);
}

fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    if let Some(end) = at.checked_add(field.len())
        && let Some(place) = bytes.get_mut(at..end)
    {
        place.copy_from_slice(field);
    }
}

/// Makes right whatever checksum of a file can be found, so that a fuzzer is not stopped by the first of them.
pub(crate) fn seal(file: &mut [u8]) {
    const HEADER: usize = 4096;
    if file.len() < 2 * HEADER {
        return;
    }
    let length = (file.len() as u64).to_le_bytes();
    put(file, 24, &length);
    let field = |file: &[u8], at: usize| usize::try_from(u64_at(file, at)).unwrap_or(usize::MAX);
    let part = |file: &[u8], at: usize, length: usize| {
        file.get(at..at.checked_add(length)?).map(<[u8]>::to_vec)
    };
    let directory = part(file, field(file, 40), field(file, 48));
    if let Some(directory) = &directory {
        let copy_at = field(file, 56);
        put(file, copy_at, directory);
        put(file, 80, &crc32fast::hash(directory).to_le_bytes());
        let parsed: Option<Json> = serde_json::from_slice(directory).ok();
        let mut at = field(file, 64);
        let sections = parsed.as_ref().and_then(|parsed| parsed["sections"].as_array());
        for section in sections.into_iter().flatten() {
            let number = |key: &str| section[key].as_u64().and_then(|n| usize::try_from(n).ok());
            let (Some(offset), Some(length)) = (number("offset"), number("length")) else {
                continue;
            };
            let Some(bytes) = part(file, offset, length) else { continue };
            for block in bytes.chunks(65536) {
                put(file, at, &crc32fast::hash(block).to_le_bytes());
                at = at.saturating_add(4);
            }
        }
    }
    if let Some(table) = part(file, field(file, 64), field(file, 72)) {
        put(file, 84, &crc32fast::hash(&table).to_le_bytes());
    }
    let crc = crc32fast::hash(&file[..HEADER - 4]).to_le_bytes();
    put(file, HEADER - 4, &crc);
    let header = file[..HEADER].to_vec();
    let copy_at = file.len() - HEADER;
    put(file, copy_at, &header);
}
