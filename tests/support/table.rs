//! A small table of made-up numbers, written in the layout of a Statistics Canada full-table download.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use zip::write::SimpleFileOptions;

/// The language of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    English,
    French,
}

/// A table of three places, two characteristics and some months.
#[derive(Debug, Clone)]
pub struct Table {
    pub product: String,
    pub months: u32,
    /// Added to every value of the last month: a revision.
    pub revision: i64,
    /// A line put in place of the last one.
    pub last_line: Option<String>,
    /// The product that the metadata speaks of.
    pub metadata_product: String,
}

const PLACES: [(u32, &str, &str, &str, &str); 3] = [
    (1, "", "Canada", "Canada", "2021A000011124"),
    (2, "1", "Quebec", "Québec", "2021A000224"),
    (10, "1", "Ontario", "Ontario", "2021A000235"),
];
const KINDS: [(u32, &str, &str, &str); 2] = [(1, "", "Employment", "Emploi"), (3, "1", "Full-time", "Temps plein")];

const ENGLISH: &str = "REF_DATE,GEO,DGUID,Characteristic,UOM,UOM_ID,SCALAR_FACTOR,SCALAR_ID,VECTOR,COORDINATE,VALUE,STATUS,SYMBOL,TERMINATED,DECIMALS";
const FRENCH: &str = "PÉRIODE DE RÉFÉRENCE;GÉO;DGUID;Caractéristique;UNITÉ DE MESURE;IDENTIFICATEUR D'UNITÉ DE MESURE;FACTEUR SCALAIRE;IDENTIFICATEUR SCALAIRE;VECTEUR;COORDONNÉES;VALEUR;STATUS;SYMBOLE;TERMINÉ;DÉCIMALES";

impl Table {
    /// A table of `months` months of the product.
    pub fn new(product: &str, months: u32) -> Self {
        Self { product: product.to_owned(), months, revision: 0, last_line: None, metadata_product: product.to_owned() }
    }

    /// How many rows it has.
    pub fn rows(&self) -> u64 {
        u64::from(self.months) * 6
    }

    /// The sum of its values, in hundredths.
    pub fn sum_in_hundredths(&self) -> i64 {
        (0..self.months).flat_map(|month| self.cells(month)).filter_map(|cell| cell.4).sum()
    }

    /// One month's cells: place, kind, coordinate, vector, and the value in hundredths unless it is suppressed.
    fn cells(&self, month: u32) -> Vec<(usize, usize, String, u32, Option<i64>)> {
        let mut cells = Vec::new();
        for (p, place) in PLACES.iter().enumerate() {
            for (k, kind) in KINDS.iter().enumerate() {
                let suppressed = place.0 == 2 && kind.0 == 3 && month.is_multiple_of(5);
                let mut value = i64::from(100_000 * (p as u32 + 1) + 700 * k as u32 + 13 * month);
                if month + 1 == self.months {
                    value += self.revision;
                }
                let vector = 9_000 + (p * KINDS.len() + k) as u32;
                cells.push((p, k, format!("{}.{}", place.0, kind.0), vector, (!suppressed).then_some(value)));
            }
        }
        cells
    }

    /// The data file.
    pub fn csv(&self, language: Language) -> String {
        let french = language == Language::French;
        let (separator, header) = if french { (';', FRENCH) } else { (',', ENGLISH) };
        let mut text = String::from("\u{feff}");
        let quoted: Vec<_> = header.split(separator).map(|name| format!("\"{name}\"")).collect();
        text.push_str(&quoted.join(&separator.to_string()));
        text.push('\n');
        for month in 0..self.months {
            let period = format!("{}-{:02}", 2020 + month / 12, month % 12 + 1);
            for (p, k, coordinate, vector, value) in self.cells(month) {
                let place = PLACES[p];
                let kind = KINDS[k];
                let value = value.map(|v| format!("{}.{:02}", v / 100, v % 100)).unwrap_or_default();
                let status = if value.is_empty() { "x" } else { "" };
                let cells = if french {
                    [&period, place.3, place.4, kind.3, "Personnes", "249", "milliers", "3"].map(str::to_owned)
                } else {
                    [&period, place.2, place.4, kind.2, "Persons", "249", "thousands", "3"].map(str::to_owned)
                };
                let value = if french { value.replace('.', ",") } else { value };
                let rest = [
                    format!("v{vector}"),
                    coordinate,
                    value,
                    status.to_owned(),
                    String::new(),
                    String::new(),
                    "2".to_owned(),
                ];
                let line: Vec<_> = cells.iter().chain(&rest).map(|cell| format!("\"{cell}\"")).collect();
                let _ = writeln!(text, "{}", line.join(&separator.to_string()));
            }
        }
        if let Some(last) = &self.last_line {
            let end = text.trim_end().rfind('\n').unwrap() + 1;
            text.truncate(end);
            text.push_str(last);
            text.push('\n');
        }
        text
    }

    /// The metadata file, in English.
    pub fn metadata(&self) -> String {
        let mut text = format!(
            "\u{feff}\"Cube Title\",\"Product Id\",\"CANSIM Id\",\"URL\",\"Cube Notes\",\"Archive Status\",\"Frequency\",\"Start Reference Period\",\"End Reference Period\",\"Total number of dimensions\"\n\
             \"A small table, numbers made up\",\"{}\",\"\",\"\",\"\",\"CURRENT - a cube available to the public and that is current\",\"Monthly\",\"2020-01-01\",\"2021-12-01\",\"2\"\n\n\
             \"Dimension ID\",\"Dimension name\",\"Dimension Notes\",\"Dimension Definitions\"\n\
             \"1\",\"Geography\",\"\",\"\"\n\"2\",\"Characteristic\",\"\",\"\"\n\n\
             \"Dimension ID\",\"Member Name\",\"Classification Code\",\"Member ID\",\"Parent Member ID\",\"Terminated\",\"Member Notes\",\"Member Definitions\"\n",
            self.metadata_product
        );
        for (id, parent, name, _, _) in PLACES {
            let _ = writeln!(text, "\"1\",\"{name}\",\"\",\"{id}\",\"{parent}\",\"\",\"\",\"\"");
        }
        for (id, parent, name, _) in KINDS {
            let _ = writeln!(text, "\"2\",\"{name}\",\"\",\"{id}\",\"{parent}\",\"\",\"\",\"\"");
        }
        text.push_str("\nSymbol Legend\n\"Description\",\"Symbol\"\n\"suppressed\",\"x\"\n\n\"Note ID\",\"Note\"\n\"1\",\"A \"quoted\" word.\"\n");
        text
    }

    /// Writes the English full-table zip to `path`.
    pub fn write_zip(&self, path: &Path) {
        let mut zip = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
        let options = SimpleFileOptions::default();
        zip.start_file(format!("{}.csv", self.product), options).unwrap();
        zip.write_all(self.csv(Language::English).as_bytes()).unwrap();
        zip.start_file(format!("{}_MetaData.csv", self.product), options).unwrap();
        zip.write_all(self.metadata().as_bytes()).unwrap();
        zip.finish().unwrap();
    }
}
