//! All samples' values at once: an arena as it lies in the file, or a tensor made of it.

#![forbid(unsafe_code)]

use std::ops::Range;
use std::path::Path;

use super::plan::{AttributePlan, AxisPlan, PlanDim, Start};
use super::{Dataset, Inner, Part, SampleBuf, plan};
use crate::aligned::AlignedBytes;
use crate::error::{Error, Result};
use crate::format::{DType, Offsets, Shape, TensorView, Value};

/// A tensor with its own memory, aligned to 64 bytes.
#[derive(Debug, Clone)]
pub struct OwnedTensor {
    dtype: DType,
    shape: Shape,
    data: AlignedBytes,
}

impl OwnedTensor {
    /// A view of it.
    pub fn view(&self) -> TensorView<'_> {
        TensorView::trusted(self.dtype, self.shape, self.data.as_slice())
    }
}

/// Where the value of one attribute of one sample is: [`Dataset::place`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The file's number among [`Dataset::paths`]: 0 where there is one.
    pub file: usize,
    /// Bytes of the file, of the dtype `stored`.
    pub bytes: Range<u64>,
    /// Type of the values in the file.
    pub stored: DType,
    /// Extents, outermost first.
    pub shape: Shape,
}

impl Dataset {
    /// Where in the file sample `index` of this view has the value of a tensor attribute, for whoever maps or reads the
    /// file by other means; `None` if the sample lacks it. No value is touched.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`]; [`Error::UnknownName`]; [`Error::Unsupported`] for strings; [`Error::Format`] if the
    /// sample's offsets break a rule.
    pub fn place(&self, index: u64, name: &str) -> Result<Option<Place>> {
        let (part, row) = self.inner.parts.find(self.file_index(index)?);
        let attribute = self.tensor_index(name)?;
        let plan = &part.plans.attributes[attribute];
        self.check_tables(&part.plans, row, &[attribute])?;
        let located = part.plans.locate(&self.inner.storage, plan, row)?;
        Ok(located.map(|located| {
            let (file, bytes) = self.in_file(&located.bytes);
            Place { file, bytes, stored: plan.stored, shape: located.shape }
        }))
    }

    /// The paths of all files, by the numbers that a [`Place`] has.
    pub fn paths(&self) -> impl ExactSizeIterator<Item = &Path> {
        (0..self.inner.files.len()).map(|file| self.inner.storage.file_path(file))
    }

    /// The bytes of the file that hold the values of all samples of a tensor attribute, whatever the view.
    ///
    /// # Errors
    /// [`Error::UnknownName`]; [`Error::Unsupported`] for strings; [`Error::NotContiguous`] if the samples are in several files.
    pub fn arena_range(&self, name: &str) -> Result<Range<u64>> {
        let (_, plan) = self.only_plan(name)?;
        Ok(self.in_file(&plan.data).1)
    }

    /// The file that has these positions, and its bytes that they are.
    fn in_file(&self, positions: &Range<u64>) -> (usize, Range<u64>) {
        let file = self.inner.storage.file_at(positions.start);
        let start = self.inner.storage.positions(file).start;
        (file, positions.start - start..positions.end - start)
    }

    fn tensor_index(&self, name: &str) -> Result<usize> {
        let attribute = self.inner.attribute_index(name, &self.attributes)?;
        if self.inner.schema.attributes()[attribute].dtype().is_string() {
            return Err(Error::Unsupported {
                what: format!("tensor of attribute {name:?}").into(),
                problem: "it holds strings: read them sample by sample".into(),
            });
        }
        Ok(attribute)
    }

    /// The one part that there is, for what can only be had of values that lie together, and the attribute in it.
    fn only_plan(&self, name: &str) -> Result<(&Part, &AttributePlan)> {
        let attribute = self.tensor_index(name)?;
        match &*self.inner.parts {
            [part] => Ok((part, &part.plans.attributes[attribute])),
            parts => Err(Error::NotContiguous {
                attribute: name.into(),
                reason: format!("its samples are in {} files", parts.len()).into(),
                bytes: self.materialized_bytes(name)?,
            }),
        }
    }

    fn borrow_bytes(&self, plan: &AttributePlan) -> Result<&[u8]> {
        self.check_bytes(&plan.data)?;
        match self.inner.storage.as_slice() {
            // The arena was proved to lie in the file, which is in memory here.
            Some(file) => Ok(&file[plan.data.start as usize..plan.data.end as usize]),
            None => Err(Error::NotBorrowable {
                attribute: plan.name.clone(),
                reason:
                    "the dataset is positional, so its bytes are not in memory: use `materialize`"
                        .into(),
            }),
        }
    }

    /// All stored values of an attribute, flat, sample after sample, whatever the view: dtype as stored, values of bools
    /// and offsets not checked (`verify` does).
    ///
    /// # Errors
    /// [`Error::UnknownName`]; [`Error::Unsupported`] for strings; [`Error::NotBorrowable`] if the dataset is positional;
    /// [`Error::NotContiguous`] if the samples are in several files.
    pub fn arena(&self, name: &str) -> Result<TensorView<'_>> {
        let (_, plan) = self.only_plan(name)?;
        let bytes = self.borrow_bytes(plan)?;
        TensorView::from_bytes(plan.stored, &[bytes.len() / plan.stored.size()], bytes)
    }

    /// The values of all samples of the file as one tensor, without a copy: what `InMemoryDataset.x` is. It exists where
    /// the only ragged dimension is dimension 0 (or where there is none and dimension 0 is concatenated along, or the
    /// attribute is stacked), the values are stored as they are read, and the dataset is one file and no view of some samples.
    ///
    /// # Errors
    /// [`Error::NotContiguous`] where there is no such tensor, with what [`materialize`](Self::materialize) would take;
    /// otherwise as [`arena`](Self::arena).
    pub fn tensor(&self, name: &str) -> Result<TensorView<'_>> {
        let (part, plan) = self.only_plan(name)?;
        let whole = self.rows.is_whole(part.samples);
        let reason = if !whole {
            Some("the dataset is a view of some samples".to_owned())
        } else if plan.stored != plan.dtype {
            Some(format!("it is stored as {} and read as {}", plan.stored, plan.dtype))
        } else if plan.validity.is_some() {
            Some("it is optional, so some samples may lack it".to_owned())
        } else if !plan.is_dense() {
            Some("samples are not concatenated along dimension 0 alone".to_owned())
        } else {
            None
        };
        if let Some(reason) = reason {
            let bytes = self.materialized_bytes(name)?;
            return Err(Error::NotContiguous {
                attribute: name.into(),
                reason: reason.into(),
                bytes,
            });
        }
        let bytes = self.borrow_bytes(plan)?;
        let shape = self.whole_shape(name)?;
        TensorView::from_bytes(plan.dtype, shape.dims(), bytes)
    }

    /// The shape of an attribute when all samples of the view are concatenated along its `cat_dim` or stacked.
    fn whole_shape(&self, name: &str) -> Result<Shape> {
        let attribute = self.tensor_index(name)?;
        let refuse = |problem: &str| Error::Unsupported {
            what: format!("whole tensor of attribute {name:?}").into(),
            problem: problem.into(),
        };
        let plan = &self.inner.parts[0].plans.attributes[attribute];
        let cat_dim = self.cat_dim(name);
        let mut dims = Vec::with_capacity(plan.dims().len() + 1);
        if cat_dim.is_none() {
            dims.push(self.present(attribute)?);
        }
        for (place, dim) in plan.dims().iter().enumerate() {
            dims.push(match *dim {
                _ if Some(place) == cat_dim => self.total_along(attribute, place)?,
                PlanDim::Fixed(extent) => extent as u64,
                PlanDim::Axis(axis) => self.constant(axis).ok_or_else(|| refuse("a dimension other than the concatenated one differs from sample to sample: read it sample by sample"))?,
            });
        }
        let dims = dims
            .into_iter()
            .map(usize::try_from)
            .collect::<Result<Vec<usize>, _>>()
            .map_err(|_| plan::too_large(&self.inner.storage, plan))?;
        Shape::new(&dims)
    }

    fn cat_dim(&self, name: &str) -> Option<usize> {
        self.schema().attribute(name).and_then(|attribute| attribute.cat_dim_index())
    }

    /// The one length that all samples have along an axis, if the files say so.
    fn constant(&self, axis: usize) -> Option<u64> {
        // Files without samples have nothing to say.
        let mut lengths = self.inner.parts.iter().filter(|part| part.samples > 0).map(|part| {
            match part.plans.axes[axis] {
                AxisPlan::Constant(length) => Some(length),
                AxisPlan::Table(_) => None,
            }
        });
        let Some(first) = lengths.next() else { return Some(0) };
        lengths.all(|length| length == first).then_some(first).flatten()
    }

    /// Samples of the view that have the attribute.
    fn present(&self, attribute: usize) -> Result<u64> {
        let parts = &self.inner.parts;
        if parts[0].plans.attributes[attribute].validity.is_none() {
            return Ok(self.len());
        }
        self.check_tables_of(attribute)?;
        let mut present = 0;
        for index in 0..self.len() {
            let (part, row) = parts.find(self.file_index(index)?);
            let plan = &part.plans.attributes[attribute];
            present += u64::from(!plan.is_absent(&self.inner.storage, row)?);
        }
        Ok(present)
    }

    /// Before all tables that locating an attribute reads are looked at.
    fn check_tables_of(&self, attribute: usize) -> Result<()> {
        for Part { samples, plans, .. } in self.inner.parts.iter() {
            let plan = &plans.attributes[attribute];
            if let Some(validity) = plan.validity {
                self.check_bytes(&(validity..validity + samples.div_ceil(8)))?;
            }
            for dim in plan.dims() {
                if let PlanDim::Axis(axis) = dim
                    && let AxisPlan::Table(table) = &plans.axes[*axis]
                {
                    self.check_bytes(&table.entries(0, *samples))?;
                }
            }
            match &plan.start {
                Start::Own(table) => self.check_bytes(&table.entries(0, *samples))?,
                Start::Fixed | Start::Axis(_) => {}
            }
        }
        Ok(())
    }

    /// The sum of the extents of dimension `place` over the samples of the view that have the attribute.
    fn total_along(&self, attribute: usize, place: usize) -> Result<u64> {
        let Inner { storage, parts, .. } = self.inner();
        let plan = &parts[0].plans.attributes[attribute];
        // An extent that no value stands for (beside one of 0) may be anything.
        let too_large = || plan::too_large(storage, plan);
        let whole = self.rows.is_whole(parts.samples()) && plan.validity.is_none();
        match plan.dims()[place] {
            PlanDim::Fixed(extent) => {
                self.present(attribute)?.checked_mul(extent as u64).ok_or_else(too_large)
            }
            PlanDim::Axis(axis) if whole => self.total_of(axis).ok_or_else(too_large),
            PlanDim::Axis(_) => {
                self.check_tables_of(attribute)?;
                let mut total = 0u64;
                for index in 0..self.len() {
                    let (part, row) = parts.find(self.file_index(index)?);
                    let plan = &part.plans.attributes[attribute];
                    if let Some(located) = part.plans.locate(storage, plan, row)? {
                        total = total
                            .checked_add(located.shape.dims()[place] as u64)
                            .ok_or_else(too_large)?;
                    }
                }
                Ok(total)
            }
        }
    }

    /// The sum of all samples' lengths along an axis; `None` beyond 2^64 - 1.
    fn total_of(&self, axis: usize) -> Option<u64> {
        self.inner.parts.iter().try_fold(0u64, |sum, part| {
            sum.checked_add(match &part.plans.axes[axis] {
                // No overflow: the file's total was compared with it.
                AxisPlan::Constant(length) => length * part.samples,
                AxisPlan::Table(table) => table.total,
            })
        })
    }

    /// Bytes that [`materialize`](Self::materialize) would allocate.
    ///
    /// # Errors
    /// As [`materialize`](Self::materialize).
    pub fn materialized_bytes(&self, name: &str) -> Result<u64> {
        let dtype = self.inner.schema.attributes()[self.tensor_index(name)?].dtype();
        Ok(self.whole_shape(name)?.elements() as u64 * dtype.size() as u64)
    }

    /// The values of all samples of the view as one tensor, concatenated along `cat_dim` or stacked, in memory of its
    /// own; samples that lack the attribute add nothing. Values are widened, and not incremented.
    ///
    /// # Errors
    /// [`Error::UnknownName`]; [`Error::Unsupported`] for strings, or where another dimension than the concatenated one
    /// differs from sample to sample; [`Error::Io`]; [`Error::Format`].
    pub fn materialize(&self, name: &str) -> Result<OwnedTensor> {
        let dtype = self.inner.schema.attributes()[self.tensor_index(name)?].dtype();
        let shape = self.whole_shape(name)?;
        let size = dtype.size();
        let cat_dim = self.cat_dim(name).unwrap_or(0);
        let mut data = AlignedBytes::new();
        data.resize(shape.elements() * size);
        // Dimensions before the concatenated one are the rows that each sample's block is cut into.
        let rows: usize = shape.dims()[..cat_dim.min(shape.rank())].iter().product();
        let row_bytes = data.len().checked_div(rows).unwrap_or(0);
        let view = self.project(&[name])?;
        let mut buffer = SampleBuf::new();
        let mut at = 0;
        for index in 0..view.len() {
            let sample = view.read(index, &mut buffer)?;
            let Some(Value::Tensor(tensor)) = sample.find(name)? else { continue };
            let block = tensor.bytes();
            let part = block.len().checked_div(rows).unwrap_or(0);
            for row in 0..rows {
                let to = row * row_bytes + at;
                data.as_mut_slice()[to..to + part].copy_from_slice(&block[row * part..][..part]);
            }
            at += part;
        }
        Ok(OwnedTensor { dtype, shape, data })
    }

    /// The table of offsets of an axis, or `None` if all samples have one length along it.
    ///
    /// # Errors
    /// [`Error::UnknownName`]; [`Error::NotBorrowable`] if the dataset is positional; [`Error::NotContiguous`] if the samples
    /// are in several files, each of which has a table of its own.
    pub fn offsets(&self, axis: &str) -> Result<Option<Offsets<'_>>> {
        let index = self.inner.axis_index(axis)?;
        if self.constant(index).is_some() {
            return Ok(None);
        }
        let [part] = &*self.inner.parts else {
            return Err(Error::NotContiguous {
                attribute: axis.into(),
                reason: format!(
                    "the tables are in {} files: use `axis_lengths`",
                    self.inner.parts.len()
                )
                .into(),
                bytes: self.len().saturating_mul(4),
            });
        };
        let AxisPlan::Table(table) = &part.plans.axes[index] else { return Ok(None) };
        let range = table.entries(0, part.samples);
        self.check_bytes(&range)?;
        match self.inner.storage.as_slice() {
            // The table was proved to lie in the file, which is in memory here.
            Some(file) => Ok(Some(Offsets::new(
                &file[range.start as usize..range.end as usize],
                table.width,
                table.total,
            ))),
            None => Err(Error::NotBorrowable {
                attribute: axis.into(),
                reason: "the dataset is positional, so its tables are not in memory: use `axis_len` of a sample".into(),
            }),
        }
    }

    /// The sum of all samples' lengths along an axis, and the one length that all have if so.
    ///
    /// # Errors
    /// [`Error::UnknownName`]; [`Error::Unsupported`] if it is beyond 2^64 - 1, which only lengths that no value stands for are.
    pub fn axis_total(&self, axis: &str) -> Result<(u64, Option<u64>)> {
        let index = self.inner.axis_index(axis)?;
        let total = self.total_of(index).ok_or_else(|| Error::Unsupported {
            what: format!("total of axis {axis:?}").into(),
            problem: "it is beyond 2^64 - 1".into(),
        })?;
        Ok((total, self.constant(index)))
    }
}

impl AttributePlan {
    /// Whether the arena, as it lies there, is the concatenation of the samples.
    fn is_dense(&self) -> bool {
        match self.start {
            Start::Fixed => true,
            Start::Axis(_) => matches!(self.dims().first(), Some(PlanDim::Axis(_))),
            Start::Own(_) => false,
        }
    }
}
