//! The statistics that the writer gathered, read when asked for.

#![forbid(unsafe_code)]

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::Dataset;
use super::parts::FileView;
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

/// Statistics of a file, or of several together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// By name of the attribute.
    pub attributes: BTreeMap<String, AttributeStatistics>,
    /// Lengths of samples, by name of the axis.
    pub axes: BTreeMap<String, LengthStatistics>,
}

impl Dataset {
    /// The statistics of the whole file, whatever the view, or of all files together; `None` if one was written without.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io); [`Error::Format`](crate::Error::Format) if the section is damaged.
    pub fn statistics(&self) -> Result<Option<Statistics>> {
        let mut all: Option<Statistics> = None;
        for file in 0..self.inner.files.len() {
            let Some(of_file) = statistics_of(&self.inner.file(file))? else { return Ok(None) };
            match &mut all {
                None => all = Some(of_file),
                Some(all) => all.add(of_file, self.inner.files[file].directory.base.is_some()),
            }
        }
        Ok(all)
    }
}

fn statistics_of(file: &FileView<'_>) -> Result<Option<Statistics>> {
    let Some(section) = file.directory.statistics else { return Ok(None) };
    let section = file.directory.sections[section];
    // At most the file's length; it was proved to lie in the file.
    let mut bytes = vec![0; section.length as usize];
    fetch(file.storage, section.offset, &mut bytes)?;
    let found = crc32fast::hash(&bytes);
    let at = |fault: FormatError| fault.at(file.path());
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

impl Statistics {
    /// Adds those of another file: of further samples, or of further attributes of samples whose axes are counted already.
    fn add(&mut self, other: Statistics, same_samples: bool) {
        for (name, more) in other.attributes {
            match (self.attributes.get_mut(&name), more) {
                (Some(AttributeStatistics::Values(all)), AttributeStatistics::Values(more)) => {
                    all.add(&more);
                }
                (
                    Some(AttributeStatistics::StringBytes(all)),
                    AttributeStatistics::StringBytes(more),
                ) => all.add(&more),
                (Some(_), _) => {}
                (None, more) => drop(self.attributes.insert(name, more)),
            }
        }
        for (name, more) in other.axes {
            match self.axes.get_mut(&name) {
                Some(all) if !same_samples => all.add(&more),
                Some(_) => {}
                None => drop(self.axes.insert(name, more)),
            }
        }
    }
}

impl ValueStatistics {
    fn add(&mut self, other: &ValueStatistics) {
        let valid = |of: &ValueStatistics| number(&of.count) - number(&of.nan);
        self.mean = mean((valid(self), &self.mean), (valid(other), &other.mean));
        self.count = sum(&self.count, &other.count);
        self.nan = sum(&self.nan, &other.nan);
        self.min = extreme(self.min.take(), &other.min, Ordering::Less);
        self.max = extreme(self.max.take(), &other.max, Ordering::Greater);
    }
}

impl LengthStatistics {
    fn add(&mut self, other: &LengthStatistics) {
        let (here, there) = (number(&self.count), number(&other.count));
        self.mean = mean((here, &self.mean), (there, &other.mean));
        self.count = sum(&self.count, &other.count);
        self.min = extreme(self.min.take(), &other.min, Ordering::Less);
        self.max = extreme(self.max.take(), &other.max, Ordering::Greater);
    }
}

/// A count; text that is none counts nothing.
fn number(text: &str) -> f64 {
    text.parse().unwrap_or(0.0)
}

fn sum(one: &str, other: &str) -> String {
    let count = |text: &str| text.parse::<u128>().unwrap_or(0);
    (count(one) + count(other)).to_string()
}

/// Of two numbers as text, the one that compares so with the other.
fn extreme(one: Option<String>, other: &Option<String>, wanted: Ordering) -> Option<String> {
    let Some(other) = other else { return one };
    let Some(one) = one else { return Some(other.clone()) };
    // Integers of 64 bits are more than a float tells apart.
    let order = match (one.parse::<i128>(), other.parse::<i128>()) {
        (Ok(one), Ok(other)) => Some(one.cmp(&other)),
        _ => match (one.parse::<f64>(), other.parse::<f64>()) {
            (Ok(one), Ok(other)) => one.partial_cmp(&other),
            _ => None,
        },
    };
    Some(if order.is_some_and(|order| order.reverse() == wanted) { other.clone() } else { one })
}

/// The mean of values of which two means are known.
fn mean(one: (f64, &Option<String>), other: (f64, &Option<String>)) -> Option<String> {
    let parse = |text: &Option<String>| text.as_ref()?.parse::<f64>().ok();
    match (parse(one.1), parse(other.1)) {
        (Some(here), Some(there)) => {
            let count = one.0 + other.0;
            Some((here * (one.0 / count) + there * (other.0 / count)).to_string())
        }
        (None, Some(_)) => other.1.clone(),
        _ => one.1.clone(),
    }
}
