//! Further attributes of the samples of a file, in a file of their own.

#![forbid(unsafe_code)]

use std::path::Path;

use crate::error::{Error, Result};
use crate::format::Schema;
use crate::reader::Dataset;
use crate::writer::{NewSample, Summary, Writer, WriterOptions, inferred_schema, refuse};

const IN_ORDER: &str = "push the samples in the file's order, each once";

/// Writes attributes that were computed after the file was: embeddings, new labels, splits.
///
/// The samples come in the file's order, one for each. [`OpenOptions::open_all`](crate::OpenOptions::open_all) serves both
/// files as one dataset; [`rewrite`](crate::rewrite()) makes one file of it. Axes that have the name of one of the file's have its lengths,
/// which are filled in where no value tells them.
///
/// ```
/// use fencepost::{Attribute, DType, Dataset, NewSample, OpenOptions, Overlay, Schema, TensorView, Writer, dims};
/// # let folder = tempfile::tempdir().unwrap();
/// # let (path, more) = (folder.path().join("graphs.fence"), folder.path().join("charges.fence"));
/// # let schema = Schema::builder().attribute(Attribute::new("x", DType::F32, dims!["nodes", 2])).build()?;
/// # let mut writer = Writer::create(&path, schema)?;
/// # writer.push(&NewSample::new().tensor("x", TensorView::from_slice(&[1.0f32, 2.0], &[1, 2])?))?;
/// # writer.finish()?;
/// let base = Dataset::open(&path)?;
/// let schema = Schema::builder().attribute(Attribute::new("charge", DType::F32, dims!["nodes"])).build()?;
/// let mut overlay = Overlay::create(&more, &base, schema, Writer::options())?;
/// for _ in 0..base.len() {
///     overlay.push(&NewSample::new().tensor("charge", TensorView::from_slice(&[0.5f32], &[1])?))?;
/// }
/// overlay.finish()?;
///
/// let both = OpenOptions::new().load_all(&[&path, &more])?;
/// assert_eq!(both.get(0)?.slice::<f32>("charge")?, [0.5]);
/// assert_eq!(both.get(0)?.attr("x")?.shape(), [1, 2]);
/// # Ok::<(), fencepost::Error>(())
/// ```
#[derive(Debug)]
pub struct Overlay {
    base: Dataset,
    writer: Writer,
    /// Axes of the base that the new attributes run along, or that are named beside them. `None` while the schema is yet to be
    /// inferred.
    axes: Option<Vec<String>>,
}

impl Overlay {
    /// Begins a file of attributes of the samples of `base`, which is one file and no view of some of its samples.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if `base` is several files or a view, or has an attribute of a name in `schema`; otherwise as
    /// [`WriterOptions::create`].
    pub fn create(
        path: impl AsRef<Path>,
        base: &Dataset,
        schema: Schema,
        options: WriterOptions,
    ) -> Result<Self> {
        let axes = shared_axes(base, &schema)?;
        let writer = for_base(base, options)?.create(path, schema)?;
        Ok(Overlay { base: base.clone(), writer, axes: Some(axes) })
    }

    /// As [`create`](Self::create); the schema is inferred from the first sample, by PyG's rules of naming. They give each ragged
    /// attribute an axis of its own name, which the file has not, so that its lengths are compared with nothing: declare a schema
    /// to have them compared.
    ///
    /// # Errors
    /// As [`create`](Self::create), the names at the first sample.
    pub fn create_inferred(
        path: impl AsRef<Path>,
        base: &Dataset,
        options: WriterOptions,
    ) -> Result<Self> {
        let writer = for_base(base, options)?.create_inferred(path)?;
        Ok(Overlay { base: base.clone(), writer, axes: None })
    }

    /// As [`create`](Self::create), but a file of this name is an error.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`]; otherwise as [`create`](Self::create).
    pub fn create_new(
        path: impl AsRef<Path>,
        base: &Dataset,
        schema: Schema,
        options: WriterOptions,
    ) -> Result<Self> {
        let axes = shared_axes(base, &schema)?;
        let writer = for_base(base, options)?.create_new(path, schema)?;
        Ok(Overlay { base: base.clone(), writer, axes: Some(axes) })
    }

    /// As [`create_inferred`](Self::create_inferred), but a file of this name is an error.
    ///
    /// # Errors
    /// As [`create_new`](Self::create_new).
    pub fn create_new_inferred(
        path: impl AsRef<Path>,
        base: &Dataset,
        options: WriterOptions,
    ) -> Result<Self> {
        let writer = for_base(base, options)?.create_new_inferred(path)?;
        Ok(Overlay { base: base.clone(), writer, axes: None })
    }

    /// Samples pushed so far.
    pub fn len(&self) -> u64 {
        self.writer.len()
    }

    /// Whether no sample was pushed yet.
    pub fn is_empty(&self) -> bool {
        self.writer.is_empty()
    }

    /// The schema of the new attributes; `None` while it is yet to be inferred.
    pub fn schema(&self) -> Option<&Schema> {
        self.writer.schema()
    }

    /// Appends the new attributes of the next sample. All or nothing, as [`Writer::push`].
    ///
    /// # Errors
    /// [`Error::Sample`] if the file has no such sample, or another length along an axis; otherwise as [`Writer::push`].
    pub fn push(&mut self, sample: &NewSample<'_>) -> Result<()> {
        let index = self.len();
        if index >= self.base.len() {
            let expected = format!("{} samples, as the file has", self.base.len());
            return Err(refuse(index, "*", expected, "one more", IN_ORDER));
        }
        let mut sample = sample.clone();
        let inferred = match &self.axes {
            Some(_) => None,
            None => Some(shared_axes(&self.base, &inferred_schema(&sample)?)?),
        };
        for axis in self.axes.iter().chain(&inferred).flatten() {
            let length = self.base.axis_len(index, axis)?;
            match sample.axes().iter().find(|(name, _)| name == axis) {
                None => sample.push_axis(axis, length),
                Some(&(_, found)) if found != length => {
                    let expected = format!("length {length}, as in the file");
                    return Err(refuse(index, axis, expected, found.to_string(), IN_ORDER));
                }
                Some(_) => {}
            }
        }
        self.writer.push(&sample)?;
        if inferred.is_some() {
            self.axes = inferred;
        }
        Ok(())
    }

    /// Completes the file and gives it its name.
    ///
    /// # Errors
    /// [`Error::Sample`] if samples are missing, after which there is no file; otherwise as [`Writer::finish`].
    pub fn finish(self) -> Result<Summary> {
        let (expected, found) = (self.base.len(), self.len());
        if expected != found {
            let expected = format!("{expected} samples, as the file has");
            let advice = "push the attributes of every sample";
            return Err(refuse(found, "*", expected, found.to_string(), advice));
        }
        self.writer.finish()
    }
}

fn refused(base: &Dataset, problem: String) -> Error {
    Error::Unsupported {
        what: format!("adding attributes to {}", base.path().display()).into(),
        problem: problem.into(),
    }
}

/// Options of a file that adds to this one, if one can.
fn for_base(base: &Dataset, options: WriterOptions) -> Result<WriterOptions> {
    let mut files = base.files();
    let (Some(file), None) = (files.next(), files.next()) else {
        let problem = "it is several files: add to each of its shards, or compact it into one";
        return Err(refused(base, problem.into()));
    };
    if base.file_range() != Some(file.samples) {
        return Err(refused(
            base,
            "the dataset is a view of some samples: take all of them".into(),
        ));
    }
    Ok(options.base(base.fingerprint()))
}

/// The axes of new attributes that the file has as well; their names must be new.
fn shared_axes(base: &Dataset, schema: &Schema) -> Result<Vec<String>> {
    let known = |name: &str| {
        base.schema().attribute(name).is_some()
            || base.refused_attributes().any(|(refused, _)| refused == name)
    };
    if let Some(twice) = schema.attributes().iter().find(|one| known(one.name())) {
        let problem = format!(
            "it has an attribute {:?} already: choose another name, or leave the old one out with `rewrite`",
            twice.name()
        );
        return Err(refused(base, problem));
    }
    let shared = |axis: &&String| base.schema().axes().contains(axis);
    Ok(schema.axes().iter().filter(shared).cloned().collect())
}
