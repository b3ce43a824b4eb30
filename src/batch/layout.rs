//! What a batch consists of, apart from the bytes of its fields.

#![forbid(unsafe_code)]

use std::fmt;
use std::sync::Arc;

use super::plan::{CollatePlan, Field, FilePlan, IncrementPlan, SlicesSource};
use crate::aligned::AlignedBytes;
use crate::error::{Error, Result};
use crate::format::{DType, Shape, TensorView};

/// Shape and size of one field of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldLayout {
    /// Extents, outermost first. Those of an attribute of strings count strings.
    pub shape: Shape,
    /// Bytes of the field.
    pub bytes: usize,
}

/// What a batch consists of: its fields' shapes, which samples are in it, where each starts, and what their indices were
/// incremented by.
#[derive(Clone)]
pub struct BatchLayout {
    pub(super) plan: Arc<CollatePlan>,
    /// `None` before the first batch.
    pub(super) file: Option<Arc<FilePlan>>,
    pub(super) indices: Vec<u64>,
    /// One a field of the plan.
    pub(super) fields: Vec<FieldLayout>,
    /// The lists of boundaries that [`FilePlan::slices`] names.
    pub(super) slices: Vec<Vec<i64>>,
    /// One an attribute; used for increments that are no `ptr`.
    pub(super) increments: Vec<AlignedBytes>,
}

impl BatchLayout {
    pub(super) fn new(plan: Arc<CollatePlan>) -> Self {
        BatchLayout {
            plan,
            file: None,
            indices: Vec::new(),
            fields: Vec::new(),
            slices: Vec::new(),
            increments: Vec::new(),
        }
    }

    /// Makes it that of a batch of these samples, whose fields are still to come.
    pub(super) fn begin(&mut self, file: &Arc<FilePlan>, indices: &[u64]) {
        self.indices.clear();
        self.indices.extend_from_slice(indices);
        self.fields.clear();
        self.slices.resize_with(file.slices.len(), Vec::new);
        self.increments.resize_with(file.attributes.len(), AlignedBytes::new);
        self.file = Some(file.clone());
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// The samples' indices, as they were given.
    pub fn indices(&self) -> &[u64] {
        &self.indices
    }

    /// All fields, in the order in which they were laid out.
    pub fn fields(&self) -> impl Iterator<Item = (&Field, &FieldLayout)> {
        self.plan.fields.iter().zip(&self.fields)
    }

    /// Bytes of all fields together.
    pub fn bytes(&self) -> usize {
        self.fields.iter().map(|field| field.bytes).sum()
    }

    pub(super) fn field(&self, name: &str) -> Result<usize> {
        let found = self.plan.fields.iter().position(|field| &*field.name == name);
        found.filter(|&at| at < self.fields.len()).ok_or_else(|| {
            let names: Vec<&str> =
                self.plan.fields[..self.fields.len()].iter().map(Field::name).collect();
            Error::UnknownName {
                kind: "field of the batch",
                name: name.into(),
                available: names.join(", ").into(),
            }
        })
    }

    fn attribute(&self, name: &str) -> Result<usize> {
        let attributes = &self.plan.attributes;
        attributes.iter().position(|attribute| &*attribute.name == name).ok_or_else(|| {
            let names: Vec<&str> = attributes.iter().map(|attribute| &*attribute.name).collect();
            Error::UnknownName {
                kind: "attribute of the batch",
                name: name.into(),
                available: names.join(", ").into(),
            }
        })
    }

    /// Where each sample starts along an axis, and the end of the last: one entry more than there are samples.
    ///
    /// # Errors
    /// [`Error::UnknownName`] if there is no such axis, or nothing in the batch has to do with it.
    pub fn ptr(&self, axis: &str) -> Result<&[i64]> {
        let index = self.plan.schema.axis_index(axis);
        let slices = index
            .and_then(|axis| self.file.as_ref()?.ptr(axis))
            .and_then(|slices| self.slices.get(slices));
        slices.map(Vec::as_slice).ok_or_else(|| Error::UnknownName {
            kind: "axis of the batch",
            name: axis.into(),
            available: self.plan.schema.axes().join(", ").into(),
        })
    }

    /// Where each sample starts in an attribute, and the end of the last: along the dimension of concatenation, along the
    /// new first dimension of a stacked or padded attribute, or in elements of a flat one. PyG's `slices`.
    ///
    /// # Errors
    /// [`Error::UnknownName`].
    pub fn slices(&self, attribute: &str) -> Result<&[i64]> {
        let attribute = self.attribute(attribute)?;
        let list = self.file.as_ref().map(|file| file.attributes[attribute].slices);
        Ok(list.and_then(|list| self.slices.get(list)).map_or(&[0], Vec::as_slice))
    }

    /// What was added to each sample's values of an attribute, one number or one for each index of dimension 0, or `None`
    /// if nothing is. PyG's `_inc_dict`.
    ///
    /// # Errors
    /// [`Error::UnknownName`].
    pub fn increments(&self, attribute: &str) -> Result<Option<TensorView<'_>>> {
        let at = self.attribute(attribute)?;
        let plan = &self.plan.attributes[at];
        let Some(file) = &self.file else { return Ok(None) };
        let samples = self.len();
        Ok(match &plan.increment {
            IncrementPlan::None => None,
            IncrementPlan::Axis(axis) => {
                let ptr = file.ptr(*axis).and_then(|slices| self.slices.get(slices));
                let starts = ptr.map_or(&[][..], |ptr| &ptr[..samples]);
                Some(TensorView::from_slice(starts, &[samples])?)
            }
            IncrementPlan::PerRow(rules) => Some(TensorView::from_bytes(
                DType::I64,
                &[samples, rules.len()],
                self.increments[at].as_slice(),
            )?),
            IncrementPlan::Hidden { rows, .. } => {
                let shape = [samples, *rows];
                let shape = if *rows == 1 { &shape[..1] } else { &shape[..] };
                Some(TensorView::from_bytes(plan.dtype, shape, self.increments[at].as_slice())?)
            }
        })
    }

    pub(super) fn slices_source(&self, list: usize) -> SlicesSource {
        self.file.as_ref().map_or(SlicesSource::Each(0), |file| file.slices[list])
    }
}

impl fmt::Debug for BatchLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Batch");
        out.field("samples", &self.len());
        for (field, layout) in self.fields() {
            out.field(field.name(), &format_args!("{}{}", field.dtype(), layout.shape));
        }
        out.finish()
    }
}
