//! Views: some samples, in some order; some attributes. Nothing is copied but indices.

#![forbid(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;

use super::Dataset;
use crate::error::{Error, Result};

/// Which samples of the file a view has, in its order.
#[derive(Debug, Clone)]
pub(super) enum Rows {
    Range(Range<u64>),
    Indices(Arc<[u64]>),
}

impl Rows {
    pub(super) fn all(samples: u64) -> Self {
        Rows::Range(0..samples)
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Rows::Range(range) => range.end - range.start,
            Rows::Indices(indices) => indices.len() as u64,
        }
    }

    /// Whether these are all samples of a file of `samples`, in order.
    pub(super) fn is_whole(&self, samples: u64) -> bool {
        matches!(self, Rows::Range(range) if *range == (0..samples))
    }

    #[inline]
    pub(super) fn get(&self, index: u64) -> Option<u64> {
        match self {
            Rows::Range(range) => {
                if index < range.end - range.start {
                    Some(range.start + index)
                } else {
                    None
                }
            }
            Rows::Indices(indices) => {
                usize::try_from(index).ok().and_then(|at| indices.get(at)).copied()
            }
        }
    }
}

impl Dataset {
    /// The samples of the file that this view has, if they follow each other in the file's order: all of them unless
    /// samples were chosen. `None` for a view of chosen indices, which [`file_index`](Self::file_index) tells one by one.
    pub fn file_range(&self) -> Option<Range<u64>> {
        match &self.rows {
            Rows::Range(range) => Some(range.clone()),
            Rows::Indices(_) => None,
        }
    }

    fn with_rows(&self, rows: Rows) -> Dataset {
        Dataset { rows, ..self.clone() }
    }

    /// The samples `range` of this view.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`] if it goes beyond the last sample or its end is before its start.
    pub fn range(&self, range: Range<u64>) -> Result<Dataset> {
        let len = self.len();
        if range.start > range.end || range.end > len {
            let index = if range.start > len { range.start } else { range.end };
            return Err(Error::IndexOutOfRange { index, len });
        }
        Ok(self.with_rows(match &self.rows {
            Rows::Range(rows) => Rows::Range(rows.start + range.start..rows.start + range.end),
            // In range of a slice, so they fit a usize.
            Rows::Indices(indices) => {
                Rows::Indices(indices[range.start as usize..range.end as usize].into())
            }
        }))
    }

    /// The samples of these indices of this view, in this order, as often as they are named.
    ///
    /// ```
    /// # use fencepost::{Attribute, DType, NewSample, Schema, TensorView, Writer, dims};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("a.fence");
    /// # let schema = Schema::builder().attribute(Attribute::new("id", DType::U64, dims![])).build()?;
    /// # let mut writer = Writer::create(&path, schema)?;
    /// # for id in 0..10u64 {
    /// #     writer.push(&NewSample::new().tensor("id", TensorView::from_slice(&[id], &[])?))?;
    /// # }
    /// # writer.finish()?;
    /// let dataset = fencepost::Dataset::load(&path)?;
    /// let view = dataset.select(&[7, 2, 7])?.range(1..3)?;
    /// assert_eq!(view.get(0)?.slice::<u64>("id")?, [2]);
    /// assert_eq!((view.len(), view.file_index(1)?), (2, 7));
    /// # Ok::<(), fencepost::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`] for the first that does not exist.
    pub fn select(&self, indices: &[u64]) -> Result<Dataset> {
        let rows =
            indices.iter().map(|&index| self.file_index(index)).collect::<Result<Arc<[u64]>>>()?;
        Ok(self.with_rows(Rows::Indices(rows)))
    }

    /// The samples of this view whose entry in `mask` is true.
    ///
    /// # Errors
    /// [`Error::MaskLength`] unless there is one entry a sample.
    pub fn mask(&self, mask: &[bool]) -> Result<Dataset> {
        let (expected, found) = (self.len(), mask.len() as u64);
        if expected != found {
            return Err(Error::MaskLength { expected, found });
        }
        let indices: Vec<u64> =
            mask.iter().enumerate().filter(|&(_, &keep)| keep).map(|(at, _)| at as u64).collect();
        self.select(&indices)
    }

    /// The same samples with only these attributes: the others are neither read nor asked for.
    ///
    /// # Errors
    /// [`Error::UnknownName`] or [`Error::AttributeRefused`].
    pub fn project<N: AsRef<str>>(&self, names: &[N]) -> Result<Dataset> {
        let mut attributes = names
            .iter()
            .map(|name| self.inner.attribute_index(name.as_ref(), &self.attributes))
            .collect::<Result<Vec<usize>>>()?;
        attributes.sort_unstable();
        attributes.dedup();
        Ok(Dataset { attributes: attributes.into(), ..self.clone() })
    }
}
