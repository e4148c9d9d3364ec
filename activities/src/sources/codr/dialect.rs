//! Which layout and language a data file has, told from its header.

use super::error::{CodrError, OtherKind};
use super::language::{Language, folded};

/// The columns after the dimensions of the ordinary layout, in English, folded.
const TAIL_EN: [&str; 11] = [
    "uom",
    "uom_id",
    "scalar_factor",
    "scalar_id",
    "vector",
    "coordinate",
    "value",
    "status",
    "symbol",
    "terminated",
    "decimals",
];
/// The same in French, folded. `STATUT` is also read for `STATUS`.
const TAIL_FR: [&str; 11] = [
    "unite de mesure",
    "identificateur d'unite de mesure",
    "facteur scalaire",
    "identificateur scalaire",
    "vecteur",
    "coordonnees",
    "valeur",
    "status",
    "symbole",
    "termine",
    "decimales",
];
const STATUS_AT: usize = 7;
const HEAD_EN: [&str; 3] = ["ref_date", "geo", "dguid"];
const HEAD_FR: [&str; 3] = ["periode de reference", "geo", "dguid"];
/// Statistics Canada's tables have at most ten dimensions.
const MOST_DIMENSIONS: usize = 10;

/// How the observations stand in the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Layout {
    /// One observation a row.
    Ordinary,
    /// The members of the last dimension side by side, a value and a symbol each: census tables.
    Census {
        /// The members of the last dimension, in the order of their columns.
        members: Vec<CensusMember>,
    },
}

/// A member of the last dimension of a census table, as its column's header names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CensusMember {
    /// The member's id.
    pub(super) id: u32,
    /// The whole header cell without the id, `dimension:member`.
    pub(super) label: String,
}

/// What the header tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dialect {
    pub(super) language: Language,
    pub(super) layout: Layout,
    /// The names of the dimensions from the second on; the first is the geography. A census table's last dimension
    /// has no column of its own: its name is empty here.
    pub(super) names: Vec<String>,
    /// How many cells a row has.
    pub(super) cells: usize,
}

impl Dialect {
    /// How many dimensions the table has.
    pub(super) fn dimensions(&self) -> usize {
        self.names.len() + 1
    }
}

/// The delimiter of a file whose first line is `line`: the one of `,` and `;` that stands outside quotes more often.
pub(super) fn delimiter(line: &str) -> u8 {
    let mut quoted = false;
    let (mut commas, mut semicolons) = (0, 0);
    for b in line.bytes() {
        match b {
            b'"' => quoted = !quoted,
            b',' if !quoted => commas += 1,
            b';' if !quoted => semicolons += 1,
            _ => {}
        }
    }
    if semicolons > commas { b';' } else { b',' }
}

/// The dialect of `file`, whose header has `cells`.
///
/// # Errors
/// [`CodrError::DisplayPivot`] for a table as displayed, [`CodrError::WrongColumn`] for any other header.
pub(super) fn recognise(file: &str, cells: &[&str]) -> Result<Dialect, CodrError> {
    let names: Vec<String> = cells.iter().map(|cell| folded(cell)).collect();
    let wrong = |position: usize, expected: String| CodrError::WrongColumn {
        file: file.to_owned(),
        position: position + 1,
        found: cells.get(position).map_or_else(String::new, |cell| shortened(cell)),
        expected,
    };
    let first = names.first().map_or("", String::as_str);
    let (language, head) = if first == HEAD_FR[0] {
        (Language::French, HEAD_FR)
    } else if first == HEAD_EN[0] {
        (Language::English, HEAD_EN)
    } else if let Some(found) = other_kind(&names) {
        return Err(CodrError::OtherKind { file: file.to_owned(), found });
    } else if cells.len() == 1 {
        return Err(CodrError::DisplayPivot { file: file.to_owned(), found: shortened(cells[0]) });
    } else {
        return Err(wrong(0, "REF_DATE, or PÉRIODE DE RÉFÉRENCE".to_owned()));
    };
    if let Some(position) = (0..3).find(|at| names.get(*at).map(String::as_str) != Some(head[*at])) {
        return Err(wrong(position, head[position].to_uppercase()));
    }
    if let Some(at) = names.iter().skip(3).position(|name| is_census_coordinate(name)) {
        // The ordinary layout has a column of that name too, always the sixth from the end.
        let at = at + 3;
        if names.get(at + 2).is_some_and(|name| is_symbols(name)) {
            return census(file, language, cells, &names, at);
        }
    }
    let tail = match language {
        Language::English => TAIL_EN,
        Language::French => TAIL_FR,
    };
    let Some(begin) = names.len().checked_sub(tail.len()).filter(|begin| *begin >= 3) else {
        return Err(wrong(names.len(), format!("{} columns or more", 3 + tail.len())));
    };
    for (at, expected) in tail.iter().enumerate() {
        let found = names[begin + at].as_str();
        if found != *expected && !(at == STATUS_AT && found == "statut") {
            return Err(wrong(begin + at, expected.to_uppercase()));
        }
    }
    let dimensions: Vec<String> = cells[3..begin].iter().map(|cell| cell.trim().to_owned()).collect();
    if dimensions.len() + 1 > MOST_DIMENSIONS {
        return Err(wrong(3 + MOST_DIMENSIONS - 1, format!("at most {MOST_DIMENSIONS} dimensions")));
    }
    if let Some(at) = dimensions.iter().position(String::is_empty) {
        return Err(wrong(3 + at, "the name of a dimension".to_owned()));
    }
    Ok(Dialect { language, layout: Layout::Ordinary, names: dimensions, cells: cells.len() })
}

/// What a file is whose header has these names, among the files that are easily taken for a table's rows.
fn other_kind(names: &[String]) -> Option<OtherKind> {
    match names.first().map(String::as_str) {
        Some("cube title" | "titre du cube") => Some(OtherKind::Metadata),
        Some("productid") if names.iter().any(|name| name == "coordinate") => Some(OtherKind::Delta),
        Some(_) | None => None,
    }
}

fn is_census_coordinate(name: &str) -> bool {
    matches!(name, "coordinate" | "coordonnee" | "coordonnees" | "coordonnee(s)")
}

fn is_symbols(name: &str) -> bool {
    matches!(name, "symbol" | "symbols" | "symbole" | "symboles")
}

fn census(
    file: &str,
    language: Language,
    cells: &[&str],
    names: &[String],
    coordinate: usize,
) -> Result<Dialect, CodrError> {
    let wrong = |position: usize, expected: &str| CodrError::WrongColumn {
        file: file.to_owned(),
        position: position + 1,
        found: cells.get(position).map_or_else(String::new, |cell| shortened(cell)),
        expected: expected.to_owned(),
    };
    let mut members: Vec<CensusMember> = Vec::new();
    let mut at = coordinate + 1;
    while at < cells.len() {
        let Some(member) = census_member(cells[at]) else {
            return Err(wrong(at, "a value column, <dimension>:<member>[id]"));
        };
        if members.iter().any(|known| known.id == member.id) {
            return Err(wrong(at, "each member of the last dimension once"));
        }
        if !names.get(at + 1).is_some_and(|name| is_symbols(name)) {
            return Err(wrong(at + 1, "Symbol or Symbols, after each value column"));
        }
        members.push(member);
        at += 2;
    }
    let mut dimensions: Vec<String> = cells[3..coordinate].iter().map(|cell| cell.trim().to_owned()).collect();
    if let Some(at) = dimensions.iter().position(String::is_empty) {
        return Err(wrong(3 + at, "the name of a dimension"));
    }
    dimensions.push(String::new());
    if dimensions.len() + 1 > MOST_DIMENSIONS {
        return Err(wrong(coordinate, "at most 10 dimensions"));
    }
    Ok(Dialect { language, layout: Layout::Census { members }, names: dimensions, cells: cells.len() })
}

/// The member that a value column's header names: its id is the number in the last pair of brackets.
fn census_member(cell: &str) -> Option<CensusMember> {
    let (label, id) = cell.trim().strip_suffix(']')?.rsplit_once('[')?;
    let id = id.trim().parse().ok().filter(|id| *id > 0)?;
    Some(CensusMember { id, label: label.trim().to_owned() })
}

/// At most 80 characters of `text`, for a message.
pub(super) fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(80) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EN: &str = "REF_DATE,GEO,DGUID,Product,UOM,UOM_ID,SCALAR_FACTOR,SCALAR_ID,VECTOR,COORDINATE,VALUE,STATUS,SYMBOL,TERMINATED,DECIMALS";
    const FR: &str = "PÉRIODE DE RÉFÉRENCE;GÉO;DGUID;Produit;UNITÉ DE MESURE;IDENTIFICATEUR D'UNITÉ DE MESURE;FACTEUR SCALAIRE;IDENTIFICATEUR SCALAIRE;VECTEUR;COORDONNÉES;VALEUR;STATUS;SYMBOLE;TERMINÉ;DÉCIMALES";

    fn told(header: &str) -> Result<Dialect, CodrError> {
        let delimiter = char::from(delimiter(header));
        recognise("t.csv", &header.split(delimiter).collect::<Vec<_>>())
    }

    #[test]
    fn the_header_tells_language_and_dimensions() {
        let english = told(EN).unwrap();
        assert_eq!((english.language, english.dimensions(), english.cells), (Language::English, 2, 15));
        assert_eq!(english.names, ["Product"]);
        let french = told(FR).unwrap();
        assert_eq!((french.language, french.dimensions()), (Language::French, 2));
        assert_eq!(told(&FR.replace("STATUS", "STATUT")).unwrap(), french);
        assert_eq!(told(&EN.replace("Product,", "")).unwrap().dimensions(), 1);
        let ten: String = (2..=10).map(|n| format!("D{n},")).collect();
        assert_eq!(told(&EN.replace("Product,", &ten)).unwrap().dimensions(), 10);
    }

    #[test]
    fn a_census_header_names_the_members_of_the_last_dimension() {
        for (coordinate, symbol) in [("Coordinate", "Symbol"), ("Coordonnée", "Symboles"), ("COORDINATE", "Symbols")] {
            let header = format!(
                "REF_DATE,GEO,DGUID,Age (15),{coordinate},Stat (3):Total [1],{symbol},Stat (3): Mean: all (1) [12]  ,{symbol}"
            );
            let dialect = told(&header).unwrap();
            assert_eq!(dialect.dimensions(), 3);
            let Layout::Census { members } = dialect.layout else { panic!("not a census layout") };
            assert_eq!(members.iter().map(|m| m.id).collect::<Vec<_>>(), [1, 12]);
            assert_eq!(members[1].label, "Stat (3): Mean: all (1)");
        }
        for bad in [
            "REF_DATE,GEO,DGUID,Age,Coordinate,Stat:Total[1],Symbol,Stat:Mean[1],Symbol",
            "REF_DATE,GEO,DGUID,Age,Coordinate,Stat:Total[1],Symbol,Stat:Mean,Symbol",
            "REF_DATE,GEO,DGUID,Age,Coordinate,Stat:Total[1],Symbol,Stat:Mean[2]",
        ] {
            assert!(matches!(told(bad), Err(CodrError::WrongColumn { .. })), "{bad}");
        }
    }

    #[test]
    fn other_headers_are_refused_with_the_column() {
        let table = [
            (EN.replace("GEO", "GEOGRAPHY"), 2, "GEOGRAPHY"),
            (EN.replace("VECTOR", "VEKTOR"), 9, "VEKTOR"),
            (EN.to_lowercase().replace("ref_date", "date"), 1, "date"),
            (EN.replace("Product,", ","), 4, ""),
            ("REF_DATE,GEO,DGUID".to_owned(), 4, ""),
            (EN.replace("Product,", &"D,".repeat(10)), 13, "D"),
        ];
        for (header, at, name) in table {
            match told(&header) {
                Err(CodrError::WrongColumn { position, found, .. }) => {
                    assert_eq!((position, found.as_str()), (at, name))
                }
                other => panic!("{header}: {other:?}"),
            }
        }
        assert!(matches!(told("Labour force characteristics"), Err(CodrError::DisplayPivot { .. })));
    }
}
