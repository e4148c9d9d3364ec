use std::fs;

use super::testing::RecordingFs;
use super::*;

#[test]
fn an_exclusive_create_is_durable_before_it_is_visible() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("000000000001.json");
    let recording = RecordingFs::new();
    assert_eq!(create_exclusive(&recording, &path, b"root").unwrap(), Create::Won);
    let operations: Vec<_> = recording.calls().iter().map(|call| call.operation).collect();
    assert_eq!(operations, ["write_new", "fsync_file", "rename_new", "fsync_dir"]);
    let calls = recording.calls();
    assert_eq!(calls[0].path, calls[1].path, "the file that is synced is the one that was written");
    assert_eq!(calls[1].path, calls[2].path, "the file that is renamed is the one that was synced");
    assert_eq!(calls[2].to.as_deref(), path.to_str());
    assert_eq!(calls[3].path, dir.path().display().to_string());
    assert_eq!(fs::read(&path).unwrap(), b"root");
}

#[test]
fn a_second_create_changes_nothing_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    assert_eq!(create_exclusive(&RealFs, &path, b"first").unwrap(), Create::Won);
    assert_eq!(create_exclusive(&RealFs, &path, b"second").unwrap(), Create::Exists);
    assert_eq!(fs::read(&path).unwrap(), b"first");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "a temporary file was left");
}

#[test]
fn of_many_racing_creates_exactly_one_wins() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let won: Vec<usize> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|n| {
                let path = &path;
                scope.spawn(move || (n, create_exclusive(&RealFs, path, n.to_string().as_bytes()).unwrap()))
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).filter(|(_, c)| *c == Create::Won).map(|(n, _)| n).collect()
    });
    assert_eq!(won.len(), 1);
    assert_eq!(fs::read(&path).unwrap(), won[0].to_string().as_bytes());
}

#[test]
fn a_failure_at_any_call_leaves_the_old_document_or_the_new_one() {
    for replaces in [false, true] {
        for n in 0..4 {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("x");
            if replaces {
                fs::write(&path, b"old").unwrap();
            }
            let failing = RecordingFs::failing_at(n);
            let failed = if replaces {
                replace(&failing, &path, b"new").is_err()
            } else {
                create_exclusive(&failing, &path, b"new").is_err()
            };
            assert!(failed, "call {n} did not fail");
            match fs::read(&path).ok().as_deref() {
                None => assert!(!replaces && n < 3),
                Some(b"old") => assert!(replaces && n < 3),
                Some(b"new") => assert_eq!(n, 3),
                Some(other) => panic!("half a document: {other:?}"),
            }
            let others = fs::read_dir(dir.path()).unwrap().filter(|e| e.as_ref().unwrap().path() != path).count();
            assert_eq!(others, 0, "call {n} left a temporary file");
        }
    }
}

#[test]
fn temporary_files_of_a_crash_are_swept_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(format!("{TEMPORARY_PREFIX}1-1")), b"half").unwrap();
    fs::write(dir.path().join("manifest.json"), b"whole").unwrap();
    sweep_temporaries(&RealFs, dir.path()).unwrap();
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["manifest.json"]);
}

#[test]
fn of_several_creates_each_is_on_the_disk_before_it_is_visible_and_their_folder_is_synced_once() {
    let dir = tempfile::tempdir().unwrap();
    let recording = RecordingFs::new();
    let files: Vec<_> = (0..20).map(|n| (dir.path().join(n.to_string()), b"leaf".as_slice())).collect();
    assert_eq!(create_exclusive_all(&recording, &files).unwrap(), vec![Create::Won; 20]);
    let calls = recording.calls();
    for (path, _) in &files {
        let renamed = calls.iter().position(|it| it.to.as_deref() == path.to_str()).unwrap();
        let synced = calls.iter().position(|it| it.operation == "fsync_file" && it.path == calls[renamed].path);
        assert!(synced.unwrap() < renamed, "{} was visible before it was on the disk", path.display());
    }
    let folders: Vec<_> = calls.iter().enumerate().filter(|(_, it)| it.operation == "fsync_dir").collect();
    assert_eq!((folders.len(), folders[0].0), (1, calls.len() - 1));
}

#[test]
fn several_creates_that_fail_at_any_call_leave_whole_files_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let mut n = 0;
    loop {
        let folder = dir.path().join(n.to_string());
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("1"), b"theirs").unwrap();
        let files: Vec<_> = (0..3).map(|n| (folder.join(n.to_string()), b"ours".as_slice())).collect();
        let outcome = create_exclusive_all(&RecordingFs::failing_at(n), &files);
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let expected = if path.ends_with("1") { b"theirs".as_slice() } else { b"ours" };
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            // The one removal that failed was tried again.
            assert!(!name.starts_with(TEMPORARY_PREFIX), "call {n} left {name}");
            assert_eq!(fs::read(&path).unwrap(), expected, "call {n}: {name}");
        }
        if let Ok(created) = outcome {
            assert_eq!(created, [Create::Won, Create::Exists, Create::Won]);
            assert!(n > 9, "only {n} calls were made");
            return;
        }
        n += 1;
    }
}
