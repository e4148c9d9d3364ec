use engine_rules::failure::{ActivityError as _, Disposition};

use super::*;

/// Refuses rows and metadata given as text; the refusal is final, and says what to do.
fn refused(rows: &str, metadata: Option<&str>) -> CodrError {
    told(read_text(rows, metadata).unwrap_err())
}

fn told(fault: CodrError) -> CodrError {
    assert_eq!(fault.disposition(), Disposition::Terminal, "{fault}");
    let failure = fault.to_failure();
    assert!(failure.code.starts_with("codr."), "{failure}");
    assert!(failure.hint.is_some_and(|hint| !hint.is_empty()));
    let says = ["expected", "recorded", "holds no", "UTF-8", "zip"];
    assert!(says.iter().any(|word| failure.message.contains(word)), "{fault}");
    fault
}

/// The rows with one text of the second row, at line 3, replaced.
fn changed(from: &str, to: &str) -> String {
    let (first, rest) = ROWS.split_once('\n').unwrap();
    let (second, rest) = rest.split_once('\n').unwrap();
    assert!(second.contains(from), "{from}");
    format!("{HEADER}{first}\n{}\n{rest}", second.replacen(from, to, 1))
}

#[test]
fn a_bad_row_is_refused_with_its_line() {
    let table = [
        ("\"1.10\"", "\"\"", "codr.missing_coordinate"),
        ("\"1.10\"", "\"1\"", "codr.coordinate_parts"),
        ("\"1.10\"", "\"1.10.1\"", "codr.coordinate_parts"),
        ("\"1.10\"", "\"1.\"", "codr.bad_coordinate"),
        ("\"1.10\"", "\"1.010\"", "codr.bad_coordinate"),
        ("\"1.10\"", "\"1.x\"", "codr.bad_coordinate"),
        ("\"1.10\"", "\"0.10\"", "codr.bad_coordinate"),
        ("\"1.10\"", "\"1.4294967297\"", "codr.bad_coordinate"),
        ("\"1.10\"", "\"1.11\"", "codr.unknown_member"),
        ("\"\",\"..\"", "\"1e5\",\"\"", "codr.bad_value"),
        ("\"\",\"..\"", "\"1,234\",\"\"", "codr.bad_value"),
        ("\"\",\"..\"", "\"1 234\",\"\"", "codr.bad_value"),
        ("\"..\"", "\"??\"", "codr.unknown_status"),
        ("\"..\"", "\"A,B\"", "codr.unknown_status"),
        ("\"2001-01\"", "\"2001-13\"", "codr.bad_period"),
        ("\"2001-01\"", "\"\"", "codr.bad_period"),
        ("\"249\"", "\"\"", "codr.bad_cell"),
        ("\"249\"", "\"P\"", "codr.bad_cell"),
        ("\"0\"", "\"10\"", "codr.bad_cell"),
        ("\"v10\"", "\"10\"", "codr.bad_cell"),
        ("\"t\"", "\"yes\"", "codr.bad_cell"),
        ("\"t\",\"2\"", "\"t\",\"two\"", "codr.bad_cell"),
        ("\"t\",\"2\"", "\"t\"", "codr.cell_count"),
        ("\"t\",\"2\"", "\"t\",\"2\",\"\"", "codr.cell_count"),
    ];
    for (from, to, code) in table {
        let fault = refused(&changed(from, to), Some(META));
        assert_eq!(fault.code(), code, "{to}: {fault}");
        assert!(fault.to_string().contains("99100001.csv, line 3: "), "{to}: {fault}");
    }
}

#[test]
fn an_unknown_member_is_named_with_its_dimension_and_range() {
    let fault = refused(&changed("\"1.10\"", "\"1.11\""), Some(META));
    let CodrError::UnknownMember { coordinate, position, dimension, member, members, lowest, highest, .. } = fault
    else {
        panic!("{fault}")
    };
    assert_eq!((coordinate.as_str(), position, dimension.as_str()), ("1.11", 2, "Products"));
    assert_eq!((member, members, lowest, highest), (11, 2, 1, 10));
}

#[test]
fn a_french_file_has_its_own_point() {
    let rows = format!("{FRENCH_HEADER}{}", FRENCH_ROWS.replacen("12,50", "12.50", 1));
    assert_eq!(refused(&rows, None).code(), "codr.bad_value");
    let rows = format!("{FRENCH_HEADER}{}", FRENCH_ROWS.replacen("12,50", "1\u{a0}212,50", 1));
    assert_eq!(refused(&rows, None).code(), "codr.bad_value");
}

#[test]
fn values_wider_than_a_column_are_refused() {
    let wide = changed("\"\",\"..\"", &format!("\"{}.1\",\"\"", "9".repeat(37)));
    let CodrError::ValueTooWide { line, digits, .. } = refused(&wide, Some(META)) else { panic!() };
    assert_eq!((line, digits), (3, 39));
    let fits = changed("\"\",\"..\"", &format!("\"{}.1\",\"\"", "9".repeat(36)));
    let (structure, _) = read_text(&fits, Some(META)).unwrap();
    assert_eq!(structure.table.columns[3].sql_type, SqlType::Decimal { precision: 38, scale: 2 });
}

#[test]
fn files_without_rows_or_text_are_refused() {
    assert_eq!(refused("", None).code(), "codr.empty_file");
    assert_eq!(refused(HEADER, Some(META)).code(), "codr.no_rows");
    assert_eq!(refused(&format!("{HEADER}\n\n"), None).code(), "codr.no_rows");
    let files = Files::new();
    let mut bytes = format!("{HEADER}{ROWS}").into_bytes();
    let at = bytes.len() - 3;
    bytes[at] = 0xE9;
    let path = files.put("99100001.csv", &bytes);
    let fault = told(read(&spec(&[&path])).unwrap_err());
    assert!(matches!(fault, CodrError::NotUtf8 { line: 4, .. }), "{fault}");
    let utf16: Vec<u8> = HEADER.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let path = files.put("99100001.csv", [b"\xFF\xFE".as_slice(), &utf16].concat());
    assert_eq!(told(read(&spec(&[&path])).unwrap_err()).code(), "codr.not_utf8");
    let path = files.put("99100001.csv", format!("{HEADER}{ROWS}"));
    files.put("99100001_MetaData.csv", b"\"Cube Title\"\n\n\xE9".as_slice());
    assert!(matches!(read(&spec(&[&path])), Err(CodrError::NotUtf8 { line: 3, .. })));
}

#[test]
fn the_metadata_and_a_delta_are_told_from_a_table() {
    let files = Files::new();
    let delta = "productId,coordinate,vectorId,refPer,refPer2,symbolCode,statusCode,securityLevelCode,value,releaseTime,scalarFactorCode,decimals,frequencyCode\n99100001,1.1.0.0.0.0.0.0.0.0,1,2020,,0,0,0,1,2020-01-01T08:30,0,0,12\n";
    for (text, word) in [(META, "--metadata"), (delta, "delta")] {
        let path = files.put("99100001.csv", text);
        let fault = told(read(&spec(&[&path])).unwrap_err());
        assert_eq!(fault.code(), "codr.other_kind");
        assert!(fault.hint().unwrap().contains(word), "{fault}");
    }
}

#[test]
fn a_missing_permission_is_not_waited_for() {
    let fault = |kind: std::io::ErrorKind| CodrError::Io { file: "x".into(), doing: "opening it", source: kind.into() };
    assert_eq!(fault(std::io::ErrorKind::PermissionDenied).disposition(), Disposition::Terminal);
    assert_eq!(fault(std::io::ErrorKind::TimedOut).disposition(), Disposition::Retry);
}

#[test]
fn a_zero_byte_is_refused_with_its_line() {
    let files = Files::new();
    let mut bytes = format!("{HEADER}{ROWS}").into_bytes();
    let at = bytes.len() - 3;
    bytes[at] = 0;
    let path = files.put("99100001.csv", &bytes);
    let fault = told(read(&spec(&[&path])).unwrap_err());
    assert!(matches!(fault, CodrError::ZeroByte { line: 4, .. }), "{fault}");
    let path = files.put("99100001.csv", [0; 600]);
    assert!(matches!(read(&spec(&[&path])), Err(CodrError::ZeroByte { line: 1, .. })));
    let path = files.put("99100001.csv", format!("{HEADER}{ROWS}"));
    files.put("99100001_MetaData.csv", META.replacen("Products", "Pro\0ducts", 1));
    assert_eq!(told(read(&spec(&[&path])).unwrap_err()).code(), "codr.zero_byte");
}

/// What is no regular file has no end, no second reading or no bytes at all: it is refused before it is opened.
#[cfg(unix)]
#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let files = Files::new();
    let pipe = files.path().join("pipe.csv");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let socket = files.path().join("socket.csv");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    files.put("folder/99100001.csv/x", "");
    let folder = files.path().join("folder");
    for (path, what) in
        [(pipe.as_path(), "a pipe"), (&socket, "a socket"), (Path::new("/dev/zero"), "a device"), (&folder, "a folder")]
    {
        let fault = told(read(&spec(&[path])).unwrap_err());
        assert!(matches!(fault, CodrError::NotAFile { found, .. } if found == what), "{fault}");
        let rows = files.put("99100001.csv", format!("{HEADER}{ROWS}"));
        let with = SourceSpec { metadata: vec![path.to_owned()], ..spec(&[&rows]) };
        assert_eq!(told(read(&with).unwrap_err()).code(), "codr.not_a_file");
    }
}

/// `archive` with a field of each of its members' headers changed: the flags, or the method.
fn repacked(archive: &[u8], flags: u8, method: u8) -> Vec<u8> {
    let mut bytes = archive.to_vec();
    for at in 0..bytes.len() - 11 {
        // A header's flags and method stand two bytes later in the central directory than before a member.
        let fields = match &archive[at..at + 4] {
            b"PK\x03\x04" => at + 6,
            b"PK\x01\x02" => at + 8,
            _ => continue,
        };
        bytes[fields] |= flags;
        bytes[fields + 2] = method;
    }
    bytes
}

#[test]
fn archives_with_a_password_or_another_packing_are_told_apart_from_broken_ones() {
    let files = Files::new();
    let csv = format!("{HEADER}{ROWS}");
    let good: [(&str, &[u8]); 2] = [("99100001.csv", csv.as_bytes()), ("99100001_MetaData.csv", META.as_bytes())];
    let whole = zipped(&good);
    let path = files.put("same.zip", repacked(&whole, 0, 8));
    read(&spec(&[&path])).unwrap();
    for (name, flags, method) in
        [("password.zip", 1, 8), ("bzip2.zip", 0, 12), ("lzma.zip", 0, 14), ("zstd.zip", 0, 93)]
    {
        let path = files.put(name, repacked(&whole, flags, method));
        assert_eq!(told(read(&spec(&[&path])).unwrap_err()).code(), "codr.archive_packing", "{name}");
    }
}

#[test]
fn another_product_is_refused_where_it_can_be_told() {
    let other = META.replace("\"99100001\"", "\"99100002\"");
    let fault = refused(&format!("{HEADER}{ROWS}"), Some(&other));
    assert!(matches!(&fault, CodrError::OtherProduct { line: 2, found, .. } if found == "99100002"), "{fault}");
    let files = Files::new();
    for name in ["99100002.csv", "99100002-eng_v3.csv", "9910000201-eng.csv"] {
        let path = files.put(name, format!("{HEADER}{ROWS}"));
        assert_eq!(told(read(&spec(&[&path])).unwrap_err()).code(), "codr.other_product", "{name}");
    }
    let names = [("99100002.csv", HEADER.as_bytes()), ("99100002_MetaData.csv", META.as_bytes())];
    let path = files.zip("x.zip", &names);
    assert_eq!(told(read(&spec(&[&path])).unwrap_err()).code(), "codr.other_product");
    let names = META.replace("\"Products\"", "\"Industries\"");
    assert_eq!(refused(&format!("{HEADER}{ROWS}"), Some(&names)).code(), "codr.dimension_name");
    let more = META.replace("\"2001-02-01\",\"2\"", "\"2001-02-01\",\"3\"");
    assert_eq!(refused(&format!("{HEADER}{ROWS}"), Some(&more)).code(), "codr.dimension_count");
}

#[test]
fn archives_that_are_no_full_table_are_refused() {
    let files = Files::new();
    let csv = format!("{HEADER}{ROWS}");
    let good: [(&str, &[u8]); 2] = [("99100001.csv", csv.as_bytes()), ("99100001_MetaData.csv", META.as_bytes())];
    let whole = zipped(&good);
    for (name, bytes) in [
        ("cut.zip", &whole[..whole.len() - 30]),
        ("half.zip", &whole[..whole.len() / 2]),
        ("html.zip", b"<html>busy</html>".as_slice()),
        ("empty.zip", b"".as_slice()),
    ] {
        let path = files.put(name, bytes);
        assert_eq!(told(read(&spec(&[&path])).unwrap_err()).code(), "codr.bad_archive", "{name}");
    }
    // A digit that was changed in the archive: the checksum tells, at the end of the member.
    let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut damaged = zipped_with(&good, stored);
    let at = damaged.windows(5).position(|bytes| bytes == b"12.50").unwrap();
    damaged[at] = b'7';
    let path = files.put("damaged.zip", damaged);
    assert_eq!(told(read(&spec(&[&path])).unwrap_err()).code(), "codr.bad_archive");
    let cases: [&[(&str, &[u8])]; 5] = [
        &[],
        &good[..1],
        &[good[0], good[1], ("readme.txt", b"x")],
        &[("data/99100001.csv", csv.as_bytes()), good[1]],
        &[("../99100001.csv", csv.as_bytes()), good[1]],
    ];
    for members in cases {
        let path = files.zip("members.zip", members);
        assert_eq!(told(read(&spec(&[&path])).unwrap_err()).code(), "codr.archive_members", "{members:?}");
    }
}

#[test]
fn a_source_that_changed_is_refused_with_both_digests() {
    let files = Files::new();
    let path = files.put("99100001.csv", format!("{HEADER}{ROWS}"));
    let spec = spec(&[&path]);
    let identity = identify(&spec).unwrap();
    assert_eq!(identity.files.len(), 1);
    let recorded: SourceIdentity = serde_json::from_str(&serde_json::to_string(&identity).unwrap()).unwrap();
    assert_eq!(recorded, identity);
    files.put("99100001.csv", format!("{HEADER}{}", ROWS.replace("12.50", "12.51")));
    let Err(fault) = open(&spec, &identity) else { panic!("a changed source was opened") };
    let fault = told(fault);
    assert_eq!(fault.code(), "codr.source_changed");
    assert!(fault.to_string().contains(identity.files[0].sha256.as_str()), "{fault}");
    assert!(fault.hint().unwrap().contains("publish again"));
    // A metadata CSV that appears beside the data changes the source too.
    files.put("99100001.csv", format!("{HEADER}{ROWS}"));
    files.put("99100001_MetaData.csv", META);
    assert!(matches!(open(&spec, &identity), Err(CodrError::SourceChanged { .. })));
    std::fs::remove_file(files.path().join("99100001_MetaData.csv")).unwrap();
    assert!(open(&spec, &identity).is_ok());
}

#[test]
fn a_source_that_is_written_to_while_it_is_read_is_refused() {
    let files = Files::new();
    let path = files.put("99100001.csv", format!("{HEADER}{ROWS}"));
    let spec = spec(&[&path]);
    let source = open(&spec, &identify(&spec).unwrap()).unwrap();
    let result = source.for_each_batch(&mut |_| {
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"\n").unwrap();
        Ok::<(), Infallible>(())
    });
    assert!(matches!(result, Err(ReadError::Source(CodrError::SourceChanged { .. }))));
}

#[test]
fn specifications_that_lead_nowhere_are_refused() {
    let files = Files::new();
    let path = files.put("99100001.csv", format!("{HEADER}{ROWS}"));
    assert_eq!(told(read(&spec(&[])).unwrap_err()).code(), "codr.file_count");
    assert_eq!(told(read(&spec(&[&path, &path, &path])).unwrap_err()).code(), "codr.file_count");
    assert_eq!(told(read(&spec(&[&path, &path])).unwrap_err()).code(), "codr.same_language");
    assert_eq!(told(read(&spec(&[&files.path().join("no.csv")])).unwrap_err()).code(), "codr.not_found");
    std::fs::create_dir(files.path().join("empty")).unwrap();
    assert_eq!(told(read(&spec(&[&files.path().join("empty")])).unwrap_err()).code(), "codr.no_data_file");
    let mut two = spec(&[&path]);
    two.metadata = vec![files.put("a.csv", META), files.put("b.csv", META)];
    assert_eq!(told(read(&two).unwrap_err()).code(), "codr.same_language");
    for bad in ["9910/0001", "..", "../99100001"] {
        assert!(bad.parse::<ProductId>().is_err());
    }
}

#[test]
fn the_row_count_is_compared_with_the_description() {
    let files = Files::new();
    let path = files.put("99100001.csv", format!("{HEADER}{ROWS}"));
    let mut spec = spec(&[&path]);
    spec.expected_rows = Some(3);
    assert!(read(&spec).is_ok());
    spec.expected_rows = Some(4);
    assert!(matches!(told(read(&spec).unwrap_err()), CodrError::RowCount { found: 3, expected: 4, .. }));
}

#[test]
fn two_languages_of_different_releases_are_refused() {
    let files = Files::new();
    let english = files.put("en/99100001.csv", format!("{HEADER}{ROWS}"));
    let french = |rows: &str| files.put("fr/99100001.csv", format!("{FRENCH_HEADER}{rows}"));
    let two_rows: String = FRENCH_ROWS.lines().take(2).map(|line| format!("{line}\n")).collect();
    let path = french(&two_rows);
    assert_eq!(told(read(&spec(&[&english, &path])).unwrap_err()).code(), "codr.language_rows");
    let path = french(&FRENCH_ROWS.replace("\"1.10\"", "\"1.11\""));
    let CodrError::LanguagesDisagree { member, position, .. } = told(read(&spec(&[&english, &path])).unwrap_err())
    else {
        panic!()
    };
    assert_eq!((position, member), (2, 10));
    let path = french(&FRENCH_ROWS.replace("\"81\"", "\"82\""));
    assert_eq!(told(read(&spec(&[&english, &path])).unwrap_err()).code(), "codr.language_units");
    files.put("en/99100001_MetaData.csv", META);
    files.put("fr/99100001_MetaData.csv", FRENCH_META.replace("\"10\";\"1\"", "\"10\";\"\""));
    let path = french(FRENCH_ROWS);
    assert_eq!(told(read(&spec(&[&english, &path])).unwrap_err()).code(), "codr.languages_disagree");
}

#[test]
fn a_duplicate_names_both_lines() {
    let fault = told(CodrError::DuplicateObservation {
        file: "a.csv".to_owned(),
        time_period: "2001-01".to_owned(),
        coordinate: "1.1".to_owned(),
        first_line: 2,
        second_line: 9,
    });
    assert!(fault.to_string().contains("line 9") && fault.to_string().contains("line 2"), "{fault}");
}
