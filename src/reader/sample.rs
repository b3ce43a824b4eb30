//! One sample: views into the file's bytes, or into a buffer that is used again and again.

#![forbid(unsafe_code)]

use std::fmt;
use std::ops::Range;

use super::Inner;
use super::parts::Part;
use super::plan::{AttributePlan, Located, Plans, StringsPlan, fetch, too_large};
use crate::aligned::{ALIGNMENT, AlignedBytes};
use crate::error::{Error, FormatError, Result};
use crate::format::{DType, Element, Shape, StringsView, TensorView, Value, check_utf8, narrow};
use crate::storage::Storage;

/// Memory for one sample, filled by [`Dataset::read`](crate::Dataset::read). Keep it and pass it again: once it has grown
/// to the largest sample, reading allocates nothing.
#[derive(Debug, Default)]
pub struct SampleBuf {
    data: AlignedBytes,
    /// Values of narrowed attributes, before they are widened.
    narrow: Vec<u8>,
    /// One entry an attribute of the file.
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Default)]
enum Entry {
    /// Not asked for.
    #[default]
    Left,
    /// The sample lacks it.
    Absent,
    Present {
        shape: Shape,
        /// Place in the buffer.
        data: Range<usize>,
        /// Place of the element ends in the buffer, and where in the arena `data` starts.
        ends: Range<usize>,
        base: u64,
    },
}

impl SampleBuf {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes room behind `end`, aligned; gives the place.
    fn reserve(&mut self, end: usize, length: usize) -> Range<usize> {
        let start = end.next_multiple_of(ALIGNMENT);
        self.data.resize(start + length);
        start..start + length
    }

    /// Reads sample `index` of the samples that the plans are of.
    pub(super) fn fill(
        &mut self,
        storage: &Storage,
        plans: &Plans,
        index: u64,
        attributes: &[usize],
    ) -> Result<()> {
        self.entries.clear();
        self.entries.resize(plans.attributes.len(), Entry::Left);
        let mut end = 0;
        for &attribute in attributes {
            let plan = &plans.attributes[attribute];
            self.entries[attribute] = match plans.locate(storage, plan, index)? {
                None => Entry::Absent,
                Some(located) => self.fill_one(storage, plan, located, &mut end)?,
            };
        }
        Ok(())
    }

    fn fill_one(
        &mut self,
        storage: &Storage,
        plan: &AttributePlan,
        located: Located,
        end: &mut usize,
    ) -> Result<Entry> {
        let size = |range: &Range<u64>| {
            usize::try_from(range.end - range.start).map_err(|_| too_large(storage, plan))
        };
        let stored = size(&located.bytes)?;
        let data = if plan.stored == plan.dtype {
            let data = self.reserve(*end, stored);
            fetch(storage, located.bytes.start, &mut self.data.as_mut_slice()[data.clone()])?;
            data
        } else {
            self.narrow.resize(stored, 0);
            fetch(storage, located.bytes.start, &mut self.narrow)?;
            let wide = stored / plan.stored.size() * plan.dtype.size();
            let data = self.reserve(*end, wide);
            let target = &mut self.data.as_mut_slice()[data.clone()];
            narrow::widen_into(plan.stored, plan.dtype, &self.narrow, target);
            data
        };
        *end = data.end;
        let mut ends = 0..0;
        if let Some((at, width)) = plan.strings.and_then(|strings| strings.ends) {
            let width = width.size() as u64;
            let range = at + located.elements.start * width..at + located.elements.end * width;
            ends = self.reserve(*end, size(&range)?);
            fetch(storage, range.start, &mut self.data.as_mut_slice()[ends.clone()])?;
            *end = ends.end;
        }
        let base = located.bytes.start - plan.data.start;
        Ok(Entry::Present { shape: located.shape, data, ends, base })
    }

    /// The value of an attribute, checked; `None` if the sample lacks it or it was not asked for.
    pub(super) fn value(
        &self,
        storage: &Storage,
        plans: &Plans,
        attribute: usize,
    ) -> Result<Option<Value<'_>>> {
        let Entry::Present { shape, data, ends, base } = &self.entries[attribute] else {
            return Ok(None);
        };
        let bytes = self.data.as_slice();
        let (data, ends) = (&bytes[data.clone()], &bytes[ends.clone()]);
        view(storage, &plans.attributes[attribute], *shape, data, ends, *base).map(Some)
    }
}

#[derive(Clone, Copy)]
enum Source<'a> {
    /// The file's own bytes.
    File(&'a [u8]),
    Buffer(&'a SampleBuf),
}

/// One sample of a dataset: [`Dataset::get`](crate::Dataset::get), [`Dataset::read`](crate::Dataset::read).
///
/// From `get`, its values are borrowed from the file's bytes, found and checked when asked for. From `read`, they are in
/// the buffer that was passed.
#[derive(Clone, Copy)]
pub struct Sample<'a> {
    inner: &'a Inner,
    part: &'a Part,
    /// Index in the part.
    index: u64,
    attributes: &'a [usize],
    source: Source<'a>,
}

impl<'a> Sample<'a> {
    pub(super) fn borrowed(
        inner: &'a Inner,
        (part, index): (&'a Part, u64),
        attributes: &'a [usize],
        file: &'a [u8],
    ) -> Self {
        Sample { inner, part, index, attributes, source: Source::File(file) }
    }

    pub(super) fn buffered(
        inner: &'a Inner,
        (part, index): (&'a Part, u64),
        attributes: &'a [usize],
        buffer: &'a SampleBuf,
    ) -> Self {
        Sample { inner, part, index, attributes, source: Source::Buffer(buffer) }
    }

    /// The sample's index in the file, or in all files of the dataset, whatever view it was reached through.
    pub fn file_index(&self) -> u64 {
        self.part.first + self.index
    }

    /// Names of the attributes, in file order, those included that this sample lacks.
    pub fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let plans = &self.part.plans;
        self.attributes.iter().map(move |&attribute| &*plans.attributes[attribute].name)
    }

    /// The value of an attribute.
    ///
    /// # Errors
    /// [`Error::UnknownName`]; [`Error::AttributeRefused`]; [`Error::Absent`] if this sample lacks an optional attribute
    /// ([`find`](Self::find) gives `None` instead); [`Error::NotBorrowable`] from `get` for an attribute stored narrow;
    /// [`Error::Format`] if the sample's offsets or values break a rule.
    pub fn attr(&self, name: &str) -> Result<Value<'a>> {
        self.find(name)?
            .ok_or_else(|| Error::Absent { attribute: name.into(), sample: self.file_index() })
    }

    /// The value of an attribute, or `None` if this sample lacks it.
    ///
    /// # Errors
    /// As [`attr`](Self::attr), without [`Error::Absent`].
    pub fn find(&self, name: &str) -> Result<Option<Value<'a>>> {
        let attribute = self.inner.attribute_index(name, self.attributes)?;
        self.value(attribute)
    }

    /// All values, in file order; `None` for an attribute that the sample lacks.
    ///
    /// # Errors
    /// Each item as [`find`](Self::find).
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Result<Option<Value<'a>>>)> + use<'a> {
        let sample = *self;
        self.attributes.iter().map(move |&attribute| {
            (&*sample.part.plans.attributes[attribute].name, sample.value(attribute))
        })
    }

    /// The sample's length along an axis.
    ///
    /// # Errors
    /// [`Error::UnknownName`]; [`Error::Format`] if the two offsets break a rule.
    pub fn axis_len(&self, axis: &str) -> Result<u64> {
        let axis = self.inner.axis_index(axis)?;
        let range = self.part.plans.axis_range(&self.inner.storage, axis, self.index)?;
        Ok(range.end - range.start)
    }

    /// Rows `rows` of the outermost dimension of a tensor attribute.
    ///
    /// # Errors
    /// As [`attr`](Self::attr) and [`TensorView::rows`].
    pub fn rows(&self, name: &str, rows: Range<usize>) -> Result<TensorView<'a>> {
        match self.attr(name)? {
            Value::Tensor(tensor) => tensor.rows(rows),
            Value::Strings(_) => Err(Error::Unsupported {
                what: format!("rows of attribute {name:?}").into(),
                problem: "it holds strings: index them one by one".into(),
            }),
        }
    }

    #[inline]
    fn value(&self, attribute: usize) -> Result<Option<Value<'a>>> {
        let plans = &self.part.plans;
        match self.source {
            Source::File(file) => self.borrow(&plans.attributes[attribute], file),
            Source::Buffer(buffer) => buffer.value(&self.inner.storage, plans, attribute),
        }
    }

    #[inline]
    fn borrow(&self, plan: &AttributePlan, file: &'a [u8]) -> Result<Option<Value<'a>>> {
        if plan.stored != plan.dtype {
            return Err(Error::NotBorrowable {
                attribute: plan.name.clone(),
                reason: format!(
                    "it is stored as {} and read as {}: use `read`",
                    plan.stored, plan.dtype
                )
                .into(),
            });
        }
        let storage = &self.inner.storage;
        let Some(located) = self.part.plans.locate(storage, plan, self.index)? else {
            return Ok(None);
        };
        // The offsets were checked against totals whose sections were proved to lie in the file, and the file is in
        // memory, so its places fit a usize.
        let data = &file[located.bytes.start as usize..located.bytes.end as usize];
        let ends = match plan.strings.and_then(|strings| strings.ends) {
            Some((at, width)) => {
                let width = width.size() as u64;
                let range = at + located.elements.start * width..at + located.elements.end * width;
                &file[range.start as usize..range.end as usize]
            }
            None => &[],
        };
        let base = located.bytes.start - plan.data.start;
        view(storage, plan, located.shape, data, ends, base).map(Some)
    }

    /// The typed values of a tensor attribute: [`Value::as_slice`].
    ///
    /// # Errors
    /// As [`attr`](Self::attr), and [`Error::WrongDType`].
    pub fn slice<T: Element>(&self, name: &str) -> Result<&'a [T]> {
        self.attr(name)?.as_slice()
    }
}

/// The view of checked places, after checking what the values themselves can have wrong.
#[inline]
fn view<'a>(
    storage: &Storage,
    plan: &AttributePlan,
    shape: Shape,
    data: &'a [u8],
    ends: &'a [u8],
    base: u64,
) -> Result<Value<'a>> {
    let at = |fault: FormatError| fault.at(storage.path_at(plan.data.start));
    match &plan.strings {
        None => {
            if plan.dtype == DType::Bool {
                check_bools(&plan.name, data).map_err(at)?;
            }
            Ok(Value::Tensor(TensorView::trusted(plan.dtype, shape, data)))
        }
        Some(strings) => {
            strings_view(plan, strings, shape, data, ends, base).map(Value::Strings).map_err(at)
        }
    }
}

/// Apart, so that the tensors' way stays short.
fn strings_view<'a>(
    plan: &AttributePlan,
    strings: &StringsPlan,
    shape: Shape,
    data: &'a [u8],
    ends: &'a [u8],
    base: u64,
) -> Result<StringsView<'a>, FormatError> {
    match strings.ends {
        Some((_, width)) => {
            StringsView::packed(&plan.name, plan.dtype, shape, data, ends, width, base)
        }
        None => {
            if plan.dtype == DType::Utf8 {
                check_utf8(&plan.name, data)?;
            }
            Ok(StringsView::one(plan.dtype, data))
        }
    }
}

pub(super) fn check_bools(attribute: &str, bytes: &[u8]) -> Result<(), FormatError> {
    // A plain fold is vectorised; a search that can stop early is not. Bad bytes are looked for only once known.
    if bytes.iter().fold(0, |all, &byte| all | byte) <= 1 {
        return Ok(());
    }
    let element = bytes.iter().position(|&byte| byte > 1).unwrap_or(0);
    Err(FormatError::Bool {
        attribute: attribute.to_owned(),
        element: element as u64,
        found: bytes[element],
    })
}

impl fmt::Debug for Sample<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for (name, value) in self.iter() {
            match value {
                Ok(value) => map.entry(&name, &value),
                Err(error) => map.entry(&name, &error),
            };
        }
        map.finish()
    }
}
