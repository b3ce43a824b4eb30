//! Whether a sample fits the schema, decided before anything of it is written.

#![forbid(unsafe_code)]

use super::sample::NewSample;
use crate::error::{Error, Result, SampleError};
use crate::format::{Attribute, DType, Dim, Element, Increment, Schema, TensorView, Value, narrow};

/// One dimension, with its axis as an index.
#[derive(Debug, Clone, Copy)]
enum PlanDim {
    Fixed(u64),
    Axis(usize),
}

/// Along which axes the values of an integer attribute are indices.
#[derive(Debug)]
enum IndexBound {
    None,
    Axis(usize),
    PerRow(Vec<Option<usize>>),
}

#[derive(Debug)]
struct AttributePlan {
    attribute: Attribute,
    dims: Vec<PlanDim>,
    bound: IndexBound,
}

/// The schema, made ready for checking sample after sample without allocating.
#[derive(Debug)]
pub(super) struct Checker {
    plans: Vec<AttributePlan>,
    axes: Vec<String>,
    check_indices: bool,
    /// Place in the sample of each attribute's value.
    found: Vec<Option<usize>>,
    /// Length along each axis.
    lengths: Vec<Option<u64>>,
    /// Narrowed values of the sample, back to back, and the end of each attribute's.
    narrowed: Vec<u8>,
    narrowed_ends: Vec<usize>,
}

impl Checker {
    pub(super) fn new(schema: &Schema, check_indices: bool) -> Self {
        let axis = |name: &str| {
            schema.axis_index(name).expect("a schema's attributes name only its own axes")
        };
        let plans: Vec<AttributePlan> = schema
            .attributes()
            .iter()
            .map(|attribute| AttributePlan {
                dims: attribute
                    .shape()
                    .iter()
                    .map(|dim| match dim {
                        Dim::Fixed(extent) => PlanDim::Fixed(*extent),
                        Dim::Axis(name) => PlanDim::Axis(axis(name)),
                    })
                    .collect(),
                bound: match attribute.increment_rule() {
                    Increment::Axis(name) => IndexBound::Axis(axis(name)),
                    Increment::PerRow(rows) => IndexBound::PerRow(
                        rows.iter().map(|row| row.as_deref().map(axis)).collect(),
                    ),
                    Increment::None | Increment::Attribute(_) => IndexBound::None,
                },
                attribute: attribute.clone(),
            })
            .collect();
        Checker {
            found: Vec::with_capacity(plans.len()),
            lengths: Vec::with_capacity(schema.axes().len()),
            narrowed: Vec::new(),
            narrowed_ends: Vec::with_capacity(plans.len()),
            plans,
            axes: schema.axes().to_vec(),
            check_indices,
        }
    }

    /// Checks everything that can be wrong with a sample. Afterwards [`value`](Self::value),
    /// [`length`](Self::length) and [`stored_bytes`](Self::stored_bytes) describe it.
    pub(super) fn check(&mut self, index: u64, sample: &NewSample<'_>) -> Result<()> {
        self.match_names(index, sample)?;
        self.match_shapes(index, sample)?;
        self.match_values(index, sample)
    }

    fn match_names(&mut self, index: u64, sample: &NewSample<'_>) -> Result<()> {
        let values = sample.values();
        self.found.clear();
        let mut matched = 0;
        for (place, plan) in self.plans.iter().enumerate() {
            let name = plan.attribute.name();
            // Samples come in the schema's order more often than not.
            let at = match values.get(place) {
                Some((here, _)) if *here == name => Some(place),
                _ => values.iter().position(|(known, _)| *known == name),
            };
            if at.is_none() && !plan.attribute.is_optional() {
                return Err(refuse(
                    index,
                    name,
                    describe(&plan.attribute),
                    "no value",
                    "add it, or declare the attribute optional",
                ));
            }
            matched += usize::from(at.is_some());
            self.found.push(at);
        }
        if matched == values.len() {
            return Ok(());
        }
        for (at, (name, value)) in values.iter().enumerate() {
            if !self.found.contains(&Some(at)) {
                let twice = values[..at].iter().any(|(known, _)| known == name);
                let known: Vec<&str> =
                    self.plans.iter().map(|plan| plan.attribute.name()).collect();
                return Err(if twice {
                    refuse(index, name, "one value", "two values of this name", "")
                } else {
                    refuse(
                        index,
                        name,
                        format!("one of the attributes {}", known.join(", ")),
                        format!("{} of shape {:?}", value.dtype(), value.shape()),
                        "leave it out, or declare it in the schema",
                    )
                });
            }
        }
        Ok(())
    }

    fn match_shapes(&mut self, index: u64, sample: &NewSample<'_>) -> Result<()> {
        self.lengths.clear();
        self.lengths.resize(self.axes.len(), None);
        for (name, length) in sample.axes() {
            let Some(axis) = self.axes.iter().position(|known| known == name) else {
                return Err(refuse(
                    index,
                    name,
                    format!("one of the axes {}", self.axes.join(", ")),
                    "an axis of this name",
                    "",
                ));
            };
            match self.lengths[axis].replace(*length) {
                Some(earlier) if earlier != *length => {
                    return Err(refuse(
                        index,
                        name,
                        format!("one length of the axis, {earlier}"),
                        length.to_string(),
                        "",
                    ));
                }
                _ => {}
            }
        }
        for (place, plan) in self.plans.iter().enumerate() {
            let Some(at) = self.found[place] else { continue };
            let value = &sample.values()[at].1;
            let shape = value.shape();
            let wanted = &plan.attribute;
            if value.dtype() != wanted.dtype() || shape.len() != plan.dims.len() {
                return Err(refuse(
                    index,
                    wanted.name(),
                    describe(wanted),
                    found(value),
                    "values are never converted silently: convert it",
                ));
            }
            for (dim, extent) in plan.dims.iter().zip(shape) {
                let extent = *extent as u64;
                match *dim {
                    PlanDim::Fixed(expected) if expected == extent => {}
                    PlanDim::Fixed(_) => {
                        return Err(refuse(
                            index,
                            wanted.name(),
                            describe(wanted),
                            found(value),
                            "",
                        ));
                    }
                    PlanDim::Axis(axis) => match self.lengths[axis] {
                        None => self.lengths[axis] = Some(extent),
                        Some(length) if length == extent => {}
                        Some(length) => {
                            return Err(refuse(
                                index,
                                wanted.name(),
                                format!(
                                    "length {length} along the axis {:?}, as told before",
                                    self.axes[axis]
                                ),
                                found(value),
                                "",
                            ));
                        }
                    },
                }
            }
        }
        for axis in 0..self.axes.len() {
            if self.lengths[axis].is_none() {
                let absent_only = self.plans.iter().any(|plan| {
                    plan.dims.iter().any(|dim| matches!(dim, PlanDim::Axis(used) if *used == axis))
                });
                if !absent_only {
                    return Err(refuse(
                        index,
                        &self.axes[axis],
                        "the length along this axis",
                        "no value that runs along it",
                        "give it with `axis(name, length)`",
                    ));
                }
                self.lengths[axis] = Some(0);
            }
        }
        Ok(())
    }

    fn match_values(&mut self, index: u64, sample: &NewSample<'_>) -> Result<()> {
        self.narrowed.clear();
        self.narrowed_ends.clear();
        for (place, plan) in self.plans.iter().enumerate() {
            if let Some(at) = self.found[place]
                && let Value::Tensor(tensor) = &sample.values()[at].1
            {
                let attribute = &plan.attribute;
                if self.check_indices {
                    check_bounds(index, plan, tensor, &self.lengths, &self.axes)?;
                }
                if attribute.dtype() == DType::Bool
                    && let Some(element) = tensor.bytes().iter().position(|&byte| byte > 1)
                {
                    return Err(refuse(
                        index,
                        attribute.name(),
                        "bools stored as 0 or 1",
                        format!("{} at element {element}", tensor.bytes()[element]),
                        "",
                    ));
                }
                let (stored, logical) = (attribute.stored_dtype(), attribute.dtype());
                if stored != logical {
                    narrow::narrow_into(stored, logical, tensor.bytes(), &mut self.narrowed)
                        .map_err(|element| {
                            refuse(
                                index,
                                attribute.name(),
                                format!("values that {stored} holds exactly"),
                                format!("{} at element {element}", show(tensor, element)),
                                "declare the attribute with a wider stored type",
                            )
                        })?;
                }
            }
            self.narrowed_ends.push(self.narrowed.len());
        }
        Ok(())
    }

    /// The value of attribute `place` in the sample just checked.
    pub(super) fn value<'s, 'a>(
        &self,
        place: usize,
        sample: &'s NewSample<'a>,
    ) -> Option<&'s Value<'a>> {
        self.found[place].map(|at| &sample.values()[at].1)
    }

    /// The length of the sample just checked along axis `axis`.
    pub(super) fn length(&self, axis: usize) -> u64 {
        self.lengths[axis].unwrap_or(0)
    }

    /// The bytes of attribute `place`, as they are stored.
    pub(super) fn stored_bytes<'b>(&'b self, place: usize, tensor: &TensorView<'b>) -> &'b [u8] {
        let attribute = &self.plans[place].attribute;
        if attribute.stored_dtype() == attribute.dtype() {
            return tensor.bytes();
        }
        let start = if place == 0 { 0 } else { self.narrowed_ends[place - 1] };
        &self.narrowed[start..self.narrowed_ends[place]]
    }
}

pub(crate) fn refuse(
    sample: u64,
    attribute: &str,
    expected: impl Into<String>,
    found: impl Into<String>,
    advice: &str,
) -> Error {
    Error::Sample(Box::new(SampleError {
        sample,
        attribute: attribute.to_owned(),
        expected: expected.into(),
        found: found.into(),
        advice: advice.to_owned(),
    }))
}

fn describe(attribute: &Attribute) -> String {
    format!("{} of shape {}", attribute.dtype(), attribute.pattern())
}

fn found(value: &Value<'_>) -> String {
    format!("{} of shape {:?}", value.dtype(), value.shape())
}

fn check_bounds(
    index: u64,
    plan: &AttributePlan,
    tensor: &TensorView<'_>,
    lengths: &[Option<u64>],
    axes: &[String],
) -> Result<()> {
    let check = |bytes: &[u8], first: usize, axis: usize| {
        let length = lengths[axis].unwrap_or(0);
        let Some((low, high)) = extremes(tensor.dtype(), bytes) else { return Ok(()) };
        if low >= 0 && high < i128::from(length) {
            return Ok(());
        }
        let bad = if low < 0 { low } else { high };
        let size = tensor.dtype().size();
        let at = bytes
            .chunks_exact(size)
            .position(|value| {
                extremes(tensor.dtype(), value).is_some_and(|(value, _)| value == bad)
            })
            .unwrap_or(0);
        Err(refuse(
            index,
            plan.attribute.name(),
            format!("indices in 0..{length}, along the axis {:?}", axes[axis]),
            format!("{bad} at element {}", first + at),
            "mend the indices, or turn the check off with `check_indices(false)`",
        ))
    };
    match &plan.bound {
        IndexBound::None => Ok(()),
        IndexBound::Axis(axis) => check(tensor.bytes(), 0, *axis),
        IndexBound::PerRow(rows) => {
            // The schema has one rule for each index of dimension 0, whose extent is fixed.
            let row_bytes = tensor.bytes().len() / rows.len().max(1);
            let row_elements = row_bytes / tensor.dtype().size();
            for (row, axis) in rows.iter().enumerate() {
                if let Some(axis) = axis {
                    check(
                        &tensor.bytes()[row * row_bytes..][..row_bytes],
                        row * row_elements,
                        *axis,
                    )?;
                }
            }
            Ok(())
        }
    }
}

/// Least and greatest of little-endian integers; `None` if there are none or they are no integers.
fn extremes(dtype: DType, bytes: &[u8]) -> Option<(i128, i128)> {
    fn of<T: Element + Ord + Into<i128>>(bytes: &[u8]) -> Option<(i128, i128)> {
        let mut values = bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned::<T>);
        let first = values.next()?;
        let (low, high) =
            values.fold((first, first), |(low, high), value| (low.min(value), high.max(value)));
        Some((low.into(), high.into()))
    }
    match dtype {
        DType::U8 => of::<u8>(bytes),
        DType::U16 => of::<u16>(bytes),
        DType::U32 => of::<u32>(bytes),
        DType::U64 => of::<u64>(bytes),
        DType::I8 => of::<i8>(bytes),
        DType::I16 => of::<i16>(bytes),
        DType::I32 => of::<i32>(bytes),
        DType::I64 => of::<i64>(bytes),
        _ => None,
    }
}

/// One element as text, for an error.
fn show(tensor: &TensorView<'_>, element: usize) -> String {
    let size = tensor.dtype().size();
    let bytes = &tensor.bytes()[element * size..][..size];
    match tensor.dtype() {
        DType::F32 => format!("{:?}", bytemuck::pod_read_unaligned::<f32>(bytes)),
        DType::F64 => format!("{:?}", bytemuck::pod_read_unaligned::<f64>(bytes)),
        dtype => extremes(dtype, bytes)
            .map_or_else(|| format!("{bytes:02x?}"), |(value, _)| value.to_string()),
    }
}

/// Greatest integer of a tensor, for increments by `max + 1`.
pub(super) fn greatest(tensor: &TensorView<'_>) -> Option<i128> {
    extremes(tensor.dtype(), tensor.bytes()).map(|(_, high)| high)
}
