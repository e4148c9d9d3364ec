//! Tests of the whole source, on small files of our own and on real ones.

mod dialects;
mod fuzz;
mod real;
mod refusals;

use std::convert::Infallible;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use duckdb::arrow::array::{Array, BooleanArray, Int16Array, Int64Array, StringArray};
use tempfile::TempDir;

use super::*;

pub(super) const PID: &str = "99100001";

pub(super) const HEADER: &str = "\"REF_DATE\",\"GEO\",\"DGUID\",\"Products\",\"UOM\",\"UOM_ID\",\"SCALAR_FACTOR\",\"SCALAR_ID\",\"VECTOR\",\"COORDINATE\",\"VALUE\",\"STATUS\",\"SYMBOL\",\"TERMINATED\",\"DECIMALS\"\n";
pub(super) const FRENCH_HEADER: &str = "\"PÉRIODE DE RÉFÉRENCE\";\"GÉO\";\"DGUID\";\"Produits\";\"UNITÉ DE MESURE\";\"IDENTIFICATEUR D'UNITÉ DE MESURE\";\"FACTEUR SCALAIRE\";\"IDENTIFICATEUR SCALAIRE\";\"VECTEUR\";\"COORDONNÉES\";\"VALEUR\";\"STATUS\";\"SYMBOLE\";\"TERMINÉ\";\"DÉCIMALES\"\n";

pub(super) const ROWS: &str = "\
\"2001-01\",\"Canada\",\"2021A000011124\",\"All items\",\"Persons\",\"249\",\"units \",\"0\",\"v1\",\"1.1\",\"12.50\",\"\",\"\",\"\",\"2\"
\"2001-01\",\"Canada\",\"2021A000011124\",\"Meat \"\"fresh\"\" [P11]\",\"Persons\",\"249\",\"units\",\"0\",\"v10\",\"1.10\",\"\",\"..\",\"\",\"t\",\"2\"
\"2001-02\",\"Canada\",\"\",\"All items\",\"Dollars\",\"81\",\"thousands\",\"3\",\"\",\"1.1\",\"-0.75\",\"E\",\"r\",\"\",\"2\"
";
pub(super) const FRENCH_ROWS: &str = "\
\"2001-01\";\"Canada\";\"2021A000011124\";\"Ensemble\";\"Personnes\";\"249\";\"unités\";\"0\";\"v1\";\"1.1\";\"12,50\";\"\";\"\";\"\";\"2\"
\"2001-01\";\"Canada\";\"2021A000011124\";\"Viande « fraîche » [P11]\";\"Personnes\";\"249\";\"unités\";\"0\";\"v10\";\"1.10\";\"\";\"..\";\"\";\"t\";\"2\"
\"2001-02\";\"Canada\";\"\";\"Ensemble\";\"Dollars\";\"81\";\"milliers\";\"3\";\"\";\"1.1\";\"-0,75\";\"E\";\"r\";\"\";\"2\"
";

pub(super) const META: &str = "\u{feff}\"Cube Title\",\"Product Id\",\"CANSIM Id\",URL,\"Cube Notes\",\"Archive Status\",Frequency,\"Start Reference Period\",\"End Reference Period\",\"Total number of dimensions\"
\"A table\",\"99100001\",\"051-0005\",\"https://example.org/en\",1,\"CURRENT - x\",\"Monthly\",\"2001-01-01\",\"2001-02-01\",\"2\",

\"Dimension ID\",\"Dimension name\",\"Dimension Notes\",\"Dimension Definitions\"
\"1\",\"Geography\",,\"\"
\"2\",\"Products\",,\"\"

\"Dimension ID\",\"Member Name\",\"Classification Code\",\"Member ID\",\"Parent Member ID\",Terminated,\"Member Notes\",\"Member Definitions\"
\"1\",\"Canada\",\"[11124]\",\"1\",\"\",\"\",,
\"2\",\"Meat \"fresh\"\",\"[P11]\",\"10\",\"1\",\"t\",1;2,
\"2\",\"All items\",\"\",\"1\",\"0\",\"\",,

\"Survey Code\",\"Survey Name\"
\"3701\",\"A survey\"

\"Note ID\",Note
1,\"A \"note\".\"
";
pub(super) const FRENCH_META: &str = "\u{feff}\"Titre du cube\";\"Identificateur du produit\";\"Identificateur CANSIM\";URL;\"Notes de cube\";\"État de l'archive\";Fréquence;\"Début de la période de référence\";\"Fin de la période de référence\";\"Nombre total de dimensions\"
\"Un tableau\";\"99100001\";\"051-0005\";\"https://example.org/fr\";1;\"ACTIF - x\";\"Mensuelle\";\"2001-01-01\";\"2001-02-01\";\"2\";

\"Numéro d'identification de la dimension\";\"Nom de la dimension\";\"Notes de la dimension\";\"Définitions de la dimension\"
\"1\";\"Géographie\";;\"\"
\"2\";\"Produits\";;\"\"

\"Numéro d'identification de la dimension\";\"Nom du membre\";\"Code sur la classification\";\"Numéro d'identification du membre\";\"Numéro d'identification du membre parent\";Terminé;\"Notes du membre\";\"Définitions du membre\"
\"1\";\"Canada\";\"[11124]\";\"1\";\"\";\"\";;
\"2\";\"Ensemble\";\"\";\"1\";\"0\";\"\";;
\"2\";\"Viande « fraîche »\";\"[P11]\";\"10\";\"1\";\"t\";1;2;

\"Numéro d'identification de la note\";Note
1;\"Une note.\"
";

/// A folder that holds a test's files.
pub(super) struct Files(TempDir);

impl Files {
    pub(super) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(super) fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub(super) fn zip(&self, name: &str, members: &[(&str, &[u8])]) -> PathBuf {
        self.put(name, zipped(members))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

pub(super) fn zipped(members: &[(&str, &[u8])]) -> Vec<u8> {
    zipped_with(members, zip::write::SimpleFileOptions::default())
}

pub(super) fn zipped_with(members: &[(&str, &[u8])], options: zip::write::SimpleFileOptions) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in members {
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

pub(super) fn spec(files: &[&Path]) -> SourceSpec {
    spec_of(PID, files)
}

pub(super) fn spec_of(product: &str, files: &[&Path]) -> SourceSpec {
    SourceSpec {
        product_id: product.parse().unwrap(),
        files: files.iter().map(|path| (*path).to_owned()).collect(),
        metadata: Vec::new(),
        expected_rows: None,
    }
}

/// A row as text, a column each, `_line` last.
pub(super) type Row = Vec<Option<String>>;

pub(super) fn rows_of(batch: &RecordBatch) -> Vec<Row> {
    let text = |column: &dyn Array, row: usize| -> Option<String> {
        if column.is_null(row) {
            return None;
        }
        let any = column.as_any();
        any.downcast_ref::<StringArray>()
            .map(|column| column.value(row).to_owned())
            .or_else(|| any.downcast_ref::<Int16Array>().map(|column| column.value(row).to_string()))
            .or_else(|| any.downcast_ref::<Int64Array>().map(|column| column.value(row).to_string()))
            .or_else(|| any.downcast_ref::<BooleanArray>().map(|column| column.value(row).to_string()))
            .map(Some)
            .unwrap()
    };
    (0..batch.num_rows()).map(|row| batch.columns().iter().map(|column| text(column, row)).collect()).collect()
}

/// Identifies, opens and reads a source.
pub(super) fn read(spec: &SourceSpec) -> Result<(ProductStructure, Vec<Row>), CodrError> {
    let identity = identify(spec)?;
    let source = open(spec, &identity)?;
    let schema = source.table().batch_schema();
    let mut rows = Vec::new();
    let structure = source
        .for_each_batch(&mut |batch| {
            assert_eq!(batch.schema(), schema);
            rows.extend(rows_of(&batch));
            Ok::<(), Infallible>(())
        })
        .map_err(|fault| match fault {
            ReadError::Source(fault) => fault,
            ReadError::Receiver(never) => match never {},
        })?;
    assert_eq!(structure.observations, rows.len() as u64);
    Ok((structure, rows))
}

/// Reads rows and metadata given as text.
pub(super) fn read_text(rows: &str, metadata: Option<&str>) -> Result<(ProductStructure, Vec<Row>), CodrError> {
    let files = Files::new();
    let path = files.put(&format!("{PID}.csv"), rows);
    if let Some(metadata) = metadata {
        files.put(&format!("{PID}_MetaData.csv"), metadata);
    }
    read(&spec(&[&path]))
}

pub(super) fn column(structure: &ProductStructure, rows: &[Row], name: &str) -> Vec<Option<String>> {
    let at = structure.table.columns.iter().position(|column| column.name == name).unwrap();
    rows.iter().map(|row| row[at].clone()).collect()
}

pub(super) fn codelist<'a>(structure: &'a ProductStructure, id: &str) -> &'a catalog_rules::sdmx::model::Codelist {
    let lists = structure.artefacts.iter().filter_map(|artefact| {
        let Artefact::Codelist(list) = artefact else { return None };
        Some(list)
    });
    lists.into_iter().find(|list| list.common.id == id).unwrap()
}

pub(super) fn without_lines(mut rows: Vec<Row>) -> Vec<Row> {
    for row in &mut rows {
        row.pop();
    }
    rows
}

pub(super) fn kinds(structure: &ProductStructure) -> Vec<FindingKind> {
    structure.findings.iter().map(|finding| finding.kind).collect()
}
