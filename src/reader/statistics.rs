//! The statistics that the writer gathered, read when asked for.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::Dataset;
use super::plan::fetch;
use crate::error::{FormatError, Result};
use crate::format::json;

/// Statistics of the values of one attribute, as decimal text, so that 64-bit integers survive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ValueStatistics {
    /// Number of values.
    pub count: String,
    /// Number of values that are NaN; the others make up the rest.
    pub nan: String,
    /// Least value, or `None` if there is none or the dtype has no order.
    pub min: Option<String>,
    /// Greatest value.
    pub max: Option<String>,
    /// Mean, in f64.
    pub mean: Option<String>,
}

/// Statistics of lengths, as decimal text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LengthStatistics {
    /// Number of lengths.
    pub count: String,
    /// The shortest.
    pub min: Option<String>,
    /// The longest.
    pub max: Option<String>,
    /// The mean.
    pub mean: Option<String>,
}

/// Statistics of one attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttributeStatistics {
    /// Of the values of a tensor attribute.
    Values(ValueStatistics),
    /// Of the lengths of strings, in bytes.
    StringBytes(LengthStatistics),
}

/// Statistics of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// By name of the attribute.
    pub attributes: BTreeMap<String, AttributeStatistics>,
    /// Lengths of samples, by name of the axis.
    pub axes: BTreeMap<String, LengthStatistics>,
}

impl Dataset {
    /// The statistics of the whole file, or `None` if it was written without.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io); [`Error::Format`](crate::Error::Format) if the section is damaged.
    pub fn statistics(&self) -> Result<Option<Statistics>> {
        let Some(section) = self.inner.directory.statistics else { return Ok(None) };
        let section = self.inner.directory.sections[section];
        // At most the file's length; it was proved to lie in the file.
        let mut bytes = vec![0; section.length as usize];
        fetch(&self.inner.storage, section.offset, &mut bytes)?;
        let found = crc32fast::hash(&bytes);
        let at = |fault: FormatError| fault.at(self.path());
        if found != section.crc {
            return Err(at(FormatError::Checksum {
                what: "the statistics section".to_owned(),
                expected: section.crc,
                found,
            }));
        }
        let document = json::parse(&bytes).map_err(at)?;
        let text = |entry: &Json, key: &str| entry[key].as_str().map(str::to_owned);
        let lengths = |entry: &Json| LengthStatistics {
            count: text(entry, "count").unwrap_or_default(),
            min: text(entry, "min"),
            max: text(entry, "max"),
            mean: text(entry, "mean"),
        };
        let entries = |key: &str| document[key].as_object().into_iter().flatten();
        Ok(Some(Statistics {
            attributes: entries("attributes")
                .map(|(name, entry)| {
                    let statistics = match entry.get("bytes") {
                        Some(bytes) => AttributeStatistics::StringBytes(lengths(bytes)),
                        None => AttributeStatistics::Values(ValueStatistics {
                            count: text(entry, "count").unwrap_or_default(),
                            nan: text(entry, "nan").unwrap_or_default(),
                            min: text(entry, "min"),
                            max: text(entry, "max"),
                            mean: text(entry, "mean"),
                        }),
                    };
                    (name.clone(), statistics)
                })
                .collect(),
            axes: entries("axes").map(|(name, entry)| (name.clone(), lengths(entry))).collect(),
        }))
    }
}
