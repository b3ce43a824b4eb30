//! No heap allocation per `get`, and none per `read` once the buffer has grown.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use fencepost::{
    Attribute, DType, Dataset, NewSample, SampleBuf, Schema, StringsView, TensorView, Writer, dims,
};

struct Counting;

thread_local! {
    // Of this thread alone: the test harness allocates on its own threads.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is handed to the system's allocator as it came; the counter allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, and `alloc` took the memory from the same allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(run: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.with(Cell::get);
    run();
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn get_and_warm_read_allocate_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.fence");
    let schema = Schema::builder()
        .attribute(Attribute::new("x", DType::F32, dims!["n", 11]))
        .attribute(Attribute::new("edges", DType::I64, dims![2, "e"]).stored(DType::U8))
        .attribute(Attribute::new("y", DType::F64, dims![1, 19]).optional())
        .attribute(Attribute::new("name", DType::Utf8, dims![]))
        .attribute(Attribute::new("atoms", DType::Utf8, dims!["n"]))
        .attribute(Attribute::new("d", DType::Bool, dims!["n", "n"]))
        .build()
        .unwrap();
    let mut writer = Writer::create(&path, schema).unwrap();
    for index in 0..200usize {
        let n = index % 23;
        let (x, edges, y) = (vec![1.0f32; 11 * n], vec![0i64; 2 * n], [0.0f64; 19]);
        let (atoms, d) = (vec!["C"; n], vec![true; n * n]);
        let mut sample = NewSample::new()
            .tensor("x", TensorView::from_slice(&x, &[n, 11]).unwrap())
            .tensor("edges", TensorView::from_slice(&edges, &[2, n]).unwrap())
            .text("name", "ethanol")
            .strings("atoms", StringsView::list(&atoms, &[n]).unwrap())
            .tensor("d", TensorView::from_bools(&d, &[n, n]).unwrap());
        if index % 2 == 0 {
            sample.push("y", TensorView::from_slice(&y, &[1, 19]).unwrap());
        }
        writer.push(&sample).unwrap();
    }
    writer.finish().unwrap();

    // SAFETY: nobody truncates the file or writes into it.
    let mapped = unsafe { Dataset::map(&path).unwrap() };
    for dataset in [&Dataset::load(&path).unwrap(), &mapped] {
        let made = allocations(|| {
            for index in 0..dataset.len() {
                let sample = dataset.get(index).unwrap();
                for name in ["x", "y", "name", "atoms", "d"] {
                    std::hint::black_box(sample.find(name).unwrap());
                }
            }
        });
        assert_eq!(made, 0, "{}", dataset.backing());
    }
    for dataset in [&Dataset::load(&path).unwrap(), &mapped, &Dataset::open(&path).unwrap()] {
        let mut buffer = SampleBuf::new();
        let mut pass = || {
            for index in 0..dataset.len() {
                let sample = dataset.read(index, &mut buffer).unwrap();
                for (_, value) in sample.iter() {
                    std::hint::black_box(value.unwrap());
                }
            }
        };
        assert!(allocations(&mut pass) > 0, "the counter counts");
        assert_eq!(allocations(&mut pass), 0, "{}", dataset.backing());
    }
}
