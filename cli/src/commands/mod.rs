//! One file a command.

#![forbid(unsafe_code)]

pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod concat;
pub(crate) mod demo;
#[cfg(feature = "npz")]
pub(crate) mod export;
pub(crate) mod head;
pub(crate) mod import;
pub(crate) mod info;
pub(crate) mod plan;
pub(crate) mod probe;
pub(crate) mod repack;
pub(crate) mod salvage;
pub(crate) mod split;
pub(crate) mod stats;
pub(crate) mod verify;

use fencepost::Dataset;
use serde_json::Value as Json;

use crate::failure::Result;

/// The dataset with only the named attributes, or with all if none is named.
fn projected(dataset: Dataset, attributes: &[String]) -> Result<Dataset> {
    Ok(if attributes.is_empty() { dataset } else { dataset.project(attributes)? })
}

/// A number of the statistics as JSON has it: a number where it can be one, else its text.
fn number(text: &str) -> Json {
    if let Ok(whole) = text.parse::<u64>() {
        return whole.into();
    }
    if let Ok(whole) = text.parse::<i64>() {
        return whole.into();
    }
    match text.parse::<f64>().ok().and_then(serde_json::Number::from_f64) {
        Some(number) => Json::Number(number),
        None => text.into(),
    }
}

fn optional_number(text: Option<&String>) -> Json {
    text.map_or(Json::Null, |text| number(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_of_the_statistics() {
        assert_eq!(number("18446744073709551615"), json!(u64::MAX));
        assert_eq!(number("-9223372036854775808"), json!(i64::MIN));
        assert_eq!(number("0.1"), json!(0.1));
        assert_eq!(number("NaN"), json!("NaN"));
        assert_eq!(number("inf"), json!("inf"));
        assert_eq!(optional_number(None), Json::Null);
    }
}
