//! The edge where memory changes hands: arrays of numpy over a dataset's bytes, arrays and tensors over memory of ours, and
//! the bytes of arrays that are written. The only module with unsafe code. Knows nothing of samples and batches.
//!
//! What is handed out keeps its memory alive: an array by its base object, a tensor by the context of its DLPack capsule.

use std::ffi::{CStr, c_int, c_void};
use std::marker::PhantomData;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::Arc;

use fencepost::{AlignedBytes, Buffer, DType, Dataset, OpenOptions, Result};
use numpy::npyffi::{NPY_ARRAY_CARRAY, NPY_ARRAY_CARRAY_RO, NpyTypes, PY_ARRAY_API};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::{PyClass, ffi};

use crate::errors::raise;

/// Dimensions of a field of a batch at most: one more than an attribute has.
const MAX_DIMS: usize = 16;

/// The mapped open of Python.
pub(crate) fn map(options: &OpenOptions, paths: &[PathBuf]) -> Result<Dataset> {
    // SAFETY: the promise that nobody truncates or rewrites the file is passed on to the user, by the documentation of
    // `fencepost.open`; the length is compared with the system's at every call, which finds the files of users who could
    // not keep it before their bytes are touched, if not always in time.
    unsafe { options.map_all(paths) }
}

/// Hands out arrays over bytes that are borrowed from a Python object. Its lifetime is that of one call of [`borrowing`],
/// and stands for nothing else, so that the bytes can only be the owner's (or of a constant).
pub(crate) struct Edge<'a, 'o, 'py> {
    owner: &'o Bound<'py, PyAny>,
    /// Invariant in `'a`.
    brand: PhantomData<fn(&'a ()) -> &'a ()>,
}

/// Calls `work` with what the owner holds, and with what makes arrays of it. The class is frozen: what it holds stays as it is
/// and where it is until the object is gone, which the arrays prevent.
pub(crate) fn borrowing<'py, T, R>(
    owner: &Bound<'py, T>,
    work: impl for<'a> FnOnce(&'a T, &Edge<'a, '_, 'py>) -> R,
) -> R
where
    T: PyClass<Frozen = True> + Sync,
{
    work(owner.get(), &Edge { owner: owner.as_any(), brand: PhantomData })
}

impl<'a, 'py> Edge<'a, '_, 'py> {
    /// A read-only array over bytes of the owner.
    pub(crate) fn array(
        &self,
        descr: &Bound<'py, PyArrayDescr>,
        shape: &[usize],
        bytes: &'a [u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        check_size(descr.itemsize(), shape, bytes.len())?;
        let data = bytes.as_ptr().cast_mut().cast();
        array_over(descr, shape, data, NPY_ARRAY_CARRAY_RO, self.owner)
    }
}

fn check_size(item: usize, shape: &[usize], bytes: usize) -> PyResult<()> {
    let empty = shape.contains(&0);
    let others = shape
        .iter()
        .filter(|&&extent| extent > 0)
        .try_fold(item, |product, &extent| product.checked_mul(extent));
    let needed = if empty { Some(0) } else { others };
    if needed != Some(bytes) || shape.len() > MAX_DIMS {
        return Err(PyValueError::new_err(format!(
            "internal: an array of shape {shape:?} with elements of {item} bytes over {bytes} bytes; please report it"
        )));
    }
    // Legal in a file, where a product with a 0 is 0 whatever the others are; numpy and torch multiply the others all the same.
    if empty && others.is_none_or(|others| isize::try_from(others).is_err()) {
        return Err(Python::attach(|py| {
            let message = format!(
                "a value of shape {shape:?} has no elements, but its other extents are beyond what numpy and torch can count: read its shape with `locate`"
            );
            raise(py, "UnsupportedError", &message)
        }));
    }
    Ok(())
}

/// A new array in C order over this memory, or over memory of its own if that is null.
///
/// The caller has seen to it that the memory, if there is any, is as large as shape and dtype ask for, that it stays until the
/// array is gone, that it may be written to if the flags say so, and that there are no more than MAX_DIMS extents.
fn new_array<'py>(
    descr: &Bound<'py, PyArrayDescr>,
    shape: &[usize],
    data: *mut c_void,
    flags: c_int,
) -> PyResult<Bound<'py, PyAny>> {
    let py = descr.py();
    let mut dims = [0isize; MAX_DIMS];
    for (dim, &extent) in dims.iter_mut().zip(shape) {
        *dim = isize::try_from(extent)?;
    }
    // SAFETY: numpy's own type object, which lives as long as the interpreter.
    let class = unsafe { numpy::npyffi::get_type_object(py, NpyTypes::PyArray_Type) };
    let descr = descr.clone().into_ptr().cast();
    // SAFETY: `PyArray_NewFromDescr` takes the reference to the dtype that was made a line above; `dims` has `shape.len()`
    // entries, which the callers bound by MAX_DIMS; without strides it takes the memory for contiguous, and allocates C order
    // where there is none. The callers checked the memory's size, and it is aligned (sections and buffers are, to 64 bytes).
    let array = unsafe {
        PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            class,
            descr,
            shape.len() as c_int,
            dims.as_mut_ptr(),
            std::ptr::null_mut(),
            data,
            flags,
            std::ptr::null_mut(),
        )
    };
    // SAFETY: it is a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, array) }
}

/// An array over memory that `owner` keeps alive; the rest of [`new_array`]'s conditions is the caller's.
fn array_over<'py>(
    descr: &Bound<'py, PyArrayDescr>,
    shape: &[usize],
    data: *mut c_void,
    flags: c_int,
    owner: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = descr.py();
    let array = new_array(descr, shape, data, flags)?;
    let base = owner.clone().into_ptr();
    // SAFETY: the array is new and has no base yet; the reference to the owner is given away, also if this fails.
    let failed = unsafe { PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), base) };
    if failed == 0 { Ok(array) } else { Err(PyErr::fetch(py)) }
}

/// A new array that owns a copy of these bytes.
pub(crate) fn array_of_copy<'py>(
    descr: &Bound<'py, PyArrayDescr>,
    shape: &[usize],
    bytes: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    check_size(descr.itemsize(), shape, bytes.len())?;
    let array = new_array(descr, shape, std::ptr::null_mut(), 0)?;
    let object: *mut numpy::npyffi::PyArrayObject = array.as_ptr().cast();
    // SAFETY: it is an array of numpy.
    let data = unsafe { (*object).fields.data };
    // SAFETY: numpy allocated what shape and dtype ask for, which was found above to be as much as there are bytes; the
    // array is new, so nobody else looks at it.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), data.cast(), bytes.len()) };
    Ok(array)
}

/// The bytes of an array in C order, or `None` if they do not lie so.
///
/// Whoever holds them must not run Python code that could write to the array. Other threads can, as with every consumer of
/// Python's buffers; what is read then is torn values, which the writer stores as it finds them.
pub(crate) fn bytes_of<'a>(array: &'a Bound<'_, PyUntypedArray>) -> Option<&'a [u8]> {
    if !array.is_c_contiguous() {
        return None;
    }
    let length = array.len().checked_mul(array.dtype().itemsize())?;
    if length == 0 {
        return Some(&[]);
    }
    // SAFETY: it is an array of numpy, alive as long as it is borrowed.
    let data = unsafe { (*array.as_array_ptr()).fields.data };
    let data = NonNull::new(data)?;
    // SAFETY: a contiguous array has so many bytes from its first element on, and they stay while it is borrowed. That nobody
    // writes to them meanwhile is what the documentation asks of callers and of users.
    Some(unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), length) })
}

/// What keeps memory alive.
enum Keeper {
    Field(
        #[expect(dead_code, reason = "held for its drop, which gives the memory back to the pool")]
        Buffer,
    ),
    Owned(#[expect(dead_code, reason = "held for its drop")] AlignedBytes),
}

/// Memory that arrays and tensors share, to be written to by whoever has one. Goes, or back to its pool, with the last.
#[pyclass(frozen, module = "fencepost._fencepost")]
struct Memory {
    _shared: Arc<Shared>,
}

/// The memory behind [`Memory`]. Nothing here looks at the bytes but through the pointer, which was made when there was no
/// other way to them.
pub(crate) struct Shared {
    start: NonNull<u8>,
    length: usize,
    _keeper: Keeper,
}

// SAFETY: the bytes are the keeper's, which can be dropped by any thread; the pointer moves with it.
unsafe impl Send for Shared {}
// SAFETY: a shared reference gives out the pointer and the length, and reads the bytes in `copy_of` alone.
unsafe impl Sync for Shared {}

impl Shared {
    pub(crate) fn of_buffer(mut buffer: Buffer) -> Arc<Self> {
        let bytes = buffer.as_mut_slice();
        let (start, length) = (NonNull::from(&mut *bytes).cast(), bytes.len());
        Arc::new(Shared { start, length, _keeper: Keeper::Field(buffer) })
    }

    pub(crate) fn of_bytes(mut owned: AlignedBytes) -> Arc<Self> {
        let bytes = owned.as_mut_slice();
        let (start, length) = (NonNull::from(&mut *bytes).cast(), bytes.len());
        Arc::new(Shared { start, length, _keeper: Keeper::Owned(owned) })
    }

    /// The bytes at this moment.
    pub(crate) fn copy_of(&self) -> Vec<u8> {
        // SAFETY: the memory is as long as it was when the pointer was made. A thread that writes to it meanwhile, by an
        // array or a tensor, is the user's race.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }.to_vec()
    }

    /// A writable array over the memory.
    pub(crate) fn array<'py>(
        self: &Arc<Self>,
        descr: &Bound<'py, PyArrayDescr>,
        shape: &[usize],
    ) -> PyResult<Bound<'py, PyAny>> {
        check_size(descr.itemsize(), shape, self.length)?;
        let owner = Bound::new(descr.py(), Memory { _shared: self.clone() })?.into_any();
        array_over(descr, shape, self.start.as_ptr().cast(), NPY_ARRAY_CARRAY, &owner)
    }

    /// A DLPack capsule over the memory, to be turned into a tensor at once.
    pub(crate) fn capsule<'py>(
        self: &Arc<Self>,
        py: Python<'py>,
        dtype: DType,
        shape: &[usize],
    ) -> PyResult<Bound<'py, PyAny>> {
        check_size(dtype.size(), shape, self.length)?;
        let mut held = Box::new(Held {
            managed: ManagedTensor {
                tensor: Tensor {
                    data: self.start.as_ptr().cast(),
                    device: Device { kind: CPU, id: 0 },
                    dims: shape.len() as i32,
                    dtype: element(dtype)?,
                    shape: std::ptr::null_mut(),
                    strides: std::ptr::null_mut(),
                    byte_offset: 0,
                },
                context: std::ptr::null_mut(),
                deleter: Some(delete),
            },
            shape: [0; MAX_DIMS],
            strides: [0; MAX_DIMS],
            _shared: self.clone(),
        });
        let mut stride = 1i64;
        for (place, &extent) in shape.iter().enumerate().rev() {
            held.shape[place] = i64::try_from(extent)?;
            held.strides[place] = stride;
            stride = stride.saturating_mul(held.shape[place].max(1));
        }
        let held = Box::into_raw(held);
        // SAFETY: a box was taken apart a line above, and nobody else has the pointer yet.
        let parts = unsafe { &mut *held };
        parts.managed.context = held.cast();
        parts.managed.tensor.shape = parts.shape.as_mut_ptr();
        parts.managed.tensor.strides = parts.strides.as_mut_ptr();
        // `managed` is the first field, so the pointer to all is a pointer to it.
        // SAFETY: the pointer is not null and the name is a constant.
        let capsule = unsafe { ffi::PyCapsule_New(held.cast(), FRESH.as_ptr(), Some(forget)) };
        if capsule.is_null() {
            // SAFETY: no capsule was made, so it is still ours alone, as when it was taken apart.
            drop(unsafe { Box::from_raw(held) });
        }
        // SAFETY: it is a new reference, or null with an exception set.
        unsafe { Bound::from_owned_ptr_or_err(py, capsule) }
    }
}

// The structures of DLPack, version 0, as its `dlpack.h` has them.

const CPU: i32 = 1;
/// The name of a capsule whose tensor nobody has taken; whoever takes it renames the capsule.
const FRESH: &CStr = c"dltensor";

#[repr(C)]
struct Device {
    kind: i32,
    id: i32,
}

#[repr(C)]
struct ElementType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: Device,
    dims: i32,
    dtype: ElementType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct ManagedTensor {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedTensor)>,
}

#[repr(C)]
struct Held {
    managed: ManagedTensor,
    shape: [i64; MAX_DIMS],
    strides: [i64; MAX_DIMS],
    _shared: Arc<Shared>,
}

/// 8-bit floats go as bytes, to be viewed as what they are: not every torch takes their codes.
fn element(dtype: DType) -> PyResult<ElementType> {
    let (code, bits) = match dtype {
        DType::I8 => (0, 8),
        DType::I16 => (0, 16),
        DType::I32 => (0, 32),
        DType::I64 => (0, 64),
        DType::U8 | DType::F8E4M3 | DType::F8E5M2 | DType::Utf8 | DType::Bytes => (1, 8),
        DType::U16 => (1, 16),
        DType::U32 => (1, 32),
        DType::U64 => (1, 64),
        DType::F16 => (2, 16),
        DType::F32 => (2, 32),
        DType::F64 => (2, 64),
        DType::BF16 => (4, 16),
        DType::C64 => (5, 64),
        DType::C128 => (5, 128),
        DType::Bool => (6, 8),
        other => {
            return Err(PyValueError::new_err(format!("torch has no dtype for {other}")));
        }
    };
    Ok(ElementType { code, bits, lanes: 1 })
}

/// Called by whoever took the tensor, once, from any thread, with or without the interpreter.
unsafe extern "C" fn delete(managed: *mut ManagedTensor) {
    if !managed.is_null() {
        // SAFETY: the pointer is the one that the capsule was made with, which came from a box; DLPack asks that the
        // deleter is called once.
        drop(unsafe { Box::from_raw(managed.cast::<Held>()) });
    }
}

/// Called when the capsule goes: lets go of a tensor that nobody has taken.
unsafe extern "C" fn forget(capsule: *mut ffi::PyObject) {
    // SAFETY: called by Python, attached, with a capsule.
    let fresh = unsafe { ffi::PyCapsule_IsValid(capsule, FRESH.as_ptr()) };
    if fresh == 0 {
        return;
    }
    // SAFETY: as above, and the name was just compared.
    let managed = unsafe { ffi::PyCapsule_GetPointer(capsule, FRESH.as_ptr()) };
    // SAFETY: nobody took the tensor, so its deleter has not been called; the pointer is the one that the capsule was made
    // with.
    unsafe { delete(managed.cast()) };
}
