//! What is asked for, checked against the schema.

#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::sync::Arc;

use super::collate::Collator;
use super::plan::{Arrangement, AttributePlan, CollatePlan, Field, IncrementPlan, Role};
use crate::error::{Error, Result};
use crate::format::{Attribute, DType, Increment, Schema};

/// The axis that gets a `batch` vector and a `ptr` unless others are chosen.
const NODES: &str = "nodes";

/// Options of a [`Collator`]: [`Collator::builder`].
#[derive(Debug, Clone)]
pub struct CollatorBuilder {
    schema: Schema,
    /// Indices of the attributes to choose from.
    among: Vec<usize>,
    only: Option<Vec<String>>,
    exclude: Vec<String>,
    follow: Vec<String>,
    node_axes: Option<Vec<String>>,
    padded: Vec<String>,
    flat: Vec<String>,
    unused_buffers: Option<usize>,
}

fn owned<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Vec<String> {
    names.into_iter().map(|name| name.as_ref().to_owned()).collect()
}

fn refuse(name: &str, problem: impl Into<Box<str>>) -> Error {
    Error::Unsupported {
        what: format!("batches of attribute {name:?}").into(),
        problem: problem.into(),
    }
}

impl CollatorBuilder {
    pub(super) fn new(schema: Schema, among: Vec<usize>) -> Self {
        CollatorBuilder {
            schema,
            among,
            only: None,
            exclude: Vec::new(),
            follow: Vec::new(),
            node_axes: None,
            padded: Vec::new(),
            flat: Vec::new(),
            unused_buffers: None,
        }
    }

    /// Batches only these attributes.
    #[must_use]
    pub fn attributes<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.only = Some(owned(names));
        self
    }

    /// Leaves these attributes out. Names that do not exist are ignored, as PyG does.
    #[must_use]
    pub fn exclude_keys<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.exclude.extend(owned(names));
        self
    }

    /// Adds `{name}_batch` and `{name}_ptr` for each of these attributes.
    #[must_use]
    pub fn follow_batch<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.follow.extend(owned(names));
        self
    }

    /// The axes that get a `batch` vector and a `ptr`; by default `nodes`, if there is such an axis. The first one's are
    /// called `batch` and `ptr`, those of others `{axis}_batch` and `{axis}_ptr`. Boundaries along the other axes are
    /// told by [`BatchLayout::ptr`](super::BatchLayout::ptr).
    #[must_use]
    pub fn node_axes<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.node_axes = Some(owned(names));
        self
    }

    /// Stacks these attributes, each sample filled up with zeros to the largest extents in the batch, and adds
    /// `{name}_mask`. Values are not incremented, because each sample stays apart.
    #[must_use]
    pub fn padded<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.padded.extend(owned(names));
        self
    }

    /// Lays the elements of these attributes behind each other, sample after sample, and adds `{name}_ptr` and
    /// `{name}_shape`. Any attribute can be batched in this way.
    #[must_use]
    pub fn flat<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.flat.extend(owned(names));
        self
    }

    /// Unused buffers that are kept for later batches; by default those of four batches.
    #[must_use]
    pub fn unused_buffers(mut self, limit: usize) -> Self {
        self.unused_buffers = Some(limit);
        self
    }

    /// Checks the names and makes the plan.
    ///
    /// # Errors
    /// [`Error::UnknownName`]; [`Error::Unsupported`] where an attribute cannot be batched as asked, or two fields of the
    /// batch would have the same name.
    pub fn build(self) -> Result<Collator> {
        let limit = self.unused_buffers;
        let plan = self.plan()?;
        let limit = limit.unwrap_or(plan.fields.len() * 4);
        Ok(Collator::of(Arc::new(plan), limit))
    }

    fn plan(self) -> Result<CollatePlan> {
        let mut chosen = match &self.only {
            None => self.among.clone(),
            Some(names) => {
                let mut chosen =
                    names.iter().map(|name| self.attribute(name)).collect::<Result<Vec<_>>>()?;
                chosen.sort_unstable();
                chosen.dedup();
                chosen
            }
        };
        for name in self.padded.iter().chain(&self.flat).chain(&self.follow) {
            self.attribute(name)?;
        }
        let node_axes = self.chosen_axes()?;
        let names = |axis: usize, first: bool| {
            let prefix =
                if first { String::new() } else { format!("{}_", self.schema.axes()[axis]) };
            (format!("{prefix}batch"), format!("{prefix}ptr"))
        };
        // As in PyG, a user's own `batch` and `ptr` give way to those of the batch.
        let taken: Vec<String> = node_axes
            .iter()
            .enumerate()
            .flat_map(|(at, &axis)| <[String; 2]>::from(names(axis, at == 0)))
            .collect();
        chosen.retain(|&at| {
            let name = self.schema.attributes()[at].name();
            !self.exclude.iter().any(|excluded| excluded == name)
                && !taken.iter().any(|taken| taken == name)
        });
        let attributes =
            chosen.iter().map(|&at| self.attribute_plan(at)).collect::<Result<Vec<_>>>()?;
        let mut fields = Vec::new();
        for (of, attribute) in attributes.iter().enumerate() {
            fields_of(attribute, of, &mut fields);
        }
        for (at, &axis) in node_axes.iter().enumerate() {
            let (batch, ptr) = names(axis, at == 0);
            let field =
                |name: String, role| Field { name: name.into(), role, dtype: DType::I64, of: axis };
            fields.push(field(batch, Role::Batch));
            fields.push(field(ptr, Role::Ptr));
        }
        let mut seen = HashSet::new();
        if let Some(twice) = fields.iter().find(|field| !seen.insert(field.name.clone())) {
            return Err(refuse(
                &twice.name,
                "two fields of the batch would have this name: exclude the attribute, or do not follow the other",
            ));
        }
        Ok(CollatePlan { schema: self.schema, attributes, node_axes, fields })
    }

    fn attribute(&self, name: &str) -> Result<usize> {
        let attributes = self.schema.attributes();
        self.among.iter().copied().find(|&at| attributes[at].name() == name).ok_or_else(|| {
            let names: Vec<&str> = self.among.iter().map(|&at| attributes[at].name()).collect();
            Error::UnknownName {
                kind: "attribute",
                name: name.into(),
                available: names.join(", ").into(),
            }
        })
    }

    fn axis(&self, name: &str) -> Result<usize> {
        self.schema.axis_index(name).ok_or_else(|| Error::UnknownName {
            kind: "axis",
            name: name.into(),
            available: self.schema.axes().join(", ").into(),
        })
    }

    fn chosen_axes(&self) -> Result<Vec<usize>> {
        match &self.node_axes {
            None => Ok(self.schema.axis_index(NODES).into_iter().collect()),
            Some(names) => names.iter().map(|name| self.axis(name)).collect(),
        }
    }

    fn attribute_plan(&self, at: usize) -> Result<AttributePlan> {
        let attribute = &self.schema.attributes()[at];
        let name = attribute.name();
        let has = |names: &[String]| names.iter().any(|asked| asked == name);
        let arrangement = match (has(&self.padded), has(&self.flat), attribute.cat_dim_index()) {
            (true, true, _) => {
                return Err(refuse(name, "it cannot be both padded and flat: ask for one"));
            }
            (true, false, _) if attribute.dtype().is_string() => {
                return Err(refuse(name, "strings cannot be padded: ask for `flat`"));
            }
            (true, false, _) => Arrangement::Padded,
            (false, true, _) => Arrangement::Flat,
            (false, false, Some(dim)) => Arrangement::Concat(dim),
            (false, false, None) => Arrangement::Stack,
        };
        let along = match arrangement {
            Arrangement::Concat(dim) => Some(dim),
            _ => None,
        };
        let increment = match arrangement {
            Arrangement::Padded => IncrementPlan::None,
            _ => self.increment_plan(attribute)?,
        };
        let ragged = |dim: &crate::format::Dim| matches!(dim, crate::format::Dim::Axis(_));
        Ok(AttributePlan {
            at,
            name: name.into(),
            dtype: attribute.dtype(),
            arrangement,
            increment,
            optional: attribute.is_optional(),
            ragged: attribute.shape().iter().any(ragged),
            compare: matches!(arrangement, Arrangement::Concat(_) | Arrangement::Stack)
                && attribute
                    .shape()
                    .iter()
                    .enumerate()
                    .any(|(place, dim)| ragged(dim) && Some(place) != along),
            follow: has(&self.follow),
        })
    }

    fn increment_plan(&self, attribute: &Attribute) -> Result<IncrementPlan> {
        Ok(match attribute.increment_rule() {
            Increment::None => IncrementPlan::None,
            Increment::Axis(axis) => IncrementPlan::Axis(self.axis(axis)?),
            Increment::PerRow(rules) => IncrementPlan::PerRow(
                rules
                    .iter()
                    .map(|rule| rule.as_deref().map(|axis| self.axis(axis)).transpose())
                    .collect::<Result<_>>()?,
            ),
            Increment::Attribute(source) => {
                if matches!(attribute.dtype(), DType::F8E4M3 | DType::F8E5M2) {
                    return Err(refuse(
                        attribute.name(),
                        "8-bit floats have no sum, so they cannot be incremented: exclude it",
                    ));
                }
                let position =
                    self.schema.attributes().iter().position(|other| other.name() == source);
                // The schema was checked: the attribute exists and has one value, or one for each index.
                let at = position.ok_or_else(|| {
                    refuse(
                        attribute.name(),
                        format!("{source:?}, which it is incremented by, cannot be read"),
                    )
                })?;
                let rows = self.schema.attributes()[at].fixed_elements().unwrap_or(1);
                IncrementPlan::Hidden { attribute: at, rows: usize::try_from(rows).unwrap_or(1) }
            }
        })
    }
}

/// The fields of one attribute, in the order in which they are filled.
fn fields_of(attribute: &AttributePlan, of: usize, fields: &mut Vec<Field>) {
    let name = &attribute.name;
    let mut add = |name: Arc<str>, role: Role, dtype: DType| {
        fields.push(Field { name, role, dtype, of });
    };
    add(name.clone(), Role::Value, attribute.dtype);
    if attribute.dtype.is_string() {
        add(format!("{name}_offsets").into(), Role::StringOffsets, DType::I64);
    }
    if attribute.optional {
        add(format!("{name}_valid").into(), Role::Valid, DType::Bool);
    }
    if attribute.arrangement == Arrangement::Padded {
        add(format!("{name}_mask").into(), Role::Mask, DType::Bool);
    }
    let flat = attribute.arrangement == Arrangement::Flat;
    if flat {
        add(format!("{name}_shape").into(), Role::Shapes, DType::I64);
    }
    if attribute.follow {
        add(format!("{name}_batch").into(), Role::FollowBatch, DType::I64);
    }
    if attribute.follow || flat {
        add(format!("{name}_ptr").into(), Role::FollowPtr, DType::I64);
    }
}
