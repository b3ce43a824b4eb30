//! One molecule, drawn with letters: what a sample of the B3DB set means to a chemist.

#![forbid(unsafe_code)]

use std::io::Write;

use fencepost::{Dataset, Error, SampleBuf};

use crate::failure::{Failure, Result};
use crate::output::{BOLD, Output};
use crate::text;

/// Atomic masses tell elements apart; the one-hot columns do too, but not which column is which element.
const ELEMENTS: [(&str, f32); 15] = [
    ("H", 1.008),
    ("B", 10.81),
    ("C", 12.011),
    ("N", 14.007),
    ("O", 15.999),
    ("F", 18.998),
    ("Ne", 20.18),
    ("P", 30.974),
    ("S", 32.06),
    ("Cl", 35.45),
    ("Ar", 39.948),
    ("Br", 79.904),
    ("Kr", 83.798),
    ("I", 126.904),
    ("Xe", 131.293),
];

/// Columns of `x` before the one-hot ones: number of bonded atoms, formal charge, attached hydrogens, atomic mass.
const ATTRIBUTES: usize = 4;

struct Atom {
    element: &'static str,
    charge: i32,
    hydrogens: usize,
    /// Neighbour and kind of the bond.
    bonds: Vec<(usize, Bond)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bond {
    Single,
    Double,
    Triple,
    Aromatic,
}

impl Bond {
    const ALL: [Bond; 4] = [Bond::Single, Bond::Double, Bond::Triple, Bond::Aromatic];

    fn sign(self) -> char {
        match self {
            Bond::Single => '-',
            Bond::Double => '=',
            Bond::Triple => '#',
            Bond::Aromatic => ':',
        }
    }
}

/// Shows a small molecule of the set: the first with 9 to 12 atoms, a ring and bonds of three kinds, or else the first.
pub(super) fn show(dataset: &Dataset, out: &mut Output) -> Result<()> {
    let mut buffer = SampleBuf::new();
    let mut chosen = 0;
    for index in 0..dataset.len() {
        let atoms = atoms(dataset, index, &mut buffer)?;
        let bonds: usize = atoms.iter().map(|atom| atom.bonds.len()).sum::<usize>() / 2;
        let has = |kind| atoms.iter().any(|atom| atom.bonds.iter().any(|bond| bond.1 == kind));
        let kinds = Bond::ALL.into_iter().filter(|&kind| has(kind)).count();
        if (9..=12).contains(&atoms.len()) && bonds >= atoms.len() && kinds >= 3 {
            chosen = index;
            break;
        }
    }
    if dataset.is_empty() {
        return Ok(());
    }
    let atoms = atoms(dataset, chosen, &mut buffer)?;
    let sample = dataset.read(chosen, &mut buffer)?;
    let smiles = sample.attr("smiles")?.as_str()?;
    let crosses = sample.slice::<i64>("y")?.first() == Some(&1);
    let bonds: usize = atoms.iter().map(|atom| atom.bonds.len()).sum::<usize>() / 2;
    writeln!(out, "  {BOLD}sample {chosen}: {}{BOLD:#}", text::printable(smiles))?;
    writeln!(
        out,
        "  {}, {}; {} the blood-brain barrier\n",
        text::counted(atoms.len() as u64, "atom"),
        text::counted(bonds as u64, "bond"),
        if crosses { "crosses" } else { "does not cross" },
    )?;
    for (number, atom) in atoms.iter().enumerate() {
        let bonds: Vec<String> = atom
            .bonds
            .iter()
            .map(|&(other, bond)| format!("{}{}{other}", bond.sign(), atoms[other].element))
            .collect();
        writeln!(out, "  {number:>4}  {:<6}{}", label(atom), bonds.join("  "))?;
    }
    writeln!(
        out,
        "\n  bonds: - single, = double, # triple, : aromatic; behind each, the atom it leads to"
    )?;
    Ok(())
}

/// `CH3`, `NH+`, `O`.
fn label(atom: &Atom) -> String {
    let hydrogens = match atom.hydrogens {
        0 => String::new(),
        1 => "H".to_owned(),
        n => format!("H{n}"),
    };
    let sign = if atom.charge < 0 { "-" } else { "+" };
    let charge = match atom.charge.unsigned_abs() {
        0 => String::new(),
        1 => sign.to_owned(),
        n => format!("{n}{sign}"),
    };
    format!("{}{hydrogens}{charge}", atom.element)
}

fn atoms(dataset: &Dataset, index: u64, buffer: &mut SampleBuf) -> Result<Vec<Atom>> {
    let sample = dataset.read(index, buffer)?;
    let x = sample.attr("x")?;
    let edges = sample.slice::<i64>("edge_index")?;
    let kinds = sample.attr("edge_attr")?;
    let (&[nodes, columns], &[_, classes]) = (x.shape(), kinds.shape()) else {
        return Err(unexpected());
    };
    if columns < ATTRIBUTES {
        return Err(unexpected());
    }
    let kinds = kinds.as_slice::<f32>()?;
    let mut atoms: Vec<Atom> = x
        .as_slice::<f32>()?
        .chunks_exact(columns)
        .map(|row| Atom {
            element: element(row[3]),
            // Small whole numbers, stored as floats among floats.
            charge: row[1] as i32,
            hydrogens: row[2] as usize,
            bonds: Vec::new(),
        })
        .collect();
    let (sources, targets) = edges.split_at(edges.len() / 2);
    for (edge, (&source, &target)) in sources.iter().zip(targets).enumerate() {
        let kind = kinds[edge * classes..][..classes].iter().position(|&flag| flag == 1.0);
        let bond = kind.and_then(|kind| Bond::ALL.get(kind)).ok_or_else(unexpected)?;
        let place = |node: i64| usize::try_from(node).ok().filter(|&node| node < nodes);
        let (Some(source), Some(target)) = (place(source), place(target)) else {
            return Err(unexpected());
        };
        atoms[source].bonds.push((target, *bond));
    }
    Ok(atoms)
}

fn element(mass: f32) -> &'static str {
    let nearest = ELEMENTS.iter().min_by(|a, b| (a.1 - mass).abs().total_cmp(&(b.1 - mass).abs()));
    nearest.map_or("?", |(symbol, _)| symbol)
}

fn unexpected() -> Failure {
    Error::Unsupported {
        what: "drawing a molecule".into(),
        problem: "the set has not the columns of B3DB: run the demo on the data of the repository"
            .into(),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atoms_are_labelled_as_chemists_do() {
        let atom = |element, charge, hydrogens| Atom { element, charge, hydrogens, bonds: vec![] };
        assert_eq!(label(&atom("C", 0, 3)), "CH3");
        assert_eq!(label(&atom("N", 1, 1)), "NH+");
        assert_eq!(label(&atom("O", -1, 0)), "O-");
        assert_eq!(label(&atom("P", 2, 0)), "P2+");
        assert_eq!(element(12.0), "C");
        assert_eq!(element(131.29), "Xe");
    }
}
