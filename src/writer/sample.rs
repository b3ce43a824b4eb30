//! What is pushed: the named values of one sample, borrowed.

#![forbid(unsafe_code)]

use crate::format::{StringsView, TensorView, Value};

/// One sample to be written: named values, and the lengths of axes that no value tells.
///
/// ```
/// use fencepost::{NewSample, TensorView};
/// let x = [0.5f32; 6];
/// let sample = NewSample::new()
///     .tensor("x", TensorView::from_slice(&x, &[3, 2])?)
///     .text("smiles", "CCO");
/// assert_eq!(sample.names().collect::<Vec<_>>(), ["x", "smiles"]);
/// # Ok::<(), fencepost::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct NewSample<'a> {
    values: Vec<(&'a str, Value<'a>)>,
    axes: Vec<(&'a str, u64)>,
}

impl<'a> NewSample<'a> {
    /// A sample without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the value of an attribute.
    #[must_use]
    pub fn value(mut self, name: &'a str, value: impl Into<Value<'a>>) -> Self {
        self.push(name, value);
        self
    }

    /// Adds a tensor.
    #[must_use]
    pub fn tensor(self, name: &'a str, tensor: TensorView<'a>) -> Self {
        self.value(name, tensor)
    }

    /// Adds one `utf8` string.
    #[must_use]
    pub fn text(self, name: &'a str, text: &'a str) -> Self {
        self.value(name, StringsView::scalar(text))
    }

    /// Adds a tensor of strings.
    #[must_use]
    pub fn strings(self, name: &'a str, strings: StringsView<'a>) -> Self {
        self.value(name, strings)
    }

    /// Gives the length along an axis. Needed only for an axis that no value of this sample runs along.
    #[must_use]
    pub fn axis(mut self, name: &'a str, length: u64) -> Self {
        self.push_axis(name, length);
        self
    }

    /// Adds the value of an attribute, in place.
    pub fn push(&mut self, name: &'a str, value: impl Into<Value<'a>>) {
        self.values.push((name, value.into()));
    }

    /// Gives the length along an axis, in place.
    pub fn push_axis(&mut self, name: &'a str, length: u64) {
        self.axes.push((name, length));
    }

    /// The names of the values, in the order they were added.
    pub fn names(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.values.iter().map(|(name, _)| *name)
    }

    /// The value of this name, if there is one.
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.values.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    pub(super) fn values(&self) -> &[(&'a str, Value<'a>)] {
        &self.values
    }

    pub(crate) fn axes(&self) -> &[(&'a str, u64)] {
        &self.axes
    }
}
