//! A batch in memory of ours.

#![forbid(unsafe_code)]

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::buffers::Buffer;
use super::layout::BatchLayout;
use super::plan::{CollatePlan, Role};
use crate::error::{Error, Result};
use crate::format::{DType, Element, Schema, TensorView};

/// Many samples as one: [`Collator::collate`](super::Collator::collate).
///
/// Fields are found by name: those of the attributes, `batch` and `ptr`, and what was asked for besides. Shapes,
/// boundaries and increments are those of the [`BatchLayout`] that a batch dereferences to. The memory of a field is used
/// again when nobody holds it any more: neither the batch nor a [`Buffer`] taken from it.
#[derive(Clone)]
pub struct Batch {
    pub(super) layout: BatchLayout,
    /// One a field.
    pub(super) buffers: Vec<Arc<Buffer>>,
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// An empty batch without fields, to be filled by [`Collator::collate_into`](super::Collator::collate_into).
    pub fn new() -> Self {
        let schema = Schema::builder().build();
        // Without axes and attributes there is no rule to break.
        let schema = schema.unwrap_or_else(|error| unreachable!("an empty schema: {error}"));
        Self::of(Arc::new(CollatePlan {
            schema,
            attributes: Vec::new(),
            node_axes: Vec::new(),
            fields: Vec::new(),
        }))
    }

    pub(super) fn of(plan: Arc<CollatePlan>) -> Self {
        Batch { layout: BatchLayout::new(plan), buffers: Vec::new() }
    }

    /// Fields' shapes, boundaries and increments.
    pub fn layout(&self) -> &BatchLayout {
        &self.layout
    }

    /// The names of the fields.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.layout.fields().map(|(field, _)| field.name())
    }

    /// The values of a field.
    ///
    /// # Errors
    /// [`Error::UnknownName`]; [`Error::Unsupported`] for strings, which [`strings`](Self::strings) gives.
    pub fn tensor(&self, name: &str) -> Result<TensorView<'_>> {
        let at = self.layout.field(name)?;
        let field = &self.layout.plan.fields[at];
        if field.dtype.is_string() {
            return Err(Error::Unsupported {
                what: format!("tensor of field {name:?}").into(),
                problem: "it holds strings: use `strings`".into(),
            });
        }
        Ok(TensorView::trusted(
            field.dtype,
            self.layout.fields[at].shape,
            self.buffers[at].as_slice(),
        ))
    }

    /// The typed values of a field: [`TensorView::as_slice`].
    ///
    /// # Errors
    /// As [`tensor`](Self::tensor), and [`Error::WrongDType`].
    pub fn slice<T: Element>(&self, name: &str) -> Result<&[T]> {
        self.tensor(name)?.as_slice()
    }

    /// The strings of an attribute.
    ///
    /// # Errors
    /// [`Error::UnknownName`]; [`Error::Unsupported`] if it holds none.
    pub fn strings(&self, name: &str) -> Result<BatchStrings<'_>> {
        let at = self.layout.field(name)?;
        let field = &self.layout.plan.fields[at];
        let offsets = self.layout.plan.fields.iter().position(|other| {
            other.role == Role::StringOffsets && field.role == Role::Value && other.of == field.of
        });
        let Some(offsets) = offsets else {
            return Err(Error::Unsupported {
                what: format!("strings of field {name:?}").into(),
                problem: format!("it holds {}: use `tensor`", field.dtype).into(),
            });
        };
        Ok(BatchStrings {
            dtype: field.dtype,
            shape: self.layout.fields[at].shape,
            bytes: self.buffers[at].as_slice(),
            offsets: bytemuck::cast_slice(self.buffers[offsets].as_slice()),
        })
    }

    /// The memory of a field, shared: it stays as it is as long as somebody holds it, whatever becomes of the batch.
    ///
    /// # Errors
    /// [`Error::UnknownName`].
    pub fn buffer(&self, name: &str) -> Result<Arc<Buffer>> {
        Ok(self.buffers[self.layout.field(name)?].clone())
    }

    /// Takes the batch apart: its layout, and the memory of each field in the order of [`BatchLayout::fields`], to be done
    /// with as the caller likes. What somebody else holds is copied.
    ///
    /// ```
    /// # use fencepost::{Attribute, Collator, DType, Dataset, NewSample, Schema, TensorView, Writer, dims};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("a.fence");
    /// # let schema = Schema::builder().attribute(Attribute::new("x", DType::U8, dims!["rows"])).build()?;
    /// # let mut writer = Writer::create(&path, schema)?;
    /// # writer.push(&NewSample::new().tensor("x", TensorView::from_slice(&[1u8, 2], &[2])?))?;
    /// # writer.finish()?;
    /// let dataset = Dataset::load(&path)?;
    /// let batch = Collator::builder(&dataset).build()?.collate(&dataset, &[0, 0])?;
    /// let (layout, mut buffers) = batch.into_parts();
    /// let at = layout.fields().position(|(field, _)| field.name() == "x").unwrap();
    /// buffers[at].as_mut_slice()[0] = 9;
    /// assert_eq!(buffers[at].as_slice(), [9, 2, 1, 2]);
    /// # Ok::<(), fencepost::Error>(())
    /// ```
    pub fn into_parts(self) -> (BatchLayout, Vec<Buffer>) {
        (self.layout, self.buffers.into_iter().map(Buffer::unshared).collect())
    }
}

impl Deref for Batch {
    type Target = BatchLayout;

    fn deref(&self) -> &BatchLayout {
        &self.layout
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.layout.fmt(f)
    }
}

/// The strings of one attribute of a batch.
#[derive(Debug, Clone, Copy)]
pub struct BatchStrings<'a> {
    dtype: DType,
    shape: crate::format::Shape,
    bytes: &'a [u8],
    offsets: &'a [i64],
}

impl<'a> BatchStrings<'a> {
    /// `utf8` or `bytes`.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Extents, outermost first.
    pub fn shape(&self) -> &[usize] {
        self.shape.dims()
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All bytes, back to back.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Where each string starts, and the end of the last.
    pub fn offsets(&self) -> &'a [i64] {
        self.offsets
    }

    /// String `index` in C order, or `None` beyond the last.
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        let pair = self.offsets.get(index..=index.checked_add(1)?)?;
        // Made by the collator from lengths in memory.
        self.bytes.get(pair[0] as usize..pair[1] as usize)
    }

    /// String `index`, or `None` beyond the last or where the dtype is `bytes`.
    pub fn text(&self, index: usize) -> Option<&'a str> {
        if self.dtype != DType::Utf8 {
            return None;
        }
        // Checked when the batch was made.
        std::str::from_utf8(self.get(index)?).ok()
    }

    /// All strings in C order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

const _: () = {
    const fn shared_by_threads<T: Send + Sync>() {}
    shared_by_threads::<Batch>();
    shared_by_threads::<super::Collator>();
};
