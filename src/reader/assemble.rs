//! Files to parts: which files have the same samples, which come after which, and whether all are there.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::path::Path;

use super::options::Missing;
use super::parts::{OpenFile, Part, Parts};
use super::plan::Plans;
use crate::error::{Error, Result};
use crate::format::directory::{AxisLengths, Directory, Refused};
use crate::format::narrow::holds_all;
use crate::format::{DType, Fingerprint, Schema, Shard};
use crate::storage::Storage;

/// What the files make together.
pub(super) struct Assembly {
    pub parts: Parts,
    /// The logical schema of every part; an attribute's stored type is one that holds those of all.
    pub schema: Schema,
    pub refused: Vec<Refused>,
}

/// Puts files into parts.
///
/// # Errors
/// [`Error::Shards`] naming the file and what does not fit; [`Error::SchemasDiffer`].
pub(super) fn assemble(
    storage: &Storage,
    files: &[OpenFile],
    missing: Missing,
) -> Result<Assembly> {
    let path = |file: usize| storage.file_path(file);
    let mut groups = group(files, &path)?;
    order(files, &mut groups, &path, missing)?;
    let mut schema: Option<(usize, Schema)> = None;
    let mut parts = Vec::with_capacity(groups.len());
    for group in &groups {
        let (mut plans, of_part) = join(files, group, &path)?;
        match &schema {
            None => schema = Some((group[0], of_part)),
            Some((first, schema)) => {
                // Most are equal, which is found sooner than that they do not differ.
                if *schema != of_part
                    && let Some(difference) = schema.difference(&of_part)
                {
                    return Err(Error::SchemasDiffer {
                        path: path(group[0]).into(),
                        other: path(*first).into(),
                        difference: difference.into(),
                    });
                }
            }
        }
        if let Some(Part { plans: known, .. }) = parts.first() {
            plans.share(known);
        }
        let samples = files[group[0]].header.samples;
        parts.push(Part { first: 0, samples, files: group.as_slice().into(), plans });
    }
    // There is a file, and so a group.
    let mut schema = match schema {
        Some((_, schema)) => schema,
        None => Schema::new(Vec::new(), Vec::new())?,
    };
    if parts.len() > 1 {
        for attribute in 0..schema.attributes().len() {
            let stored = parts.iter().map(|part| part.plans.attributes[attribute].stored);
            let stored: Vec<DType> = stored.collect();
            let holding = holds_all(schema.attributes()[attribute].dtype(), &stored);
            schema.set_stored(attribute, holding);
        }
    }
    let refused = groups.first().into_iter().flatten();
    let refused = refused.flat_map(|&file| files[file].directory.refused.iter().cloned()).collect();
    let mut end = 0u64;
    for part in &parts {
        end = end.saturating_add(part.samples);
    }
    if end > i64::MAX as u64 {
        return Err(shards(path(0), "expected fewer than 2^63 samples together, found more"));
    }
    Ok(Assembly { parts: Parts::new(parts), schema, refused })
}

fn shards(path: &Path, problem: impl Into<String>) -> Error {
    Error::Shards { path: path.into(), problem: problem.into().into() }
}

/// Files that have the same samples: one that stands for itself, and those that name it as their base. A file that is alone
/// is read for itself whatever it names.
fn group<'p>(files: &[OpenFile], path: &impl Fn(usize) -> &'p Path) -> Result<Vec<Vec<usize>>> {
    if files.len() == 1 {
        return Ok(vec![vec![0]]);
    }
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut known: HashMap<Fingerprint, usize> = HashMap::new();
    for (file, open) in files.iter().enumerate() {
        if open.directory.base.is_none() {
            known.insert(Fingerprint::of(&open.header), groups.len());
            groups.push(vec![file]);
        }
    }
    for (file, open) in files.iter().enumerate() {
        let Some(base) = open.directory.base else { continue };
        let Some(&group) = known.get(&base) else {
            return Err(shards(
                path(file),
                format!(
                    "its attributes are of the samples of the file with the fingerprint {base}, which is not among the files that \
                     were given: name that file as well; if it was written anew since, write the attributes anew"
                ),
            ));
        };
        groups[group].push(file);
    }
    Ok(groups)
}

/// Puts the groups into the order of their samples, and checks that none is missing.
fn order<'p>(
    files: &[OpenFile],
    groups: &mut [Vec<usize>],
    path: &impl Fn(usize) -> &'p Path,
    missing: Missing,
) -> Result<()> {
    let shard = |group: &[usize]| files[group[0]].directory.shard.as_ref();
    let numbered = groups.iter().filter(|group| shard(group).is_some()).count();
    if numbered == 0 {
        // In the order in which they were given: there is nothing that says more.
        return Ok(());
    }
    if let Some(plain) = groups.iter().find(|group| shard(group).is_none()) {
        return Err(shards(
            path(plain[0]),
            format!(
                "expected the number of a shard, as {numbered} other files have, found none: it belongs to no dataset of several \
                 files; move it elsewhere"
            ),
        ));
    }
    groups.sort_by_key(|group| shard(group).map(|shard| shard.number));
    let mut before: Option<(usize, &Shard)> = None;
    let mut samples = 0u64;
    for group in groups.iter() {
        let (file, Some(shard)) = (group[0], shard(group)) else { continue };
        if let Some((other, first)) = before
            && first.dataset != shard.dataset
        {
            return Err(shards(
                path(file),
                format!(
                    "it is a shard of the dataset {:?}, expected {:?} as {} is: move it elsewhere",
                    shard.dataset,
                    first.dataset,
                    path(other).display()
                ),
            ));
        }
        let expected = before.map_or(0, |(_, before)| before.number.saturating_add(1));
        if let Some((other, before)) = before
            && before.number == shard.number
        {
            return Err(shards(
                path(file),
                format!(
                    "expected each shard once, found number {} here and in {}: remove one",
                    shard.number,
                    path(other).display()
                ),
            ));
        }
        if missing != Missing::Any {
            if shard.number != expected {
                return Err(shards(
                    path(file),
                    format!(
                        "expected shard {expected}, found {}: {} missing; write what is missing, or open the dataset as \
                         partial",
                        shard.number,
                        if shard.number - expected == 1 { "one is" } else { "some are" },
                    ),
                ));
            }
            if let Some(first) = shard.first
                && first != samples
            {
                return Err(shards(
                    path(file),
                    format!(
                        "it starts with sample {first}, expected {samples}, which is how many the shards before it have: they \
                         were not written together; open the dataset as partial, or write it anew"
                    ),
                ));
            }
        }
        samples = samples.saturating_add(files[file].header.samples);
        before = Some((file, shard));
    }
    if let (Some((file, shard)), Missing::None) = (before, missing)
        && !shard.last
    {
        return Err(shards(
            path(file),
            format!(
                "expected a last shard, found none behind number {}: the dataset was not written to its end; go on writing it \
                 (`resume`), or open it as partial",
                shard.number
            ),
        ));
    }
    Ok(())
}

/// The plans and the schema of files that have the same samples.
fn join<'p>(
    files: &[OpenFile],
    group: &[usize],
    path: &impl Fn(usize) -> &'p Path,
) -> Result<(Plans, Schema)> {
    let base = &files[group[0]];
    let mut plans = Plans::new(&base.directory);
    let mut axes = base.directory.schema.axes().to_vec();
    let mut attributes = base.directory.schema.attributes().to_vec();
    // Where each axis has its lengths: a file's directory, and the axis' index in it.
    let mut owners: Vec<(&Directory, usize)> =
        (0..axes.len()).map(|axis| (&base.directory, axis)).collect();
    for &file in &group[1..] {
        let directory = &files[file].directory;
        if let Some(twice) = directory
            .attributes
            .iter()
            .find(|entry| attributes.iter().any(|known| known.name() == entry.attribute.name()))
        {
            return Err(shards(
                path(file),
                format!(
                    "it adds the attribute {:?}, which {} or another file that adds to it has: leave one out",
                    twice.attribute.name(),
                    path(group[0]).display()
                ),
            ));
        }
        let mut places = Vec::with_capacity(directory.axes.len());
        for axis in 0..directory.axes.len() {
            let name = &directory.axes[axis].name;
            let known = axes.iter().position(|known| known == name);
            if let Some(at) = known
                && !same_lengths(owners[at], (directory, axis))
            {
                return Err(shards(
                    path(file),
                    format!(
                        "its samples have other lengths along the axis {name:?} than those of {}, or of another file that adds to \
                         it: write the attributes anew",
                        path(group[0]).display()
                    ),
                ));
            }
            places.push(known.unwrap_or_else(|| {
                axes.push(name.clone());
                owners.push((directory, axis));
                axes.len() - 1
            }));
        }
        attributes.extend(directory.schema.attributes().iter().cloned());
        plans.add(Plans::new(directory), &places);
    }
    if group.len() == 1 {
        return Ok((plans, base.directory.schema.clone()));
    }
    Ok((plans, Schema::new(axes, attributes)?))
}

/// Whether all samples have the same lengths along two axes, by the checksums of their tables.
fn same_lengths(one: (&Directory, usize), other: (&Directory, usize)) -> bool {
    let lengths = |(directory, axis): (&Directory, usize)| directory.axes[axis].lengths;
    match (lengths(one), lengths(other)) {
        (AxisLengths::Constant(one), AxisLengths::Constant(other)) => one == other,
        (AxisLengths::Table(here), AxisLengths::Table(there)) => {
            let (a, b) = (one.0.sections[here.section], other.0.sections[there.section]);
            here.width == there.width && a.length == b.length && a.crc == b.crc
        }
        _ => false,
    }
}
