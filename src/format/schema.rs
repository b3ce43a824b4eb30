//! The logical schema: names, dtypes, shapes, how samples are batched. It never depends on the values written.

#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::fmt;

use serde_json::{Map, Value as Json, json};

use super::{DType, MAX_NAME_BYTES, MAX_RANK, json, narrow, product};
use crate::error::{Error, Result};

/// One dimension of an attribute's shape pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Dim {
    /// The same extent in every sample.
    Fixed(u64),
    /// The extent is the sample's length along the axis of this name.
    Axis(String),
}

impl From<&str> for Dim {
    fn from(axis: &str) -> Self {
        Dim::Axis(axis.to_owned())
    }
}

impl From<String> for Dim {
    fn from(axis: String) -> Self {
        Dim::Axis(axis)
    }
}

impl From<u64> for Dim {
    fn from(extent: u64) -> Self {
        Dim::Fixed(extent)
    }
}

impl From<usize> for Dim {
    fn from(extent: usize) -> Self {
        Dim::Fixed(extent as u64)
    }
}

impl From<i32> for Dim {
    /// For literals such as `dims!["nodes", 11]`; a negative extent becomes one that no schema accepts.
    fn from(extent: i32) -> Self {
        Dim::Fixed(u64::try_from(extent).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Fixed(extent) => write!(f, "{extent}"),
            Dim::Axis(axis) => f.write_str(axis),
        }
    }
}

/// A shape pattern of fixed extents and axis names: `dims!["nodes", 11]`, `dims![2, "edges"]`, `dims![]`.
#[macro_export]
macro_rules! dims {
    ($($dim:expr),* $(,)?) => { [$($crate::Dim::from($dim)),*] as [$crate::Dim; <[()]>::len(&[$($crate::dims!(@unit $dim)),*])] };
    (@unit $dim:expr) => { () };
}

/// What is added to an attribute's values when samples are batched, so that they index into the batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Increment {
    /// Nothing.
    #[default]
    None,
    /// The lengths along this axis of the samples before (PyG's `edge_index` by `num_nodes`).
    Axis(String),
    /// One rule for each index of dimension 0 (a bipartite `edge_index` counts sources in row 0, targets in row 1).
    PerRow(Vec<Option<String>>),
    /// The sum, over the samples before, of the values of a hidden attribute: one for the whole value, or one for each
    /// index of dimension 0. It holds what a user's own `__inc__` returned when the sample was written.
    Attribute(String),
}

/// The description of one attribute: a named tensor that every sample has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    name: String,
    dtype: DType,
    stored: DType,
    shape: Vec<Dim>,
    cat_dim: Option<usize>,
    increment: Increment,
    optional: bool,
    hidden: bool,
}

impl Attribute {
    /// An attribute of this dtype and shape pattern.
    ///
    /// Batches concatenate it along its outermost ragged dimension, along dimension 0 if none is ragged, and stack it if
    /// it is a scalar; [`cat_dim`](Self::cat_dim) and [`stack`](Self::stack) say otherwise.
    ///
    /// ```
    /// use fencepost::{Attribute, DType, dims};
    /// let x = Attribute::new("x", DType::F32, dims!["nodes", 11]);
    /// let edges = Attribute::new("edge_index", DType::I64, dims![2, "edges"]).increment_by("nodes");
    /// let y = Attribute::new("y", DType::F32, dims![1, 19]);
    /// assert_eq!((x.cat_dim_index(), edges.cat_dim_index(), y.cat_dim_index()), (Some(0), Some(1), Some(0)));
    /// ```
    pub fn new(
        name: impl Into<String>,
        dtype: DType,
        shape: impl IntoIterator<Item = impl Into<Dim>>,
    ) -> Self {
        let shape: Vec<Dim> = shape.into_iter().map(Into::into).collect();
        let ragged = shape.iter().position(|dim| matches!(dim, Dim::Axis(_)));
        let cat_dim = ragged.or(if shape.is_empty() { None } else { Some(0) });
        Attribute {
            name: name.into(),
            dtype,
            stored: dtype,
            shape,
            cat_dim,
            increment: Increment::None,
            optional: false,
            hidden: false,
        }
    }

    /// Concatenates along dimension `dim` when batched.
    #[must_use]
    pub fn cat_dim(mut self, dim: usize) -> Self {
        self.cat_dim = Some(dim);
        self
    }

    /// Stacks along a new first dimension when batched.
    #[must_use]
    pub fn stack(mut self) -> Self {
        self.cat_dim = None;
        self
    }

    /// Increments by the lengths along `axis`: the values are indices along it.
    #[must_use]
    pub fn increment_by(self, axis: impl Into<String>) -> Self {
        self.increment(Increment::Axis(axis.into()))
    }

    /// Increments by this rule.
    #[must_use]
    pub fn increment(mut self, increment: Increment) -> Self {
        self.increment = increment;
        self
    }

    /// Lets samples lack the attribute.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Keeps the attribute out of samples and batches; for increments' sake only.
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// Stores the values as a narrower type that holds each of them exactly; a value that it does not hold is refused
    /// when pushed. Readers widen.
    #[must_use]
    pub fn stored(mut self, stored: DType) -> Self {
        self.stored = stored;
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The element type that readers give.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The element type in the file.
    pub fn stored_dtype(&self) -> DType {
        self.stored
    }

    /// The shape pattern.
    pub fn shape(&self) -> &[Dim] {
        &self.shape
    }

    /// The dimension that batching concatenates along, or `None` to stack.
    pub fn cat_dim_index(&self) -> Option<usize> {
        self.cat_dim
    }

    /// What is added when batching.
    pub fn increment_rule(&self) -> &Increment {
        &self.increment
    }

    /// Whether samples may lack it.
    pub fn is_optional(&self) -> bool {
        self.optional
    }

    /// Whether it is kept out of samples and batches.
    pub fn is_hidden(&self) -> bool {
        self.hidden
    }

    /// The names of the axes in the shape, outermost first; an axis may come twice.
    pub fn ragged_dims(&self) -> impl Iterator<Item = &str> {
        self.shape.iter().filter_map(|dim| match dim {
            Dim::Axis(axis) => Some(axis.as_str()),
            Dim::Fixed(_) => None,
        })
    }

    /// The product of the fixed extents, or `None` beyond 2^63 - 1.
    pub(crate) fn fixed_elements(&self) -> Option<u64> {
        product(self.shape.iter().map(|dim| match dim {
            Dim::Fixed(extent) => *extent,
            Dim::Axis(_) => 1,
        }))
    }

    /// Whether the attribute needs a table of its own, because its axis' table does not say where a sample starts.
    pub(crate) fn needs_own_offsets(&self) -> bool {
        let ragged = self.ragged_dims().count();
        ragged >= 2 || (ragged == 1 && self.optional)
    }

    /// The pattern as people write it: `[nodes, 11]`.
    pub fn pattern(&self) -> String {
        let dims: Vec<String> = self.shape.iter().map(Dim::to_string).collect();
        format!("[{}]", dims.join(", "))
    }

    /// The keys of the logical description, as they stand in the directory.
    pub(crate) fn to_json(&self) -> Map<String, Json> {
        let shape: Vec<Json> = self
            .shape
            .iter()
            .map(|dim| match dim {
                Dim::Fixed(extent) => json!(extent),
                Dim::Axis(axis) => json!(axis),
            })
            .collect();
        let mut map = Map::new();
        map.insert("name".into(), json!(self.name));
        map.insert("dtype".into(), json!(self.dtype.name()));
        map.insert("shape".into(), shape.into());
        map.insert("cat_dim".into(), json!(self.cat_dim));
        map.insert(
            "increment".into(),
            match &self.increment {
                Increment::None => Json::Null,
                Increment::Axis(axis) => json!(axis),
                Increment::PerRow(rows) => json!(rows),
                Increment::Attribute(name) => json!({ "attribute": name }),
            },
        );
        if self.optional {
            map.insert("optional".into(), json!(true));
        }
        if self.hidden {
            map.insert("hidden".into(), json!(true));
        }
        if self.stored != self.dtype {
            map.insert("stored".into(), json!(self.stored.name()));
        }
        map
    }
}

/// The axes and attributes of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    axes: Vec<String>,
    attributes: Vec<Attribute>,
}

/// Collects axes and attributes and checks them: [`Schema::builder`].
#[derive(Debug, Default)]
pub struct SchemaBuilder {
    axes: Vec<String>,
    attributes: Vec<Attribute>,
}

impl SchemaBuilder {
    /// Adds an axis: a named dimension whose length differs from sample to sample.
    #[must_use]
    pub fn axis(mut self, name: impl Into<String>) -> Self {
        self.axes.push(name.into());
        self
    }

    /// Adds an attribute. Axes that its shape names and that were not added are added.
    #[must_use]
    pub fn attribute(mut self, attribute: Attribute) -> Self {
        for axis in attribute.ragged_dims() {
            if !self.axes.iter().any(|known| known == axis) {
                self.axes.push(axis.to_owned());
            }
        }
        self.attributes.push(attribute);
        self
    }

    /// Checks the rules and gives the schema.
    ///
    /// # Errors
    /// [`Error::Schema`] naming the axis or attribute and the rule that it breaks.
    pub fn build(self) -> Result<Schema> {
        Schema::new(self.axes, self.attributes)
    }
}

impl Schema {
    /// Starts an empty schema.
    ///
    /// ```
    /// use fencepost::{Attribute, DType, Schema, dims};
    /// let schema = Schema::builder()
    ///     .attribute(Attribute::new("x", DType::F32, dims!["nodes", 11]))
    ///     .attribute(Attribute::new("edge_index", DType::I64, dims![2, "edges"]).increment_by("nodes"))
    ///     .build()?;
    /// assert_eq!(schema.axes(), ["nodes", "edges"]);
    /// # Ok::<(), fencepost::Error>(())
    /// ```
    pub fn builder() -> SchemaBuilder {
        SchemaBuilder::default()
    }

    /// Checks the rules of SPEC section "Attributes" that concern the logical schema.
    pub(crate) fn new(axes: Vec<String>, attributes: Vec<Attribute>) -> Result<Self> {
        let mut seen = HashSet::new();
        for axis in &axes {
            check_name("axis", axis)?;
            if !seen.insert(axis.as_str()) {
                return Err(Error::schema(
                    format!("axis {axis:?}"),
                    "the name is taken by another axis",
                ));
            }
        }
        let mut names = HashSet::new();
        for attribute in &attributes {
            check_name("attribute", &attribute.name)?;
            if !names.insert(attribute.name.as_str()) {
                return Err(wrong(attribute, "the name is taken by another attribute"));
            }
        }
        for attribute in &attributes {
            check_attribute(attribute, &seen, &attributes)?;
        }
        Ok(Schema { axes, attributes })
    }

    /// The same axes with other attributes; the caller has checked them.
    pub(crate) fn with_attributes(self, attributes: Vec<Attribute>) -> Self {
        Schema { axes: self.axes, attributes }
    }

    /// Names of the axes, in file order.
    pub fn axes(&self) -> &[String] {
        &self.axes
    }

    /// Says what an attribute's values are stored as: a legal type, which the caller has seen to.
    pub(crate) fn set_stored(&mut self, attribute: usize, stored: DType) {
        self.attributes[attribute].stored = stored;
    }

    /// The attributes, in file order, hidden ones included.
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// The attribute of this name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    pub(crate) fn axis_index(&self, name: &str) -> Option<usize> {
        self.axes.iter().position(|axis| axis == name)
    }

    /// The first thing in which the logical schema of `other` differs from this one, in words: what this one has, and what
    /// the other. How values are stored is not part of it.
    pub fn difference(&self, other: &Schema) -> Option<String> {
        let list = |names: &[String]| names.join(", ");
        if self.axes != other.axes {
            let (here, there) = (list(&self.axes), list(&other.axes));
            return Some(format!("expected the axes [{here}], found [{there}]"));
        }
        let logical = |attribute: &Attribute| {
            let mut map = attribute.to_json();
            map.remove("stored");
            map
        };
        for (here, there) in self.attributes.iter().zip(&other.attributes) {
            let (one, two) = (logical(here), logical(there));
            if let Some(key) =
                one.keys().chain(two.keys()).find(|&key| one.get(key) != two.get(key))
            {
                let show = |map: &Map<String, Json>| {
                    map.get(key).map_or_else(|| "nothing".to_owned(), Json::to_string)
                };
                return Some(format!(
                    "expected the {key} {} of attribute {:?}, found {}",
                    show(&one),
                    here.name,
                    show(&two)
                ));
            }
        }
        let (here, there) = (&self.attributes, &other.attributes);
        let extra = |all: &[Attribute], known: usize| {
            let names: Vec<&str> = all[known..].iter().map(Attribute::name).collect();
            names.join(", ")
        };
        match here.len().cmp(&there.len()) {
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(format!(
                "expected the attributes {}, found none of this name",
                extra(here, there.len())
            )),
            std::cmp::Ordering::Less => {
                Some(format!("expected no further attribute, found {}", extra(there, here.len())))
            }
        }
    }

    /// The schema as JSON text with the directory's own keys, for tools and for comparing.
    pub fn to_json(&self) -> String {
        let attributes: Vec<Json> =
            self.attributes.iter().map(|attribute| attribute.to_json().into()).collect();
        json::to_canonical(&json!({ "axes": self.axes, "attributes": attributes }))
    }
}

fn wrong(attribute: &Attribute, problem: impl Into<Box<str>>) -> Error {
    Error::schema(format!("attribute {:?}", attribute.name), problem)
}

fn check_name(what: &str, name: &str) -> Result<()> {
    if (1..=MAX_NAME_BYTES).contains(&name.len()) {
        return Ok(());
    }
    Err(Error::schema(
        format!("{what} {:?}", name.chars().take(40).collect::<String>()),
        format!("a name has 1 to {MAX_NAME_BYTES} bytes, this one has {}", name.len()),
    ))
}

fn check_attribute(
    attribute: &Attribute,
    axes: &HashSet<&str>,
    attributes: &[Attribute],
) -> Result<()> {
    if attribute.shape.len() > MAX_RANK {
        return Err(wrong(attribute, format!("has more than {MAX_RANK} dimensions")));
    }
    for axis in attribute.ragged_dims() {
        if !axes.contains(axis) {
            return Err(wrong(
                attribute,
                format!("its shape names the axis {axis:?}, which does not exist"),
            ));
        }
    }
    let bytes = attribute
        .fixed_elements()
        .and_then(|n| n.checked_mul(attribute.dtype.size() as u64))
        .filter(|&n| n <= i64::MAX as u64);
    if bytes.is_none() {
        return Err(wrong(
            attribute,
            "its fixed dimensions ask for more than 2^63 - 1 bytes a sample",
        ));
    }
    if let Some(dim) = attribute.cat_dim
        && dim >= attribute.shape.len()
    {
        return Err(wrong(
            attribute,
            format!("cat_dim is {dim} but there are {} dimensions", attribute.shape.len()),
        ));
    }
    if attribute.stored != attribute.dtype && !narrow::is_legal(attribute.stored, attribute.dtype) {
        return Err(wrong(
            attribute,
            format!(
                "{} cannot be stored as {}: see the legal pairs in the specification",
                attribute.dtype, attribute.stored
            ),
        ));
    }
    check_increment(attribute, axes, attributes)
}

fn check_increment(
    attribute: &Attribute,
    axes: &HashSet<&str>,
    attributes: &[Attribute],
) -> Result<()> {
    let needs_integer = |found: DType| {
        if found.is_integer() {
            Ok(())
        } else {
            Err(wrong(
                attribute,
                format!("only integers are incremented along an axis, not {found}"),
            ))
        }
    };
    let needs_axis = |axis: &str| {
        if axes.contains(axis) {
            Ok(())
        } else {
            Err(wrong(
                attribute,
                format!("is incremented by the axis {axis:?}, which does not exist"),
            ))
        }
    };
    let rows = match attribute.shape.first() {
        Some(Dim::Fixed(rows)) => Some(*rows),
        _ => None,
    };
    match &attribute.increment {
        Increment::None => Ok(()),
        Increment::Axis(axis) => {
            needs_axis(axis)?;
            needs_integer(attribute.dtype)
        }
        Increment::PerRow(rules) => {
            if rows != Some(rules.len() as u64) {
                return Err(wrong(
                    attribute,
                    format!(
                        "has {} increments, one is needed for each index of a fixed dimension 0",
                        rules.len()
                    ),
                ));
            }
            for axis in rules.iter().flatten() {
                needs_axis(axis)?;
            }
            needs_integer(attribute.dtype)
        }
        Increment::Attribute(name) => {
            let Some(source) = attributes.iter().find(|other| other.name == *name) else {
                return Err(wrong(
                    attribute,
                    format!("is incremented by the attribute {name:?}, which does not exist"),
                ));
            };
            let elements = source.fixed_elements();
            let counted = source.ragged_dims().next().is_none()
                && (elements == Some(1) || (rows.is_some() && elements == rows));
            if source.dtype != attribute.dtype
                || source.dtype.is_string()
                || source.dtype == DType::Bool
                || source.optional
                || !counted
            {
                return Err(wrong(
                    attribute,
                    format!(
                        "{name:?} must be a fixed-size attribute of the same number type with one value, or one for each index of dimension 0"
                    ),
                ));
            }
            Ok(())
        }
    }
}
