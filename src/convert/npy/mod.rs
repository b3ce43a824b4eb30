//! numpy files: folders of samples in `.npy` or `.npz`, and whole arrays with tables of offsets.
//!
//! - [`Samples`] reads a folder with a file for each sample, in natural order (`s2` before `s10`): `.npz` files with named
//!   arrays (what `numpy.savez` and `savez_compressed` write), or `.npy` files with one array.
//! - [`Arrays`] reads a folder of whole arrays, each the samples' values back to back, with tables of N + 1 offsets.
//!
//! Every array comes out in C order and little-endian: big-endian and Fortran-order sources are converted. `<U` strings become
//! `utf8` and `S` strings `bytes` (without the zeros that numpy pads and cuts them with). Pickled objects, dates, records and
//! 80-bit floats are refused.
//!
//! # Whole arrays
//! ```text
//! folder/nodes_offsets.npy   [N + 1]    x.npy [total nodes, 11]   pos.npy [total nodes, 3]
//!        edges_offsets.npy   [N + 1]    edge_index.npy [2, total edges]
//!                                       y.npy [N, 19]
//! ```
//! A table is a file `<name>_offsets.npy`, `offsets.npy` or `ptr.npy`. An array with a table of its own name is cut by that one;
//! the others are cut by the one table that ends at their length, or have a row for each sample. Where lengths leave a choice,
//! [`Options`] has to name it, except that names which start with `edge` belong to the axis `edges` and others to `nodes` if
//! those fit. Arrays are cut along dimension 0, or along the last one if `index` is in their name or they are named `face`, as
//! PyTorch Geometric does. Memory follows the largest sample; tables are streamed as well.

#![forbid(unsafe_code)]

mod array;
mod export;
mod import;
mod samples;
mod whole;

pub use array::{Array, Data, read_npy, read_npz};
pub use export::{ExportOptions, ExportSummary, export_npy, export_npz};
pub use import::{import_npy, import_npz};
pub use samples::Samples;
pub use whole::{ArrayLayout, Arrays, Options};
