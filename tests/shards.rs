//! Folders of files that are one dataset: what is read is what one file would give, and folders that are not whole are
//! refused by name.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use fencepost::{
    Attribute, BadBlock, Collator, DType, Dataset, Error, Loader, NewSample, OpenOptions, Schema,
    Shard, ShardOptions, TensorView, Writer, dims, rewrite,
};
use proptest::prelude::*;
use support::{datasets, folder_backings, read_all, write, write_shards};

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn several_files_give_what_one_gives((schema, samples) in datasets(), cut in 0.0..1.0f64) {
        let home = tempfile::tempdir().unwrap();
        let (path, folder) = (home.path().join("one.fence"), home.path().join("many"));
        write(&path, &schema, &samples);
        let cut = (cut * samples.len() as f64) as usize;
        write_shards(&folder, &schema, &samples, &[cut / 2, cut, cut]);
        let one = Dataset::load(&path).unwrap();
        for many in folder_backings(&folder) {
            prop_assert_eq!(many.len(), one.len());
            prop_assert_eq!(many.schema().difference(one.schema()), None);
            let rewritten = home.path().join("rewritten.fence");
            rewrite(std::slice::from_ref(&many), &rewritten, Writer::options()).unwrap();
            prop_assert_eq!(read_all(&Dataset::open(&rewritten).unwrap()), samples.clone());
            prop_assert_eq!(read_all(&many), samples.clone());
            prop_assert!(many.verify().unwrap().ok());
            let lazy = many.clone().lazily_verified().unwrap();
            prop_assert_eq!(read_all(&lazy), samples.clone());
            // Views, lengths and whole tensors know nothing of files.
            let back: Vec<u64> = (0..many.len()).rev().collect();
            let (here, there) = (many.select(&back).unwrap(), one.select(&back).unwrap());
            prop_assert_eq!(read_all(&here), read_all(&there));
            let middle = many.len() / 4..many.len() - many.len() / 4;
            let (part, one_part) =
                (many.range(middle.clone()).unwrap(), one.range(middle).unwrap());
            for axis in schema.axes() {
                prop_assert_eq!(many.axis_lengths(axis).unwrap(), one.axis_lengths(axis).unwrap());
                prop_assert_eq!(here.axis_lengths(axis).unwrap(), there.axis_lengths(axis).unwrap());
                prop_assert_eq!(part.axis_lengths(axis).unwrap(), one_part.axis_lengths(axis).unwrap());
                prop_assert_eq!(many.axis_total(axis).unwrap().0, one.axis_total(axis).unwrap().0);
            }
            for attribute in schema.attributes() {
                let name = attribute.name();
                for (here, there) in [(&many, &one), (&part, &one_part)] {
                    match (here.materialize(name), there.materialize(name)) {
                        (Ok(here), Ok(there)) => {
                            let (here, there) = (here.view(), there.view());
                            prop_assert_eq!(here.shape(), there.shape());
                            prop_assert_eq!(here.bytes(), there.bytes());
                        }
                        (Err(_), Err(_)) => {}
                        (here, there) => prop_assert!(false, "{name}: {here:?}, {there:?}"),
                    }
                }
            }
        }
    }
}

fn schema() -> Schema {
    Schema::builder()
        .attribute(Attribute::new("id", DType::U64, dims![]))
        .attribute(Attribute::new("x", DType::F32, dims!["nodes", 2]))
        .build()
        .unwrap()
}

fn x(id: u64) -> Vec<f32> {
    (0..id % 5 * 2).map(|at| (id * 10 + at) as f32).collect()
}

fn push<R>(id: u64, push: impl FnOnce(&NewSample<'_>) -> R) -> R {
    let (ids, x) = ([id], x(id));
    let sample = NewSample::new()
        .tensor("id", TensorView::from_slice(&ids, &[]).unwrap())
        .tensor("x", TensorView::from_slice(&x, &[x.len() / 2, 2]).unwrap());
    push(&sample)
}

fn options() -> ShardOptions {
    ShardOptions::new().samples_per_shard(10)
}

/// A folder of the samples 0..count, ten a shard.
fn folder_of(home: &Path, count: u64) -> PathBuf {
    let folder = home.join("set");
    let mut writer = options().create(&folder, schema()).unwrap();
    (0..count).for_each(|id| push(id, |sample| writer.push(sample)).unwrap());
    writer.finish().unwrap();
    folder
}

fn ids(dataset: &Dataset) -> Vec<u64> {
    let mut buffer = fencepost::SampleBuf::new();
    (0..dataset.len())
        .map(|index| {
            let sample = dataset.read(index, &mut buffer).unwrap();
            let id = sample.slice::<u64>("id").unwrap()[0];
            assert_eq!(sample.slice::<f32>("x").unwrap(), x(id));
            assert_eq!(sample.file_index(), index);
            id
        })
        .collect()
}

fn shard(folder: &Path, number: u64) -> PathBuf {
    folder.join(Shard::file_name(number))
}

fn refused(folder: &Path) -> String {
    match Dataset::open(folder) {
        Err(error @ (Error::Shards { .. } | Error::SchemasDiffer { .. })) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

fn partial(folder: &Path) -> Vec<u64> {
    ids(&OpenOptions::new().partial(true).open(folder).unwrap())
}

#[test]
fn a_folder_is_served_as_one_dataset_and_tells_its_files() {
    let home = tempfile::tempdir().unwrap();
    let folder = folder_of(home.path(), 35);
    for dataset in folder_backings(&folder) {
        assert_eq!(ids(&dataset), (0..35).collect::<Vec<_>>());
        assert_eq!(dataset.path(), folder);
        let files: Vec<_> = dataset.files().collect();
        assert_eq!(files.len(), 4);
        assert_eq!(files[3].samples, 30..35);
        assert_eq!(files[3].path, shard(&folder, 3));
        let told = files[3].shard.unwrap();
        assert_eq!((told.dataset.as_str(), told.number, told.first), ("set", 3, Some(30)));
        assert!(told.last && !files[2].shard.unwrap().last);
        let bytes: u64 = files.iter().map(|file| fs::metadata(file.path).unwrap().len()).sum();
        assert_eq!(dataset.file_bytes(), bytes);
        assert_eq!(dataset.memory().file_bytes, bytes);
        let statistics = dataset.statistics().unwrap().unwrap();
        let fencepost::AttributeStatistics::Values(of_id) = &statistics.attributes["id"] else {
            panic!()
        };
        assert_eq!((of_id.count.as_str(), of_id.max.as_deref()), ("35", Some("34")));
        assert_eq!(of_id.mean.as_deref().unwrap().parse::<f64>().unwrap(), 17.0);
        assert!(matches!(dataset.arena("id"), Err(Error::NotContiguous { .. })));
        assert!(matches!(dataset.offsets("nodes"), Err(Error::NotContiguous { .. })));
        let place = dataset.place(12, "id").unwrap().unwrap();
        let path = dataset.paths().nth(place.file).unwrap();
        let bytes = &fs::read(path).unwrap()[place.bytes.start as usize..place.bytes.end as usize];
        assert_eq!(bytes, 12u64.to_le_bytes());
    }
    // One shard by its own name is a file like any other.
    let one = Dataset::open(shard(&folder, 2)).unwrap();
    assert_eq!(one.len(), 10);
    assert_ne!(one.fingerprint(), Dataset::open(&folder).unwrap().fingerprint());
}

#[test]
fn batches_and_loaders_cross_files() {
    let home = tempfile::tempdir().unwrap();
    let folder = folder_of(home.path(), 95);
    for dataset in folder_backings(&folder) {
        let collator = Collator::builder(&dataset).build().unwrap();
        let batch = collator.collate(&dataset, &[94, 3, 50, 3]).unwrap();
        assert_eq!(batch.slice::<u64>("id").unwrap(), [94, 3, 50, 3]);
        assert_eq!(batch.slice::<f32>("x").unwrap(), [x(94), x(3), x(50), x(3)].concat());
        let loader = Loader::builder(dataset.clone())
            .batch_size(7)
            .shuffle(3)
            .num_workers(2)
            .build()
            .unwrap();
        let mut seen = Vec::new();
        for batch in &loader {
            seen.extend_from_slice(batch.unwrap().slice::<u64>("id").unwrap());
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..95).collect::<Vec<_>>());
    }
}

#[test]
fn folders_that_are_not_whole_are_refused_by_name() {
    let home = tempfile::tempdir().unwrap();
    let folder = folder_of(home.path(), 50);
    let away = home.path().join("away");
    let expect = |words: &[&str]| {
        let message = refused(&folder);
        for word in words {
            assert!(message.contains(word), "{word:?} is not in {message:?}");
        }
    };
    // A gap, at the beginning and in the middle.
    fs::rename(shard(&folder, 0), &away).unwrap();
    expect(&["shard-00000001.fence", "expected shard 0, found 1"]);
    let there = OpenOptions::new().partial(true).open(&folder).unwrap();
    assert_eq!(there.len(), 40);
    fs::rename(&away, shard(&folder, 0)).unwrap();
    fs::rename(shard(&folder, 2), &away).unwrap();
    expect(&["shard-00000003.fence", "expected shard 2, found 3", "partial"]);
    fs::rename(&away, shard(&folder, 2)).unwrap();
    // The last one, of which others cannot know.
    fs::rename(shard(&folder, 4), &away).unwrap();
    expect(&["shard-00000003.fence", "expected a last shard", "resume"]);
    assert_eq!(partial(&folder), (0..40).collect::<Vec<u64>>());
    fs::rename(&away, shard(&folder, 4)).unwrap();
    // One that is there twice, under another name.
    fs::copy(shard(&folder, 1), folder.join("copy.fence")).unwrap();
    expect(&["number 1 here and in"]);
    fs::remove_file(folder.join("copy.fence")).unwrap();
    // One of another dataset, in the place of one.
    let other = home.path().join("other");
    let mut writer = options().dataset("another").create(&other, schema()).unwrap();
    (0..30).for_each(|id| push(id, |sample| writer.push(sample)).unwrap());
    writer.finish().unwrap();
    fs::rename(shard(&folder, 2), &away).unwrap();
    fs::copy(shard(&other, 2), shard(&folder, 2)).unwrap();
    expect(&["shard-00000002.fence", "\"another\"", "\"set\""]);
    // One that was written with other shards before it.
    let shifted = home.path().join("shifted");
    let mut writer =
        ShardOptions::new().samples_per_shard(9).dataset("set").create(&shifted, schema()).unwrap();
    (0..30).for_each(|id| push(id, |sample| writer.push(sample)).unwrap());
    writer.finish().unwrap();
    fs::copy(shard(&shifted, 2), shard(&folder, 2)).unwrap();
    expect(&["shard-00000002.fence", "starts with sample 18, expected 20"]);
    // A file without number among those that have one.
    fs::rename(&away, shard(&folder, 2)).unwrap();
    let mut writer = Writer::create(folder.join("plain.fence"), schema()).unwrap();
    push(0, |sample| writer.push(sample)).unwrap();
    writer.finish().unwrap();
    expect(&["plain.fence", "found none"]);
    fs::remove_file(folder.join("plain.fence")).unwrap();
    assert_eq!(ids(&Dataset::open(&folder).unwrap()), (0..50).collect::<Vec<u64>>());
}

#[test]
fn files_without_numbers_come_in_natural_order_and_have_one_schema() {
    let home = tempfile::tempdir().unwrap();
    let write = |name: &str, id: u64, schema: &Schema| {
        let mut writer = Writer::create(home.path().join(name), schema.clone()).unwrap();
        push(id, |sample| writer.push(sample)).unwrap();
        writer.finish().unwrap();
    };
    write("part-10.fence", 2, &schema());
    write("part-9.fence", 1, &schema());
    write("part-1.fence", 0, &schema());
    let dataset = Dataset::open(home.path()).unwrap();
    assert_eq!(ids(&dataset), [0, 1, 2]);
    assert!(dataset.files().all(|file| file.shard.is_none()));
    // In the order in which they are given.
    let paths = ["part-10.fence", "part-1.fence"].map(|name| home.path().join(name));
    assert_eq!(ids(&OpenOptions::new().open_all(&paths).unwrap()), [2, 0]);
    let other = Schema::builder()
        .attribute(Attribute::new("id", DType::U64, dims![]))
        .attribute(Attribute::new("x", DType::F32, dims!["nodes", 2]).optional())
        .build()
        .unwrap();
    write("part-11.fence", 3, &other);
    let message = refused(home.path());
    assert!(message.contains("part-11.fence") && message.contains("\"x\""), "{message}");
    // A file that is no file of ours is named.
    fs::write(home.path().join("part-11.fence"), "text").unwrap();
    let error = Dataset::open(home.path()).unwrap_err();
    assert!(error.format_fault().is_some() && error.to_string().contains("part-11.fence"));
}

#[test]
fn damage_is_told_by_file_and_by_sample_of_the_dataset() {
    let home = tempfile::tempdir().unwrap();
    let folder = folder_of(home.path(), 50);
    let dataset = Dataset::open(&folder).unwrap();
    let place = dataset.place(33, "id").unwrap().unwrap();
    drop(dataset);
    let path = shard(&folder, 3);
    let mut bytes = fs::read(&path).unwrap();
    bytes[place.bytes.start as usize] ^= 1;
    let copy_at = bytes.len() - 4096;
    bytes[copy_at + 200] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let dataset = Dataset::load(&folder).unwrap();
    let report = dataset.verify().unwrap();
    let [BadBlock { path: found, bytes: range, attributes, samples, .. }] = &report.bad_blocks[..]
    else {
        panic!("{report:?}")
    };
    assert_eq!(*found, path);
    assert!(range.contains(&place.bytes.start));
    assert_eq!(attributes, &["id"]);
    assert!(samples.iter().any(|range| range.contains(&33)) && samples[0].start >= 30);
    let problems: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
    assert!(problems.iter().all(|problem| problem.contains("shard-00000003")), "{problems:?}");
    assert_eq!(report.problems[0].code(), "copy");
    // Lazily: the shard's samples and no others.
    let lazy = dataset.lazily_verified().unwrap();
    assert!(lazy.get(29).is_ok() && lazy.get(40).is_ok());
    let error = lazy.get(33).unwrap_err().to_string();
    assert!(error.contains("shard-00000003.fence"), "{error}");
}

#[test]
fn a_shard_that_is_cut_off_is_an_error_of_its_samples() {
    let home = tempfile::tempdir().unwrap();
    let folder = folder_of(home.path(), 30);
    for dataset in folder_backings(&folder) {
        if dataset.backing() == fencepost::Backing::Resident {
            continue;
        }
        let path = shard(&folder, 1);
        let bytes = fs::read(&path).unwrap();
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(5000).unwrap();
        assert!(dataset.check_length().unwrap_err().to_string().contains("shard-00000001"));
        assert!(dataset.check_length_of(&[0, 9, 20, 29]).is_ok());
        assert!(dataset.check_length_of(&[0, 15]).is_err());
        drop(dataset);
        fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn writing_goes_on_behind_what_is_whole() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("set");
    // Dropped in the middle of the third shard, as by a crash.
    let mut writer = options().create(&folder, schema()).unwrap();
    for id in 0..25 {
        push(id, |sample| writer.push(sample)).unwrap();
        writer.set_source(format!("line {id}"));
    }
    drop(writer);
    assert!(refused(&folder).contains("expected a last shard"));
    let mut writer = options().resume(&folder, schema()).unwrap();
    assert_eq!((writer.len(), writer.source()), (20, Some("line 19")));
    for id in 20..25 {
        push(id, |sample| writer.push(sample)).unwrap();
        writer.set_source(format!("line {id}"));
    }
    let summary = writer.finish().unwrap();
    assert_eq!((summary.samples, summary.shards, summary.written.len()), (25, 3, 1));
    // Written in one go, every file has the same bytes.
    let again = home.path().join("again");
    let mut writer = options().dataset("set").create(&again, schema()).unwrap();
    for id in 0..25 {
        push(id, |sample| writer.push(sample)).unwrap();
        writer.set_source(format!("line {id}"));
    }
    writer.finish().unwrap();
    for number in 0..3 {
        assert_eq!(
            fs::read(shard(&folder, number)).unwrap(),
            fs::read(shard(&again, number)).unwrap()
        );
    }
    // Appending, twice; the second time nothing.
    let mut writer = options().resume(&folder, schema()).unwrap();
    assert_eq!(writer.len(), 25);
    (25..31).for_each(|id| push(id, |sample| writer.push(sample)).unwrap());
    writer.finish().unwrap();
    assert_eq!(ids(&Dataset::open(&folder).unwrap()), (0..31).collect::<Vec<u64>>());
    let summary = options().resume(&folder, schema()).unwrap().finish().unwrap();
    assert_eq!((summary.samples, summary.shards, summary.written.len()), (31, 4, 0));
    // Beginning is not going on, nor is going on with other samples.
    assert!(matches!(options().create(&folder, schema()), Err(Error::AlreadyExists { .. })));
    let other =
        Schema::builder().attribute(Attribute::new("id", DType::U32, dims![])).build().unwrap();
    assert!(matches!(options().resume(&folder, other), Err(Error::SchemasDiffer { .. })));
    assert!(matches!(options().dataset("x").resume(&folder, schema()), Err(Error::Shards { .. })));
    fs::remove_file(shard(&folder, 1)).unwrap();
    assert!(matches!(options().resume(&folder, schema()), Err(Error::Shards { .. })));
}

#[test]
fn a_dataset_that_was_full_when_it_ended_says_so_all_the_same() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("set");
    let mut writer = options().create(&folder, schema()).unwrap();
    (0..20).for_each(|id| push(id, |sample| writer.push(sample)).unwrap());
    // Full, but not yet known not to be the last.
    assert_eq!(writer.finish().unwrap().shards, 2);
    assert_eq!(Dataset::open(&folder).unwrap().len(), 20);
    // One that crashed between two shards, and had nothing more to come.
    let folder = home.path().join("crashed");
    let mut writer = options().create(&folder, schema()).unwrap();
    (0..11).for_each(|id| push(id, |sample| writer.push(sample)).unwrap());
    drop(writer);
    let summary = options().resume(&folder, schema()).unwrap().finish().unwrap();
    assert_eq!((summary.samples, summary.shards), (10, 2));
    assert_eq!(Dataset::open(&folder).unwrap().len(), 10);
    // And one of nothing.
    let folder = home.path().join("nothing");
    assert_eq!(options().create(&folder, schema()).unwrap().finish().unwrap().shards, 1);
    for dataset in folder_backings(&folder) {
        assert_eq!((dataset.len(), dataset.axis_lengths("nodes").unwrap().len()), (0, 0));
    }
}

#[test]
fn a_sample_that_is_refused_leaves_the_writer_usable() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("set");
    let mut writer = ShardOptions::new().samples_per_shard(2).create_inferred(&folder).unwrap();
    for id in 0..5 {
        push(id, |sample| writer.push(sample)).unwrap();
        let wrong = [0u8];
        let wrong = NewSample::new().tensor("id", TensorView::from_slice(&wrong, &[]).unwrap());
        assert!(matches!(writer.push(&wrong), Err(Error::Sample(_))));
    }
    writer.finish().unwrap();
    assert_eq!(ids(&Dataset::open(&folder).unwrap()), [0, 1, 2, 3, 4]);
    // What is inferred when going on has to be what was.
    let mut writer = ShardOptions::new().resume_inferred(&folder).unwrap();
    let other = [0u8];
    let other = NewSample::new().tensor("id", TensorView::from_slice(&other, &[]).unwrap());
    assert!(matches!(writer.push(&other), Err(Error::SchemasDiffer { .. })));
    push(5, |sample| writer.push(sample)).unwrap();
    writer.finish().unwrap();
    assert_eq!(ids(&Dataset::open(&folder).unwrap()), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn shards_become_one_file() {
    let home = tempfile::tempdir().unwrap();
    let folder = folder_of(home.path(), 50);
    let path = home.path().join("one.fence");
    rewrite(&[Dataset::open(&folder).unwrap()], &path, Writer::options()).unwrap();
    let one = Dataset::open(&path).unwrap();
    assert_eq!(ids(&one), (0..50).collect::<Vec<u64>>());
    assert!(one.files().next().unwrap().shard.is_none());
}

/// More files than one thread opens.
#[test]
fn many_files_are_opened_in_their_order_and_a_bad_one_is_named() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("set");
    let mut writer = ShardOptions::new().samples_per_shard(1).create(&folder, schema()).unwrap();
    (0..300).for_each(|id| push(id, |sample| writer.push(sample)).unwrap());
    writer.finish().unwrap();
    for dataset in folder_backings(&folder) {
        assert_eq!(ids(&dataset), (0..300).collect::<Vec<u64>>());
    }
    for number in [299, 170, 3] {
        let path = shard(&folder, number);
        let mut bytes = fs::read(&path).unwrap();
        bytes[100] ^= 1;
        fs::write(&path, bytes).unwrap();
        let error = Dataset::open(&folder).unwrap_err();
        // The first of those that are bad.
        assert!(error.to_string().contains(&Shard::file_name(number)), "{error}");
    }
}
