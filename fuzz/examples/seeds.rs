//! Writes the seeds of every target below the folder that is named: the golden and hostile files, the files of the tests,
//! and what can be taken out of them.

use std::io::Result;
use std::path::Path;

use fencepost_fuzz::{CSV_FILES, TU_FILES, WHOLE_FILES, directory_of, root, vectors};

fn seed(folder: &Path, target: &str, name: &str, bytes: &[u8]) -> Result<()> {
    let folder = folder.join(target);
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join(name), bytes)
}

fn files(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            files.push((entry.file_name().to_string_lossy().into(), std::fs::read(entry.path())?));
        }
    }
    files.sort();
    Ok(files)
}

fn main() -> Result<()> {
    let out = std::env::args_os().nth(1).expect("usage: seeds FOLDER");
    let out = Path::new(&out);
    for part in ["golden", "hostile"] {
        for path in vectors(part) {
            let bytes = std::fs::read(&path)?;
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            // A long seed makes every run slow; `blocks` is the only one.
            if bytes.len() < 40_000 {
                seed(out, "open", &name, &bytes)?;
                seed(out, "open_sealed", &name, &bytes)?;
            }
            if let Some(directory) = directory_of(&bytes) {
                seed(out, "directory", &name, directory)?;
            }
        }
    }
    let data = root().join("examples").join("data");
    for (at, line) in std::fs::read(data.join("connected-8.g6"))?
        .split_inclusive(|&byte| byte == b'\n')
        .enumerate()
        .step_by(700)
    {
        seed(out, "graph6", &at.to_string(), line)?;
    }
    for (at, text) in [
        ">>graph6<<DQc\n",
        ">>sparse6<<:Fa@x^\n",
        ":An\n",
        "?\n@\n",
        "~?@A\n",
        "~~?????@A\n",
        ":~?@A_\n",
    ]
    .iter()
    .enumerate()
    {
        seed(out, "graph6", &format!("text_{at}"), text.as_bytes())?;
    }
    let tu: [&[&str; 9]; 3] = [
        &[
            "1, 2\n2, 1\n3, 4\n",
            "1\n1\n2\n2\n",
            "1\n-1\n",
            "0\n1\n2\n0\n",
            "1\n1\n0\n",
            "0.5, 1\n1, 2\n0, 0\n1e3, -1\n",
            "1.5\n1.5\n2\n",
            "",
            "CC\nO\n",
        ],
        &["1, 2\n", "1\n1\n", "", "", "", "", "", "0.5\n", ""],
        &["4, 3\n1, 2\n", "1\n1\n2\n2\n", "3\n4\n", "0, 1\n1, 1\n2, 0\n0, 0\n", "", "", "", "", ""],
    ];
    for (at, set) in tu.iter().enumerate() {
        assert_eq!(set.len(), TU_FILES.len());
        let bytes: Vec<Vec<u8>> = set.iter().map(|text| text.as_bytes().to_vec()).collect();
        for flags in 0..4u8 {
            seed(out, "tu", &format!("{at}_{flags}"), &[vec![flags], bytes.join(&0xff)].concat())?;
        }
    }
    // Which of the columns a to d are asked for, and whether cells are parted by semicolons.
    let csv: [(&[u8], [&str; 3]); 5] = [
        (
            &[0, 2, 6, 14, 30],
            [
                "graph_id,node_id,b,d,label\n1,u,1,2,0\n1,v,-3,4e3,1\n3,u,0,nan,2\n",
                "graph_id,src_id,dst_id,c,label\n1,u,v,0.5,1\n1,v,u,1,2\n",
                "graph_id,a,label\n1,5,0\n2,6,1\n3,7,0\n",
            ],
        ),
        (
            &[0, 4, 8],
            [
                "graph,node,feat,b\r\ng,n,\"0.1, 0.2\",3\r\nf,n,\"1,2\",\"4\"\r\n",
                "graph,source,target,c\r\ng,n,n,[1.5]\r\n",
                "graph,feat,label\r\ng,\"[1,2]\",0.5\r\nf,\"3,4\",1\r\n",
            ],
        ),
        (
            &[0, 2],
            [
                "",
                "graph_id,src,dst\n10,0,2\n10,2,1\n12,0,0\n",
                "graph_id,num_nodes,a\n10,3,1\n11,0,2\n12,1,\"c, \"\"d\"\"\n e\"\n",
            ],
        ),
        (&[1, 5, 17], ["graph_id;b;d\n1;1;[0.5,2]\n1;2;[1,3]\n", "graph_id;src;dst\n1;0;1\n", ""]),
        (&[0], ["\u{feff}graph_id,b\n\n7,1\n\n08,2", "", ""]),
    ];
    for (at, (every, tables)) in csv.iter().enumerate() {
        assert_eq!(tables.len(), CSV_FILES.len());
        let bytes: Vec<Vec<u8>> = tables.iter().map(|text| text.as_bytes().to_vec()).collect();
        for &flags in *every {
            seed(out, "csv", &format!("{at}_{flags}"), &[vec![flags], bytes.join(&0xff)].concat())?;
        }
    }
    let npy = root().join("tests").join("data").join("npy");
    for folder in ["arrays", "refused"] {
        for (name, bytes) in files(&npy.join(folder))? {
            seed(out, "npy", &name, &[&[0], &bytes[..]].concat())?;
        }
    }
    for (name, bytes) in files(&npy.join("samples"))? {
        seed(out, "npy", &format!("1_{name}"), &[&[1], &bytes[..]].concat())?;
        seed(out, "npy", &format!("2_{name}"), &[&[2], &bytes[..]].concat())?;
    }
    let mut whole = vec![3u8];
    for name in WHOLE_FILES {
        let bytes = std::fs::read(npy.join("whole").join(format!("{name}.npy")))?;
        let length = u16::try_from(bytes.len()).expect("a short file");
        whole.extend_from_slice(&length.to_le_bytes());
        whole.extend_from_slice(&bytes);
    }
    seed(out, "npy", "whole", &whole)?;
    for which in 0..8u8 {
        let numbers: Vec<u8> = [1u64, 2, 1, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
        seed(
            out,
            "loader_state",
            &format!("numbers_{which}"),
            &[&[which | 4], &numbers[..]].concat(),
        )?;
    }
    let text =
        br#"{"fencepost_loader":1,"file":"","rows":"0..3","sampler":{},"epoch":0,"consumed":0}"#;
    seed(out, "loader_state", "text", &[&[0], &text[..]].concat())?;
    // These are made of any bytes.
    for target in ["mutate", "damage", "writer"] {
        for length in [0usize, 16, 64, 256] {
            let bytes: Vec<u8> = (0..length).map(|at| (at * 167 % 251) as u8).collect();
            seed(out, target, &format!("bytes_{length}"), &bytes)?;
        }
    }
    Ok(())
}
