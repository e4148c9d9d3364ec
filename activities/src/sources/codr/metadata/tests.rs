use super::*;
use crate::shared::shared;
use crate::sources::codr::finding::{FindingKind, Findings};

const CURRENT: &str = "\u{feff}\"Cube Title\",\"Product Id\",\"CANSIM Id\",URL,\"Cube Notes\",\"Archive Status\",Frequency,\"Start Reference Period\",\"End Reference Period\",\"Total number of dimensions\"
\"A title, with a comma\",\"99100001\",\"051-0005\",\"https://example.org/\",1;2,\"ARCHIVED -  no longer updated\",\"Monthly\",\"1946-01-01\",\"2025-10-01\",\"2\",

\"Dimension ID\",\"Dimension name\",\"Dimension Notes\",\"Dimension Definitions\"
\"1\",\"Geography\",,\"\"
\"2\",\"Products\",1;2,\"what is sold\"

\"Dimension ID\",\"Member Name\",\"Classification Code\",\"Member ID\",\"Parent Member ID\",Terminated,\"Member Notes\",\"Member Definitions\"
\"1\",\"Canada\",\"[11124]\",\"1\",\"\",\"\",,
\"2\",\"Meat \"fresh\" or not\",\"[P11]\",\"3\",\"20\",\"t\",4,5,6,
\"2\",\"All items\",\"\",\"20\",\"0\",\"\",,\"a definition\"
\"2\",\"Ends in a break
\",\"\",\"7\",\"20\",\"\",5;6,

Symbol Legend
Description,Symbol
\"not available for a specific reference period\",\"..\",
\"terminated\",\"t\",

\"Survey Code\",\"Survey Name\"
\"3701\",\"A survey\"

\"Subject Code\",\"Subject Name\"
\"14\",\"Labour\"

\"Note ID\",Note
1,\"A numeric value \"0\" is <a href=\"x\">here</a>.

3,5 million of “them”
2\"
2,\"Doubled \"\"quotes\"\" here\"
4,Word

\"Correction ID\",\"Correction Date\",\"Correction Note\"
7,2024-05-06,\"Was \"wrong\".
Two lines.\"
";

#[test]
fn the_current_dialect_with_its_traps() {
    for text in [CURRENT.to_owned(), CURRENT.replace('\n', "\r\n")] {
        let (metadata, findings) = parse_text(&text).unwrap();
        assert_eq!(findings, []);
        assert_eq!(metadata.language, Language::English);
        assert_eq!(metadata.cube.title, "A title, with a comma");
        assert_eq!(metadata.cube.product_id, "99100001");
        assert_eq!(metadata.cube.notes, "1;2");
        assert_eq!(metadata.cube.archive_status, "ARCHIVED - no longer updated");
        assert_eq!(metadata.cube.dimensions, Some(2));
        assert_eq!(metadata.dimensions[1].definition, "what is sold");
        let told: Vec<_> = metadata
            .members
            .iter()
            .map(|m| (m.position, m.id, m.parent, m.name.as_str(), m.terminated, m.notes.as_str(), m.line))
            .collect();
        assert_eq!(
            told,
            [
                (1, 1, None, "Canada", false, "", 9),
                (2, 3, Some(20), "Meat \"fresh\" or not", true, "4;5;6", 10),
                (2, 20, None, "All items", false, "", 11),
                (2, 7, Some(20), "Ends in a break", false, "5;6", 12),
            ]
        );
        assert_eq!(metadata.members[1].classification, "P11");
        assert_eq!(metadata.members[2].definition, "a definition");
        assert_eq!(metadata.surveys, [("3701".to_owned(), "A survey".to_owned())]);
        assert_eq!(metadata.subjects, [("14".to_owned(), "Labour".to_owned())]);
        assert_eq!(metadata.notes.len(), 3);
        assert_eq!(metadata.notes[0].1, "A numeric value \"0\" is <a href=\"x\">here</a>.\n\n3,5 million of “them”\n2");
        assert_eq!(metadata.notes[1].1, "Doubled \"quotes\" here");
        assert_eq!(metadata.notes[2], ("4".to_owned(), "Word".to_owned()));
        assert_eq!(
            metadata.corrections,
            [Correction {
                id: "7".to_owned(),
                date: "2024-05-06".to_owned(),
                text: "Was \"wrong\".\nTwo lines.".to_owned()
            }]
        );
        metadata.of_product("99100001").unwrap();
    }
}

#[test]
fn the_older_dialects() {
    let old = "\"Cube Title\",\"Product Id\",\"CANSIM Id\",URL,\"Cube Notes\",\"Archive Status\",Frequency,\"Start Reference Period\",\"End Reference Period\",\"Total number of dimensions\",Universe,\"Variable List\"
Title,99100001,183-0021,\"https://example.org/\",1;6,\"CURRENT - x\",Annual,1999-01-01,2011-01-01,2,,

\"Dimension ID\",\"Dimension name\",\"Dimension Notes\",\"Dimension Correction Notes\",\"Dimension Definitions\"
1,Geography,,,
2,\"Two words\",3,,

\"Dimension ID\",\"Member Name\",\"Classification Code\",\"Member ID\",\"Parent Member ID\",Terminated,\"Member Notes\",\"Member Correction Notes\",\"Member Geo Attribute Keys\",\"Member Definitions\"
1,Canada,[11124],1,,,,,k1,
2,\"It's, a member\",,1,,,1,2,,
2,Other,,2,1,t,,,,

\"Correction ID\",\"Correction Date\",\"Correction Note\"
\"Dimension ID\",\"Member ID\",\"Attribute Key\",Title,Label,\"Long Label\",Value
1,1,k1,Kind,Prov,Province,10

";
    let (metadata, findings) = parse_text(old).unwrap();
    assert_eq!(findings, []);
    assert_eq!(metadata.cube.dimensions, Some(2));
    assert_eq!(metadata.members.len(), 3);
    assert_eq!(metadata.members[1].notes, "1");
    assert_eq!(metadata.members[2].parent, Some(1));
    assert!(metadata.members[2].terminated);
    assert_eq!(metadata.attributes[0].label, "Province");
    assert_eq!((metadata.attributes[0].member, metadata.attributes[0].value.as_str()), (1, "10"));

    let french = "\"Titre du cube\";\"Identificateur du produit\";\"Identificateur CANSIM\";URL;\"Notes de cube\";\"État de l'archive\";Fréquence;\"Début de la période de référence\";\"Fin de la période de référence\";\"Nombre total de dimensions\"
\"Un titre\";\"99100001\";\"\";\"https://example.org/\";1;2;3;\"ACTIF - x\";\"Mensuelle\";\"1956-01-01\";\"2022-02-01\";\"1\";

\"Numéro d'identification de la dimension\";\"Nom de la dimension\";\"Notes de la dimension\";\"Définitions de la dimension\"
\"1\";\"Géographie\";;\"\"

\"Numéro d'identification de la dimension\";\"Nom du membre\";\"Code sur la classification\";\"Numéro d'identification du membre\";\"Numéro d'identification du membre parent\";Terminé;\"Notes du membre\";\"Définitions du membre\"
\"1\";\"Québec\";\"[24]\";\"6\";\"\";\"\";;
";
    let (metadata, findings) = parse_text(french).unwrap();
    assert_eq!(findings, []);
    assert_eq!(metadata.language, Language::French);
    assert_eq!((metadata.cube.notes.as_str(), metadata.cube.frequency.as_str()), ("1;2;3", "Mensuelle"));
    assert_eq!(metadata.members[0].name, "Québec");
}

#[test]
fn what_is_no_metadata_is_refused_with_its_place() {
    assert!(matches!(parse_text(""), Err(CodrError::MetadataBlock { .. })));
    assert!(matches!(parse_text("REF_DATE,GEO\n1,2\n"), Err(CodrError::MetadataBlock { .. })));
    let no_record = CURRENT.lines().next().unwrap();
    assert!(matches!(parse_text(no_record), Err(CodrError::MetadataBlock { .. })));
    let bad = CURRENT.replace("\"[11124]\",\"1\"", "\"[11124]\",\"one\"");
    assert!(matches!(parse_text(&bad), Err(CodrError::MetadataRecord { line: 9, .. })));
    let bad = CURRENT.replace("\"2\",\"Products\"", "\"3\",\"Products\"");
    assert!(matches!(parse_text(&bad), Err(CodrError::MetadataRecord { line: 6, .. })));
    let (metadata, _) = parse_text(CURRENT).unwrap();
    assert!(matches!(metadata.of_product("99100002"), Err(CodrError::OtherProduct { line: 2, .. })));
    let unknown = CURRENT.replace("\"Survey Code\",\"Survey Name\"", "\"Something new\",x");
    let (metadata, findings) = parse_text(&unknown).unwrap();
    assert_eq!(metadata.surveys, []);
    assert_eq!((findings.len(), findings[0].kind), (1, FindingKind::UnknownBlock));
}

#[test]
fn the_real_metadata_files_hold_their_members() {
    let table = [
        ("metadata/17100005_MetaData.csv", "17100005", &[15, 3, 139][..], 8, 0),
        ("metadata/18100004_MetaData_a.csv", "18100004", &[30, 344], 37, 0),
        ("metadata/18100004_MetaData_b.csv", "18100004", &[30, 333], 33, 0),
        ("metadata/36100434_MetaData.csv", "36100434", &[1, 2, 2, 287], 5, 0),
        ("14100287/14100287_MetaData.csv", "14100287", &[11, 9, 3, 9, 4, 3], 20, 0),
        ("17100009/17100009_MetaData.csv", "17100009", &[15], 6, 0),
    ];
    for (path, product, members, notes, corrections) in table {
        let Some(path) = shared(&format!("data/codr/{path}")) else { return };
        let bytes = std::fs::read(&path).unwrap();
        let mut findings = Findings::default();
        let metadata = parse(&"m.csv".into(), &bytes, &mut findings).unwrap();
        assert_eq!(findings.into_list(), []);
        metadata.of_product(product).unwrap();
        let counts: Vec<usize> =
            (1..=members.len()).map(|at| metadata.members.iter().filter(|m| m.position == at).count()).collect();
        assert_eq!(counts, members, "{}", path.display());
        assert_eq!(metadata.notes.len(), notes, "{}", path.display());
        assert_eq!(metadata.corrections.len(), corrections, "{}", path.display());
        assert_eq!(metadata.dimensions.len(), members.len());
    }
}
