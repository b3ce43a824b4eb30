//! Takes a file apart, lets each part be changed, and puts it together again with places and checksums that match.
//!
//! Written from the specification and not from the library's code: that an unchanged file comes back byte by byte is one
//! more proof that both say the same.

use serde_json::{Value as Json, json};

pub(crate) const HEADER: usize = 4096;
const BLOCK: usize = 65536;

/// Changes one kind of part on the way.
pub(crate) type Edit<T> = Option<Box<dyn Fn(&mut T)>>;

/// A file in parts.
pub(crate) struct Forge {
    pub(crate) samples: u64,
    pub(crate) minor: u16,
    /// The sections' bytes, in list order.
    pub(crate) sections: Vec<Vec<u8>>,
    /// The directory; `sections` in it is made anew from the parts.
    pub(crate) directory: Json,
    /// Whether sections lie in list order without more padding than needed.
    pub(crate) compact: bool,
    /// Changes the section list after it was made.
    pub(crate) list: Edit<Json>,
    /// Changes the directory's text.
    pub(crate) text: Edit<Vec<u8>>,
    /// Changes the checksum table.
    pub(crate) checksums: Edit<Vec<u8>>,
    /// Changes the header, before its checksum is made.
    pub(crate) header: Edit<Vec<u8>>,
    /// Changes the finished file; nothing is sealed after this.
    pub(crate) raw: Edit<Vec<u8>>,
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

pub(crate) fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

/// Replaces what stands once in a text.
pub(crate) fn replace(text: &mut Vec<u8>, from: &str, to: &[u8]) {
    let places: Vec<usize> =
        (0..text.len()).filter(|&at| text[at..].starts_with(from.as_bytes())).collect();
    assert_eq!(places.len(), 1, "{from:?} stands {} times", places.len());
    text.splice(places[0]..places[0] + from.len(), to.iter().copied());
}

impl Forge {
    pub(crate) fn open(bytes: &[u8]) -> Self {
        let (at, length) = (u64_at(bytes, 40) as usize, u64_at(bytes, 48) as usize);
        let directory: Json = serde_json::from_slice(&bytes[at..at + length]).expect("JSON");
        let sections = directory["sections"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|section| {
                let number = |key: &str| section[key].as_u64().expect("a number") as usize;
                bytes[number("offset")..number("offset") + number("length")].to_vec()
            })
            .collect();
        Forge {
            samples: u64_at(bytes, 32),
            minor: u16::from_le_bytes([bytes[10], bytes[11]]),
            sections,
            directory,
            compact: true,
            list: None,
            text: None,
            checksums: None,
            header: None,
            raw: None,
        }
    }

    /// The entry of an axis or attribute.
    pub(crate) fn entry(&mut self, kind: &str, name: &str) -> &mut Json {
        self.directory[kind]
            .as_array_mut()
            .expect("a list")
            .iter_mut()
            .find(|entry| entry["name"] == name)
            .unwrap_or_else(|| panic!("no {name} in {kind}"))
    }

    pub(crate) fn axis(&mut self, name: &str) -> &mut Json {
        self.entry("axes", name)
    }

    pub(crate) fn attribute(&mut self, name: &str) -> &mut Json {
        self.entry("attributes", name)
    }

    /// The bytes of the section that `key` of an entry refers to.
    pub(crate) fn section(&mut self, kind: &str, name: &str, key: &str) -> &mut Vec<u8> {
        let index = self.entry(kind, name)[key].as_u64().expect("an index");
        &mut self.sections[index as usize]
    }

    /// Changes the u32 entry `index` of a table.
    pub(crate) fn set_entry(&mut self, kind: &str, name: &str, key: &str, index: usize, to: u32) {
        put(self.section(kind, name, key), index * 4, &to.to_le_bytes());
    }

    /// Puts the file together.
    pub(crate) fn seal(mut self) -> Vec<u8> {
        let alignment = self.directory["alignment"].as_u64().map_or(64, |a| a.clamp(64, 4096));
        let alignment = (alignment as usize).next_power_of_two();
        let mut places = vec![0; self.sections.len()];
        let mut end = HEADER;
        let mut order: Vec<usize> = (0..self.sections.len()).collect();
        if !self.compact {
            order.reverse();
        }
        for index in order {
            if self.sections[index].is_empty() {
                continue;
            }
            places[index] = if self.compact {
                end.next_multiple_of(alignment)
            } else {
                (end + 1).next_multiple_of(alignment)
            };
            end = places[index] + self.sections[index].len();
        }
        let list: Vec<Json> = self
            .sections
            .iter()
            .zip(&places)
            .map(|(section, place)| {
                json!({ "offset": place, "length": section.len(), "crc": crc32fast::hash(section) })
            })
            .collect();
        if self.directory.is_object() {
            self.directory["sections"] = list.into();
        }
        if let Some(edit) = &self.list {
            edit(&mut self.directory["sections"]);
        }
        self.directory.sort_all_objects();
        let mut directory = self.directory.to_string().into_bytes();
        if let Some(edit) = &self.text {
            edit(&mut directory);
        }
        let mut checksums: Vec<u8> = self
            .sections
            .iter()
            .flat_map(|section| section.chunks(BLOCK))
            .flat_map(|block| crc32fast::hash(block).to_le_bytes())
            .collect();
        if let Some(edit) = &self.checksums {
            edit(&mut checksums);
        }
        let checksums_at = end.next_multiple_of(64);
        let directory_at = (checksums_at + checksums.len()).next_multiple_of(64);
        let copy_at = (directory_at + directory.len()).next_multiple_of(64);
        let header_copy_at = (copy_at + directory.len()).next_multiple_of(64);

        let mut header = vec![0; HEADER];
        put(&mut header, 0, b"\x89FNCP\r\n\x1a");
        put(&mut header, 8, &1u16.to_le_bytes());
        put(&mut header, 10, &self.minor.to_le_bytes());
        put(&mut header, 12, &(BLOCK as u32).to_le_bytes());
        for (at, field) in [
            (24, (header_copy_at + HEADER) as u64),
            (32, self.samples),
            (40, directory_at as u64),
            (48, directory.len() as u64),
            (56, copy_at as u64),
            (64, checksums_at as u64),
            (72, checksums.len() as u64),
        ] {
            put(&mut header, at, &field.to_le_bytes());
        }
        put(&mut header, 80, &crc32fast::hash(&directory).to_le_bytes());
        put(&mut header, 84, &crc32fast::hash(&checksums).to_le_bytes());
        if let Some(edit) = &self.header {
            edit(&mut header);
        }
        let crc = crc32fast::hash(&header[..HEADER - 4]);
        put(&mut header, HEADER - 4, &crc.to_le_bytes());

        let mut file = vec![0; header_copy_at + HEADER];
        put(&mut file, 0, &header);
        for (section, place) in self.sections.iter().zip(places) {
            put(&mut file, place, section);
        }
        put(&mut file, checksums_at, &checksums);
        put(&mut file, directory_at, &directory);
        put(&mut file, copy_at, &directory);
        put(&mut file, header_copy_at, &header);
        if let Some(edit) = &self.raw {
            edit(&mut file);
        }
        file
    }
}
