//! A schema from the first sample, by PyG's rules of naming, so that graphs just work.
//!
//! Rules (torch_geometric `Data.__cat_dim__`, `Data.__inc__`, `NodeStorage.num_nodes`): a name that contains `index`, or
//! is `face`, concatenates along the last dimension and is incremented by the number of nodes; a name that contains
//! `batch` is incremented by its greatest value plus one; everything else concatenates along dimension 0.

#![forbid(unsafe_code)]

use super::check::greatest;
use super::sample::NewSample;
use crate::error::Result;
use crate::format::{Attribute, DType, Dim, Increment, Schema, TensorView, Value};

const NODES: &str = "nodes";
const EDGES: &str = "edges";
const EDGE_INDEX: &str = "edge_index";

/// Attributes whose rows are nodes, in the order that PyG asks them.
const NODE_KEYS: [&str; 7] = ["x", "feat", "pos", "batch", "node_type", "n_id", "tf"];

/// An inferred schema, and what must be computed for each sample to fit it.
#[derive(Debug, Clone)]
pub(crate) struct Inferred {
    pub(super) schema: Schema,
    has_nodes: bool,
    /// Attributes incremented by `max + 1`, with the hidden attribute that holds it.
    maxima: Vec<(String, String, DType)>,
}

/// Values that a sample of an inferred schema gets beside its own.
#[derive(Debug, Default)]
pub(super) struct Additions {
    nodes: Option<u64>,
    maxima: Vec<(String, DType, [u8; 8])>,
}

fn is_index_name(name: &str) -> bool {
    name.contains("index") || name == "face"
}

fn cat_dim(name: &str, rank: usize) -> usize {
    if is_index_name(name) { rank.saturating_sub(1) } else { 0 }
}

/// PyG's `num_nodes`: the given length, the rows of the first node attribute, any attribute named after nodes, or the
/// greatest node index plus one.
fn num_nodes(sample: &NewSample<'_>) -> Option<u64> {
    if let Some((_, length)) = sample.axes().iter().find(|(name, _)| *name == NODES) {
        return Some(*length);
    }
    let rows = |name: &str, value: &Value<'_>| {
        let shape = value.shape();
        shape.get(cat_dim(name, shape.len())).map(|&extent| extent as u64)
    };
    for key in NODE_KEYS {
        if let Some(rows) = sample.get(key).and_then(|value| rows(key, value)) {
            return Some(rows);
        }
    }
    let named = sample.values().iter().find(|(name, _)| name.contains("node"));
    if let Some(rows) = named.and_then(|(name, value)| rows(name, value)) {
        return Some(rows);
    }
    for key in [EDGE_INDEX, "face"] {
        if let Some(Value::Tensor(tensor)) = sample.get(key) {
            let count = greatest(tensor).map_or(0, |high| high.saturating_add(1).max(0));
            return Some(u64::try_from(count).unwrap_or(u64::MAX));
        }
    }
    None
}

impl Inferred {
    pub(super) fn from_sample(sample: &NewSample<'_>) -> Result<Self> {
        let has_nodes = num_nodes(sample).is_some();
        let has_edges = sample.get(EDGE_INDEX).is_some();
        let mut builder = Schema::builder();
        if has_nodes {
            builder = builder.axis(NODES);
        }
        if has_edges {
            builder = builder.axis(EDGES);
        }
        for (name, _) in sample.axes() {
            if *name != NODES && !(has_edges && *name == EDGES) {
                builder = builder.axis(*name);
            }
        }
        let taken = |axis: &str| {
            (has_nodes && axis == NODES)
                || (has_edges && axis == EDGES)
                || sample.axes().iter().any(|(name, _)| *name == axis)
        };
        let mut maxima = Vec::new();
        let mut hidden = Vec::new();
        for (name, value) in sample.values() {
            let shape = value.shape();
            let ragged = cat_dim(name, shape.len());
            let axis = match *name {
                EDGE_INDEX => EDGES.to_owned(),
                // An attribute called like an axis keeps that axis free for what PyG means by it.
                name if taken(name) => format!("{name}.rows"),
                name => name.to_owned(),
            };
            let dims = shape.iter().enumerate().map(|(dim, &extent)| {
                if dim == ragged { Dim::Axis(axis.clone()) } else { Dim::from(extent) }
            });
            let mut attribute = Attribute::new(*name, value.dtype(), dims);
            if value.dtype().is_integer() {
                if name.contains("batch") {
                    let source = format!("{name}__inc");
                    hidden.push(
                        Attribute::new(source.as_str(), value.dtype(), [] as [Dim; 0]).hidden(),
                    );
                    maxima.push((name.to_string(), source.clone(), value.dtype()));
                    attribute = attribute.increment(Increment::Attribute(source));
                } else if is_index_name(name) && has_nodes {
                    attribute = attribute.increment_by(NODES);
                }
            }
            builder = builder.attribute(attribute);
        }
        for attribute in hidden {
            builder = builder.attribute(attribute);
        }
        Ok(Inferred { schema: builder.build()?, has_nodes, maxima })
    }

    /// What this sample gets beside its own values.
    pub(super) fn additions(&self, sample: &NewSample<'_>) -> Additions {
        let given = sample.axes().iter().any(|(name, _)| *name == NODES);
        Additions {
            nodes: if self.has_nodes && !given { num_nodes(sample) } else { None },
            maxima: self
                .maxima
                .iter()
                .map(|(name, source, dtype)| {
                    let next = match sample.get(name) {
                        Some(Value::Tensor(tensor)) => {
                            greatest(tensor).map_or(0, |high| high.saturating_add(1))
                        }
                        _ => 0,
                    };
                    // The low bytes of the little-endian integer, whatever its width.
                    let mut bytes = [0; 8];
                    bytes.copy_from_slice(&next.to_le_bytes()[..8]);
                    (source.clone(), *dtype, bytes)
                })
                .collect(),
        }
    }
}

impl Additions {
    /// The sample with the additions.
    pub(super) fn complete<'s>(&'s self, sample: &NewSample<'s>) -> Result<NewSample<'s>> {
        let mut complete = sample.clone();
        if let Some(nodes) = self.nodes {
            complete.push_axis(NODES, nodes);
        }
        for (name, dtype, bytes) in &self.maxima {
            complete.push(name, TensorView::from_bytes(*dtype, &[], &bytes[..dtype.size()])?);
        }
        Ok(complete)
    }
}
