//! The size of a file that is not written yet, from counts and means.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use fencepost::DType;
use serde::Serialize;

/// An attribute as `fencepost plan --attribute` describes it: `x:f32:nodes=18.1:64`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlannedAttribute {
    name: String,
    dtype: DType,
    extents: Vec<Extent>,
    /// Mean bytes of a string.
    string: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
struct Extent {
    /// The axis, if the extent differs from sample to sample.
    axis: Option<String>,
    mean: f64,
}

impl PlannedAttribute {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let name = parts.next().filter(|name| !name.is_empty());
        let (Some(name), Some(dtype)) = (name, parts.next()) else {
            return Err("expected NAME:DTYPE:EXTENT:..., such as x:f32:nodes=18.1:64".into());
        };
        let dtype: DType = dtype.parse().map_err(|_| {
            let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
            format!("unknown dtype {dtype:?}: one of {}", names.join(", "))
        })?;
        let mut extents = parts.map(Extent::parse).collect::<Result<Vec<Extent>, String>>()?;
        let mut string = None;
        if dtype.is_string() {
            let length = extents.pop().filter(|length| length.axis.is_none());
            let Some(length) = length else {
                return Err(format!(
                    "{dtype} needs the mean length of a string: {name}:{dtype}:24"
                ));
            };
            string = Some(length.mean);
        }
        // The dimension that batching concatenates along, by PyTorch Geometric's rules of naming.
        let last = name.contains("index") || name == "face";
        let along = if last { extents.len().checked_sub(1) } else { Some(0) };
        let named = extents.iter().any(|extent| extent.axis.is_some());
        for (at, extent) in extents.iter_mut().enumerate() {
            let differs =
                extent.mean.fract() != 0.0 || (!named && Some(at) == along && extent.mean != 1.0);
            if extent.axis.is_none() && differs {
                extent.axis = Some(name.to_owned());
            }
        }
        Ok(PlannedAttribute { name: name.to_owned(), dtype, extents, string })
    }

    /// Mean number of elements of a sample. Where several dimensions differ from sample to sample, as if independently.
    fn elements(&self) -> f64 {
        self.extents.iter().map(|extent| extent.mean).product()
    }

    fn ragged(&self) -> usize {
        self.extents.iter().filter(|extent| extent.axis.is_some()).count()
    }
}

impl Extent {
    fn parse(text: &str) -> Result<Self, String> {
        let (axis, mean) = match text.split_once('=') {
            Some((axis, mean)) if !axis.is_empty() => (Some(axis.to_owned()), mean),
            Some(_) => return Err(format!("extent {text:?}: the axis has no name")),
            None => (None, text),
        };
        match mean.parse::<f64>() {
            Ok(mean) if mean.is_finite() && mean >= 0.0 => Ok(Extent { axis, mean }),
            _ => Err(format!("extent {text:?}: expected a mean such as 18.1, or nodes=18.1")),
        }
    }
}

/// What a file would have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) file_bytes: u64,
    pub(crate) sample_bytes: u64,
    pub(crate) attributes: Vec<PlannedPart>,
    pub(crate) axes: Vec<PlannedPart>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct PlannedPart {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dtype: Option<&'static str>,
    pub(crate) bytes: u64,
}

/// Bytes of header, directory and their copies, and of padding, about.
const FIXED_BYTES: f64 = 2.0 * 4096.0;
const BYTES_A_SECTION: f64 = 2048.0 + 2.0 * 200.0;
const BLOCK: f64 = 65536.0;

/// The size of `samples` samples with these attributes.
pub(crate) fn size(samples: u64, attributes: &[PlannedAttribute]) -> Result<Planned, String> {
    let count = samples as f64;
    let table = |total: f64| (count + 1.0) * if total < 4_294_967_296.0 { 4.0 } else { 8.0 };
    let mut axes: BTreeMap<&str, f64> = BTreeMap::new();
    let mut parts = Vec::new();
    let mut sections = 0u32;
    let mut sample = 0.0;
    for attribute in attributes {
        for extent in &attribute.extents {
            let Some(axis) = &extent.axis else { continue };
            if let Some(before) = axes.insert(axis, extent.mean)
                && before != extent.mean
                && axis != &attribute.name
            {
                return Err(format!(
                    "axis {axis:?} has the means {before} and {}: give it one",
                    extent.mean
                ));
            }
        }
        let elements = attribute.elements();
        let mut bytes = match attribute.string {
            Some(length) => count * elements * length,
            None => count * elements * attribute.dtype.size() as f64,
        };
        sample += bytes / count.max(1.0);
        sections += 1;
        if let Some(length) = attribute.string {
            // Where a sample's bytes start; where each string of a list ends.
            bytes += table(count * elements * length);
            sections += 1;
            if !attribute.extents.is_empty() {
                bytes += count * elements * 4.0;
                sections += 1;
            }
        }
        if attribute.ragged() >= 2 {
            bytes += table(count * elements);
            sections += 1;
        }
        parts.push((attribute, bytes));
    }
    let tables: Vec<(&str, f64)> =
        axes.into_iter().map(|(name, mean)| (name, table(count * mean))).collect();
    sections += tables.len() as u32;
    let payload: f64 =
        parts.iter().map(|(_, bytes)| bytes).chain(tables.iter().map(|(_, b)| b)).sum();
    let file = payload
        + FIXED_BYTES
        + f64::from(sections) * BYTES_A_SECTION
        + (payload / BLOCK).ceil() * 4.0;
    if file >= i64::MAX as f64 {
        return Err("a file has less than 2^63 bytes: these counts ask for more".into());
    }
    // In range, as just checked; fractions of a byte are of no interest.
    let whole = |bytes: f64| bytes.round() as u64;
    Ok(Planned {
        file_bytes: whole(file),
        sample_bytes: whole(sample),
        attributes: parts
            .into_iter()
            .map(|(attribute, bytes)| PlannedPart {
                name: attribute.name.clone(),
                dtype: Some(attribute.dtype.name()),
                bytes: whole(bytes),
            })
            .collect(),
        axes: tables
            .into_iter()
            .map(|(name, bytes)| PlannedPart {
                name: name.to_owned(),
                dtype: None,
                bytes: whole(bytes),
            })
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(samples: u64, attributes: &[&str]) -> Planned {
        let attributes: Vec<PlannedAttribute> =
            attributes.iter().map(|text| PlannedAttribute::parse(text).unwrap()).collect();
        size(samples, &attributes).unwrap()
    }

    fn bytes(planned: &[PlannedPart]) -> Vec<(&str, u64)> {
        planned.iter().map(|part| (part.name.as_str(), part.bytes)).collect()
    }

    #[test]
    fn named_axes_are_counted_once() {
        let planned =
            plan(1000, &["x:f32:nodes=18:11", "z:i64:nodes=18", "edge_index:i64:2:edges=36"]);
        assert_eq!(
            bytes(&planned.attributes),
            [("x", 792_000), ("z", 144_000), ("edge_index", 576_000)]
        );
        assert_eq!(bytes(&planned.axes), [("edges", 4004), ("nodes", 4004)]);
        assert_eq!(planned.sample_bytes, 1512);
        assert!(planned.file_bytes > 1_520_000 && planned.file_bytes < 1_560_000);
    }

    #[test]
    fn plain_extents_follow_the_rules_of_naming() {
        // Rows of `x`, columns of `edge_index`; one row is no axis.
        let planned = plan(10, &["x:f32:18.1:11", "edge_index:i64:2:37", "y:f32:1:19", "s:f64"]);
        assert_eq!(bytes(&planned.axes), [("edge_index", 44), ("x", 44)]);
        assert_eq!(planned.attributes[3].bytes, 80);
    }

    #[test]
    fn tables_widen_with_the_total() {
        let planned = plan(1 << 30, &["x:u8:nodes=5"]);
        assert_eq!(bytes(&planned.axes), [("nodes", ((1 << 30) + 1) * 8)]);
    }

    #[test]
    fn strings_have_a_mean_length() {
        let planned = plan(100, &["smiles:utf8:24", "names:utf8:nodes=3:8"]);
        assert_eq!(
            bytes(&planned.attributes),
            [("smiles", 2400 + 404), ("names", 2400 + 404 + 1200)]
        );
        assert_eq!(bytes(&planned.axes), [("nodes", 404)]);
    }

    #[test]
    fn two_ragged_dimensions_have_a_table_of_their_own() {
        let planned = plan(100, &["adj:f32:nodes=10:nodes=10"]);
        assert_eq!(bytes(&planned.attributes), [("adj", 40_000 + 404)]);
    }

    #[test]
    fn wrong_descriptions_say_what_is_expected() {
        for (text, part) in [
            ("x", "NAME:DTYPE"),
            (":f32", "NAME:DTYPE"),
            ("x:float:3", "unknown dtype"),
            ("x:f32:many", "expected a mean"),
            ("x:f32:-1", "expected a mean"),
            ("x:f32:nan", "expected a mean"),
            ("x:f32:=3", "no name"),
            ("s:utf8", "mean length"),
        ] {
            let error = PlannedAttribute::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        let parse = |text| PlannedAttribute::parse(text).unwrap();
        let two = size(1, &[parse("x:f32:nodes=3"), parse("z:f32:nodes=4")]).unwrap_err();
        assert!(two.contains("\"nodes\""), "{two}");
        assert!(size(u64::MAX, &[parse("x:f64:1000")]).is_err());
    }
}
