//! The directory: what every byte range of the file is. SPEC sections "Directory" to "Attributes".
//!
//! Parsing here proves, once, everything that the counts allow without touching a section: later accesses rely on
//! `section.length` being what the counts ask for, and on every product having been computed without overflow.

#![forbid(unsafe_code)]

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value as Json, json};

use super::header::Header;
use super::{
    ALIGNMENT_MAX, ALIGNMENT_MIN, Attribute, BLOCK_SIZE, DType, Dim, Fingerprint, HEADER_SIZE,
    Increment, OffsetWidth, Schema, Shard, json, product,
};
use crate::error::FormatError;

/// A byte range of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Section {
    pub offset: u64,
    pub length: u64,
    pub crc: u32,
}

impl Section {
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.length
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.length.div_ceil(BLOCK_SIZE)
    }
}

/// A table of offsets in a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Table {
    pub section: usize,
    pub width: OffsetWidth,
}

/// Where the lengths along an axis are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AxisLengths {
    /// Every sample has this length.
    Constant(u64),
    /// N+1 offsets.
    Table(Table),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AxisEntry {
    pub name: String,
    pub total: u64,
    pub lengths: AxisLengths,
}

/// Where an attribute's bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AttributeEntry {
    pub attribute: Attribute,
    /// Elements in the arena; for string types, the number of strings.
    pub total: u64,
    /// The arena.
    pub data: usize,
    /// Own N+1 table, in elements.
    pub offsets: Option<Table>,
    /// N+1 table in bytes, for string types.
    pub bytes: Option<Table>,
    /// End of each string, in bytes from the start of the arena, for string types with dimensions.
    pub ends: Option<Table>,
    /// One bit a sample, for optional attributes.
    pub validity: Option<usize>,
}

/// An attribute that this version cannot read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub name: String,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Directory {
    pub alignment: u64,
    pub sections: Vec<Section>,
    pub axes: Vec<AxisEntry>,
    pub attributes: Vec<AttributeEntry>,
    pub refused: Vec<Refused>,
    pub statistics: Option<usize>,
    pub metadata: Map<String, Json>,
    /// Which part of a dataset in several files this is.
    pub shard: Option<Shard>,
    /// The file whose samples have the attributes of this one as well.
    pub base: Option<Fingerprint>,
    /// The logical schema of the attributes that can be read.
    pub schema: Schema,
}

/// What an entry at `place` should have been.
fn wrong(place: &str, expected: impl Into<String>, found: &Json) -> FormatError {
    let mut found = found.to_string();
    if found.len() > 80 {
        let cut = (0..=77).rev().find(|&at| found.is_char_boundary(at)).unwrap_or(0);
        found.truncate(cut);
        found.push_str("...");
    }
    FormatError::Directory { place: place.to_owned(), expected: expected.into(), found }
}

/// A JSON object with the place it stands at, for errors.
struct Object<'a> {
    map: &'a Map<String, Json>,
    place: String,
}

impl<'a> Object<'a> {
    fn new(value: &'a Json, place: String) -> Result<Self, FormatError> {
        match value {
            Json::Object(map) => Ok(Object { map, place }),
            other => Err(wrong(&place, "an object", other)),
        }
    }

    fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.place)
    }

    fn get(&self, key: &str) -> &'a Json {
        self.map.get(key).unwrap_or(&Json::Null)
    }

    fn count(&self, key: &str) -> Result<u64, FormatError> {
        self.get(key)
            .as_u64()
            .ok_or_else(|| wrong(&self.key(key), "an integer of at least 0", self.get(key)))
    }

    fn text(&self, key: &str) -> Result<&'a str, FormatError> {
        self.get(key).as_str().ok_or_else(|| wrong(&self.key(key), "a string", self.get(key)))
    }

    fn flag(&self, key: &str) -> Result<bool, FormatError> {
        match self.get(key) {
            Json::Null => Ok(false),
            Json::Bool(flag) => Ok(*flag),
            other => Err(wrong(&self.key(key), "true or false", other)),
        }
    }

    fn array(&self, key: &str) -> Result<&'a [Json], FormatError> {
        match self.get(key) {
            Json::Array(items) => Ok(items),
            other => Err(wrong(&self.key(key), "an array", other)),
        }
    }

    fn section(&self, key: &str, sections: &[Section]) -> Result<usize, FormatError> {
        let index = self.count(key)?;
        usize::try_from(index).ok().filter(|&index| index < sections.len()).ok_or_else(|| {
            wrong(
                &self.key(key),
                format!("the index of one of the {} sections", sections.len()),
                self.get(key),
            )
        })
    }

    fn width(&self, key: &str, total: u64) -> Result<OffsetWidth, FormatError> {
        let width = OffsetWidth::of_total(total);
        if self.text(key)? == width.name() {
            Ok(width)
        } else {
            Err(wrong(
                &self.key(key),
                format!("{:?}, because the total is {total}", width.name()),
                self.get(key),
            ))
        }
    }
}

/// Checked sizes: everything that is multiplied or added on the way to a byte count.
struct Sizes<'a> {
    samples: u64,
    sections: &'a [Section],
}

impl Sizes<'_> {
    fn product(&self, place: &str, factors: &[u64]) -> Result<u64, FormatError> {
        product(factors.iter().copied())
            .ok_or_else(|| FormatError::Overflow { place: place.to_owned() })
    }

    fn require(&self, place: &str, section: usize, expected: u64) -> Result<(), FormatError> {
        let found = self.sections[section].length;
        if found == expected {
            return Ok(());
        }
        Err(FormatError::SectionSize { place: place.to_owned(), section, expected, found })
    }

    fn table(
        &self,
        place: &str,
        section: usize,
        entries: u64,
        width: OffsetWidth,
    ) -> Result<Table, FormatError> {
        let expected = self.product(place, &[entries, width.size() as u64])?;
        self.require(place, section, expected)?;
        Ok(Table { section, width })
    }
}

impl Directory {
    /// Parses and checks the directory of a file with this header. The CRC has been checked.
    pub(crate) fn parse(bytes: &[u8], header: &Header) -> Result<Self, FormatError> {
        let document = json::parse(bytes)?;
        let root = Object::new(&document, "directory".to_owned())?;
        let alignment = root.count("alignment")?;
        if !alignment.is_power_of_two() || !(ALIGNMENT_MIN..=ALIGNMENT_MAX).contains(&alignment) {
            return Err(wrong(
                "directory.alignment",
                format!("a power of two in {ALIGNMENT_MIN}..={ALIGNMENT_MAX}"),
                root.get("alignment"),
            ));
        }
        let sections = parse_sections(&root)?;
        check_sections(&sections, alignment, header)?;
        let sizes = Sizes { samples: header.samples, sections: &sections };
        let axes = parse_axes(&root, &sizes)?;
        let (attributes, refused) = parse_attributes(&root, &sizes, &axes)?;
        let schema = parse_schema(&axes, &attributes, &refused)?;
        let statistics = match root.get("statistics") {
            Json::Null => None,
            _ => Some(root.section("statistics", &sections)?),
        };
        let metadata = match root.get("metadata") {
            Json::Null => Map::new(),
            Json::Object(map) => map.clone(),
            other => return Err(wrong("directory.metadata", "an object", other)),
        };
        Ok(Directory {
            alignment,
            sections,
            axes,
            attributes,
            refused,
            statistics,
            metadata,
            shard: parse_shard(&root, header)?,
            base: parse_base(&root, header)?,
            schema,
        })
    }

    /// Counts the places of sections from another position than the start of the file.
    pub(crate) fn count_from(&mut self, start: u64) {
        for section in &mut self.sections {
            if section.length > 0 {
                section.offset += start;
            }
        }
    }

    /// The canonical text: the same directory always gives the same bytes.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let sections: Vec<Json> = self
            .sections
            .iter()
            .map(|section| json!({ "offset": section.offset, "length": section.length, "crc": section.crc }))
            .collect();
        let axes: Vec<Json> = self
            .axes
            .iter()
            .map(|axis| match axis.lengths {
                AxisLengths::Constant(length) => {
                    json!({ "name": axis.name, "total": axis.total, "constant": length })
                }
                AxisLengths::Table(table) => json!({
                    "name": axis.name, "total": axis.total,
                    "offsets": table.section, "stored": table.width.name(),
                }),
            })
            .collect();
        let attributes: Vec<Json> = self
            .attributes
            .iter()
            .map(|entry| {
                let mut map = entry.attribute.to_json();
                map.insert("total".into(), json!(entry.total));
                map.insert("data".into(), json!(entry.data));
                for (key, stored, table) in [
                    ("offsets", "offsets_stored", entry.offsets),
                    ("bytes", "bytes_stored", entry.bytes),
                    ("ends", "ends_stored", entry.ends),
                ] {
                    if let Some(table) = table {
                        map.insert(key.into(), json!(table.section));
                        map.insert(stored.into(), json!(table.width.name()));
                    }
                }
                if let Some(validity) = entry.validity {
                    map.insert("validity".into(), json!(validity));
                }
                map.into()
            })
            .collect();
        let mut root = json!({
            "alignment": self.alignment,
            "sections": sections,
            "axes": axes,
            "attributes": attributes,
        });
        if let Some(statistics) = self.statistics {
            root["statistics"] = json!(statistics);
        }
        if !self.metadata.is_empty() {
            root["metadata"] = self.metadata.clone().into();
        }
        if let Some(shard) = &self.shard {
            root["shard"] = shard_to_json(shard);
        }
        if let Some(base) = &self.base {
            root["base"] = json!({
                "file_bytes": base.file_bytes,
                "samples": base.samples,
                "directory_crc": base.directory_crc,
                "checksums_crc": base.checksums_crc,
            });
        }
        json::to_canonical(&root).into_bytes()
    }

    /// Entries that the checksum table must have.
    pub(crate) fn blocks(&self) -> u64 {
        // No overflow: the sections do not overlap, so their lengths add up to less than the file's.
        self.sections.iter().map(Section::blocks).sum()
    }

    /// Index in the checksum table of the first block of each section.
    pub(crate) fn first_blocks(&self) -> Vec<u64> {
        let mut next = 0;
        self.sections
            .iter()
            .map(|section| {
                let first = next;
                next += section.blocks();
                first
            })
            .collect()
    }
}

fn parse_shard(root: &Object<'_>, header: &Header) -> Result<Option<Shard>, FormatError> {
    let value = root.get("shard");
    if value.is_null() {
        return Ok(None);
    }
    let entry = Object::new(value, "directory.shard".to_owned())?;
    let dataset = entry.text("dataset")?.to_owned();
    if !(1..=super::MAX_NAME_BYTES).contains(&dataset.len()) {
        let expected = format!("1 to {} bytes", super::MAX_NAME_BYTES);
        return Err(wrong(&entry.key("dataset"), expected, entry.get("dataset")));
    }
    let first = match entry.get("first") {
        Json::Null => None,
        _ => Some(entry.count("first")?),
    };
    if first.is_some_and(|first| {
        first.checked_add(header.samples).is_none_or(|end| end > i64::MAX as u64)
    }) {
        return Err(FormatError::Overflow { place: entry.key("first") });
    }
    let source = match entry.get("source") {
        Json::Null => None,
        _ => Some(entry.text("source")?.to_owned()),
    };
    let (number, last) = (entry.count("number")?, entry.flag("last")?);
    Ok(Some(Shard { dataset, number, first, last, source }))
}

fn shard_to_json(shard: &Shard) -> Json {
    let mut map = Map::new();
    map.insert("dataset".into(), json!(shard.dataset));
    map.insert("number".into(), json!(shard.number));
    if let Some(first) = shard.first {
        map.insert("first".into(), json!(first));
    }
    if shard.last {
        map.insert("last".into(), json!(true));
    }
    if let Some(source) = &shard.source {
        map.insert("source".into(), json!(source));
    }
    map.into()
}

fn parse_base(root: &Object<'_>, header: &Header) -> Result<Option<Fingerprint>, FormatError> {
    let value = root.get("base");
    if value.is_null() {
        return Ok(None);
    }
    let entry = Object::new(value, "directory.base".to_owned())?;
    let crc = |key: &str| {
        u32::try_from(entry.count(key)?)
            .map_err(|_| wrong(&entry.key(key), "an unsigned 32-bit integer", entry.get(key)))
    };
    let base = Fingerprint {
        file_bytes: entry.count("file_bytes")?,
        samples: entry.count("samples")?,
        directory_crc: crc("directory_crc")?,
        checksums_crc: crc("checksums_crc")?,
    };
    if base.samples != header.samples {
        let expected = format!("{}, the samples of this file", header.samples);
        return Err(wrong(&entry.key("samples"), expected, entry.get("samples")));
    }
    Ok(Some(base))
}

fn parse_sections(root: &Object<'_>) -> Result<Vec<Section>, FormatError> {
    let items = root.array("sections")?;
    let mut sections = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let entry = Object::new(item, format!("sections[{index}]"))?;
        let crc = u32::try_from(entry.count("crc")?).map_err(|_| {
            wrong(&entry.key("crc"), "an unsigned 32-bit integer", entry.get("crc"))
        })?;
        sections.push(Section {
            offset: entry.count("offset")?,
            length: entry.count("length")?,
            crc,
        });
    }
    Ok(sections)
}

fn check_sections(
    sections: &[Section],
    alignment: u64,
    header: &Header,
) -> Result<(), FormatError> {
    let (low, high) = (HEADER_SIZE as u64, header.checksums_offset);
    let mut places = Vec::with_capacity(sections.len());
    for (index, section) in sections.iter().enumerate() {
        if section.length == 0 {
            if section.offset != 0 {
                return Err(FormatError::Directory {
                    place: format!("sections[{index}].offset"),
                    expected: "0, because the section is empty".to_owned(),
                    found: section.offset.to_string(),
                });
            }
            continue;
        }
        let end = section.offset.checked_add(section.length);
        if section.offset < low || end.is_none_or(|end| end > high) {
            return Err(FormatError::SectionBounds {
                section: index,
                offset: section.offset,
                length: section.length,
                low,
                high,
            });
        }
        if section.offset % alignment != 0 {
            return Err(FormatError::SectionAlignment {
                section: index,
                offset: section.offset,
                alignment,
            });
        }
        places.push((section.offset, index));
    }
    places.sort_unstable();
    for pair in places.windows(2) {
        let ((_, first), (offset, second)) = (pair[0], pair[1]);
        if sections[first].end() > offset {
            return Err(FormatError::SectionOverlap { first, second, offset });
        }
    }
    let blocks: u64 = sections.iter().map(Section::blocks).sum();
    if header.checksums_length != blocks * 4 {
        return Err(FormatError::Header {
            field: "checksums_length",
            expected: format!("{} bytes for {blocks} blocks", blocks * 4),
            found: header.checksums_length.to_string(),
        });
    }
    Ok(())
}

fn parse_name(
    entry: &Object<'_>,
    what: &'static str,
    seen: &mut HashSet<String>,
) -> Result<String, FormatError> {
    let name = entry.text("name")?;
    if !(1..=super::MAX_NAME_BYTES).contains(&name.len()) {
        return Err(wrong(
            &entry.key("name"),
            format!("1 to {} bytes", super::MAX_NAME_BYTES),
            entry.get("name"),
        ));
    }
    if !seen.insert(name.to_owned()) {
        return Err(FormatError::Duplicate { what, name: name.to_owned() });
    }
    Ok(name.to_owned())
}

fn parse_axes(root: &Object<'_>, sizes: &Sizes<'_>) -> Result<Vec<AxisEntry>, FormatError> {
    let mut seen = HashSet::new();
    let mut axes = Vec::new();
    for (index, item) in root.array("axes")?.iter().enumerate() {
        let entry = Object::new(item, format!("axes[{index}]"))?;
        let name = parse_name(&entry, "axis", &mut seen)?;
        let place = format!("axis {name:?}");
        let total = entry.count("total")?;
        let lengths = match (entry.get("constant"), entry.get("offsets")) {
            (Json::Null, _) => {
                let section = entry.section("offsets", sizes.sections)?;
                let width = entry.width("stored", total)?;
                AxisLengths::Table(sizes.table(&place, section, sizes.samples + 1, width)?)
            }
            (_, Json::Null) => {
                let length = entry.count("constant")?;
                let expected = sizes.product(&place, &[sizes.samples, length])?;
                if expected != total {
                    return Err(wrong(
                        &entry.key("total"),
                        format!("{expected}, samples times the constant"),
                        entry.get("total"),
                    ));
                }
                AxisLengths::Constant(length)
            }
            _ => return Err(wrong(&entry.place, "either `constant` or `offsets`", item)),
        };
        axes.push(AxisEntry { name, total, lengths });
    }
    Ok(axes)
}

type Attributes = (Vec<AttributeEntry>, Vec<Refused>);

fn parse_attributes(
    root: &Object<'_>,
    sizes: &Sizes<'_>,
    axes: &[AxisEntry],
) -> Result<Attributes, FormatError> {
    let mut seen = HashSet::new();
    let axis_totals = axes.iter().map(|axis| (axis.name.as_str(), axis.total)).collect();
    let (mut attributes, mut refused) = (Vec::new(), Vec::new());
    for (index, item) in root.array("attributes")?.iter().enumerate() {
        let entry = Object::new(item, format!("attributes[{index}]"))?;
        let name = parse_name(&entry, "attribute", &mut seen)?;
        match unreadable(&entry)? {
            Some(reason) => refused.push(Refused { name, reason }),
            None => attributes.push(parse_attribute(&entry, name, sizes, &axis_totals)?),
        }
    }
    Ok((attributes, refused))
}

/// Why this version cannot read the attribute, if so: an unknown dtype, encoding or requirement refuses the attribute
/// and not the file.
fn unreadable(entry: &Object<'_>) -> Result<Option<String>, FormatError> {
    if !matches!(entry.get("encoding"), Json::Null) {
        let encoding = entry.text("encoding")?;
        if encoding != "raw" {
            return Ok(Some(format!(
                "it has the encoding {encoding:?}, which this version does not know"
            )));
        }
    }
    if !matches!(entry.get("requires"), Json::Null)
        && let Some(requirement) = entry.array("requires")?.first()
    {
        return Ok(Some(format!("it requires {requirement}, which this version does not know")));
    }
    for key in ["dtype", "stored"] {
        if key == "stored" && matches!(entry.get(key), Json::Null) {
            continue;
        }
        let name = entry.text(key)?;
        if name.parse::<DType>().is_err() {
            return Ok(Some(format!(
                "it has the {key} {name:?}, which this version does not know"
            )));
        }
    }
    Ok(None)
}

fn parse_dtype(entry: &Object<'_>, key: &str) -> Result<DType, FormatError> {
    entry.text(key)?.parse().map_err(|_| wrong(&entry.key(key), "a dtype", entry.get(key)))
}

fn parse_attribute(
    entry: &Object<'_>,
    name: String,
    sizes: &Sizes<'_>,
    axis_totals: &HashMap<&str, u64>,
) -> Result<AttributeEntry, FormatError> {
    let place = format!("attribute {name:?}");
    let dtype = parse_dtype(entry, "dtype")?;
    let stored = match entry.get("stored") {
        Json::Null => dtype,
        _ => parse_dtype(entry, "stored")?,
    };
    let mut shape = Vec::new();
    for item in entry.array("shape")? {
        shape.push(match item {
            Json::String(axis) if axis_totals.contains_key(axis.as_str()) => {
                Dim::Axis(axis.clone())
            }
            other => match other.as_u64() {
                Some(extent) => Dim::Fixed(extent),
                None => {
                    return Err(wrong(
                        &entry.key("shape"),
                        "integers of at least 0 and names of axes",
                        other,
                    ));
                }
            },
        });
    }
    let mut attribute =
        Attribute::new(name, dtype, shape).stored(stored).increment(parse_increment(entry)?);
    attribute = match entry.get("cat_dim") {
        Json::Null => attribute.stack(),
        _ => attribute.cat_dim(usize::try_from(entry.count("cat_dim")?).unwrap_or(usize::MAX)),
    };
    if entry.flag("optional")? {
        attribute = attribute.optional();
    }
    if entry.flag("hidden")? {
        attribute = attribute.hidden();
    }
    locate(entry, attribute, &place, sizes, axis_totals)
}

/// Finds the sections of an attribute and proves their sizes from the counts.
fn locate(
    entry: &Object<'_>,
    attribute: Attribute,
    place: &str,
    sizes: &Sizes<'_>,
    axis_totals: &HashMap<&str, u64>,
) -> Result<AttributeEntry, FormatError> {
    let overflow = || FormatError::Overflow { place: place.to_owned() };
    let fixed = attribute.fixed_elements().ok_or_else(overflow)?;
    sizes.product(place, &[fixed, attribute.dtype().size() as u64])?;
    let total = entry.count("total")?;
    let own = attribute.needs_own_offsets();
    if !own {
        let count = match attribute.ragged_dims().next() {
            Some(axis) => axis_totals[axis],
            None => sizes.samples,
        };
        let expected = sizes.product(place, &[count, fixed])?;
        if total != expected {
            return Err(wrong(
                &entry.key("total"),
                format!("{expected}, computed from the counts"),
                entry.get("total"),
            ));
        }
    }
    let data = entry.section("data", sizes.sections)?;
    let entries = sizes.samples + 1;
    let table = |key: &str, stored: &str, entries: u64, total: u64| {
        let section = entry.section(key, sizes.sections)?;
        let width = entry.width(stored, total)?;
        sizes.table(&format!("{place}, {key}"), section, entries, width)
    };
    let offsets =
        if own { Some(table("offsets", "offsets_stored", entries, total)?) } else { None };
    let (mut bytes, mut ends) = (None, None);
    if attribute.dtype().is_string() {
        let length = sizes.sections[data].length;
        bytes = Some(table("bytes", "bytes_stored", entries, length)?);
        if !attribute.shape().is_empty() {
            ends = Some(table("ends", "ends_stored", total, length)?);
        }
    } else {
        let length = sizes.product(place, &[total, attribute.stored_dtype().size() as u64])?;
        // What readers give is widened; that it fits too is proved here, once.
        sizes.product(place, &[total, attribute.dtype().size() as u64])?;
        sizes.require(place, data, length)?;
    }
    let validity = if attribute.is_optional() {
        let section = entry.section("validity", sizes.sections)?;
        sizes.require(&format!("{place}, validity"), section, sizes.samples.div_ceil(8))?;
        Some(section)
    } else {
        None
    };
    Ok(AttributeEntry { attribute, total, data, offsets, bytes, ends, validity })
}

fn parse_increment(entry: &Object<'_>) -> Result<Increment, FormatError> {
    let unknown = |found: &Json| {
        wrong(
            &entry.key("increment"),
            "null, an axis, a list of axes and nulls, or {\"attribute\": name}",
            found,
        )
    };
    match entry.get("increment") {
        Json::Null => Ok(Increment::None),
        Json::String(axis) => Ok(Increment::Axis(axis.clone())),
        Json::Array(rows) => rows
            .iter()
            .map(|row| match row {
                Json::Null => Ok(None),
                Json::String(axis) => Ok(Some(axis.clone())),
                other => Err(unknown(other)),
            })
            .collect::<Result<_, _>>()
            .map(Increment::PerRow),
        found @ Json::Object(map) => match map.get("attribute") {
            Some(Json::String(name)) => Ok(Increment::Attribute(name.clone())),
            _ => Err(unknown(found)),
        },
        other => Err(unknown(other)),
    }
}

/// The logical schema, checked. An attribute whose increments come from a refused attribute is legal (it is the batching
/// of it that is refused), so those increments are left out of the check.
fn parse_schema(
    axes: &[AxisEntry],
    attributes: &[AttributeEntry],
    refused: &[Refused],
) -> Result<Schema, FormatError> {
    let checked = attributes
        .iter()
        .map(|entry| match entry.attribute.increment_rule() {
            Increment::Attribute(name) if refused.iter().any(|other| other.name == *name) => {
                entry.attribute.clone().increment(Increment::None)
            }
            _ => entry.attribute.clone(),
        })
        .collect();
    let names: Vec<String> = axes.iter().map(|axis| axis.name.clone()).collect();
    let schema = Schema::new(names, checked).map_err(|error| FormatError::Directory {
        place: "attributes".to_owned(),
        expected: "a schema that keeps the rules".to_owned(),
        found: error.to_string(),
    })?;
    Ok(schema.with_attributes(attributes.iter().map(|entry| entry.attribute.clone()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(attribute: &str) -> Result<Directory, FormatError> {
        let header = Header {
            minor: 0,
            file_length: 4096 + 64 + 64 + 4096,
            samples: 0,
            directory_offset: 4096,
            directory_length: 0,
            directory_copy_offset: 4096,
            directory_crc: 0,
            checksums_offset: 4096,
            checksums_length: 0,
            checksums_crc: 0,
        };
        let text = format!(
            r#"{{"alignment":64,"axes":[],"sections":[{{"offset":0,"length":0,"crc":0}}],
                "attributes":[{{"name":"x","total":0,"data":0,{attribute}}}]}}"#
        );
        Directory::parse(text.as_bytes(), &header)
    }

    #[test]
    fn a_sample_beyond_63_bits_overflows_even_where_there_are_no_samples() {
        assert!(parse(r#""dtype":"f64","shape":[1152921504606846975]"#).is_ok());
        for shape in ["[1152921504606846976]", "[4294967296,4294967296]"] {
            let found = parse(&format!(r#""dtype":"f64","shape":{shape}"#));
            assert!(matches!(found, Err(FormatError::Overflow { .. })), "{shape}: {found:?}");
        }
        assert!(parse(r#""dtype":"f64","shape":[4611686018427387904,4,0]"#).is_ok());
    }
}
