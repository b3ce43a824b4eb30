//! Graph dumps as tables: a folder with a CSV file of nodes, one of edges, and one of graphs.
//!
//! ```text
//! graphs.csv              nodes.csv                          edges.csv
//! graph_id,label,smiles   graph_id,node_id,charge,mass       graph_id,src_id,dst_id,order
//! 1,0,CO                  1,a,0.5,12.011                     1,a,b,1
//! 2,1,C                   1,b,-0.5,15.999                    1,b,a,1
//!                         2,a,0.0,12.011
//! ```
//!
//! The first line of each file names its columns. These have a meaning:
//!
//! | column | also called | in | |
//! | --- | --- | --- | --- |
//! | `graph_id` | `graph` | every file | the graph of a row: any text |
//! | `node_id` | `node` | `nodes.csv` | what edges call the node, any text; without it, nodes are numbered from 0 in each graph |
//! | `src_id`, `dst_id` | `source`, `src`; `target`, `dst` | `edges.csv` | the ends of the edge |
//! | `num_nodes` | | `graphs.csv` | needed where there is no `nodes.csv`, else compared with it |
//! | `label` | | every file | `y` (of graphs), `node_label`, `edge_label`: i64, or f32 if the first row's is no whole number |
//!
//! Every other column is numbers. Those of `nodes.csv` stand side by side in `x` (`f32[nodes, columns]`), those of `edges.csv` in
//! `edge_attr`, and each of `graphs.csv` is an attribute of its own, i64 or f32 as a label is. A cell may hold a list, `"0.1,0.2"`
//! or `[0.1, 0.2]`, as long in every row as in the first. [`Options::column`] makes an attribute of any column, under any
//! name and as i64, f32, f64 or text; nothing becomes text unless it is asked for, so that a stray `N/A` is an error.
//!
//! # Order
//! Files are read side by side, so the rows of a graph stand together and graphs have the same order in every file; a graph
//! may be absent from all but the first of `graphs.csv` and `nodes.csv` that is there. Whole numbers as ids have to ascend.
//! Edges keep their order.
//!
//! # Memory
//! The largest graph, and if ids are not whole numbers, those of all graphs that were read. A row has at most [`LONGEST_ROW`]
//! bytes.

#![forbid(unsafe_code)]

mod column;
mod groups;
mod reader;
mod table;

pub use column::Values;
pub use reader::{Column, Graph, Layout, Options, Part, Reader};
pub use table::LONGEST_ROW;
