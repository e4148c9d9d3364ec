//! The only place that prints. Text for a person, or one JSON document.

use std::borrow::Cow;
use std::io::{IsTerminal as _, Write as _};
use std::sync::OnceLock;

use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};
use serde_json::{Value, json};

use crate::exit::Ended;

/// Where and how to print.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    json: bool,
    terminal: bool,
    colour: bool,
    error_colour: bool,
}

/// How wide free text is at least, in characters.
const FREE_TEXT_WIDTH: u16 = 30;

/// The first failure to print.
static UNWRITTEN: OnceLock<String> = OnceLock::new();

/// The columns of tables whose text may go on in a further line. An id or an instant that is broken over two lines
/// cannot be copied.
const FREE_TEXT: [&str; 6] = ["WHY", "CHANGES", "REASON", "REFUSED", "FOUND", "EXPECTED"];

impl Output {
    /// An output for this process: colour and a live display on a terminal only, and no colour under `NO_COLOR`.
    #[must_use]
    pub fn new(json: bool) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        // Each stream for itself: one may be a terminal while the other goes into a file.
        let error_colour = wanted && std::io::stderr().is_terminal();
        Self { json, terminal, colour: wanted && terminal, error_colour }
    }

    /// The same without text for a person, for a command that streams.
    #[must_use]
    pub fn quiet(self) -> Self {
        Self { json: true, ..self }
    }

    /// Whether standard error may be coloured; a log in a file may not.
    #[must_use]
    pub fn has_error_colour(self) -> bool {
        self.error_colour
    }

    /// Whether one JSON document is asked for.
    #[must_use]
    pub fn is_json(self) -> bool {
        self.json
    }

    /// Whether a person looks at a terminal.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        self.terminal && !self.json
    }

    /// Prints a line of text; nothing when JSON was asked for.
    pub fn line(self, text: impl AsRef<str>) {
        if !self.json {
            self.raw(text.as_ref());
        }
    }

    /// Prints a table; nothing when JSON was asked for.
    pub fn table<const N: usize>(self, header: [&str; N], rows: Vec<[String; N]>) {
        if self.json {
            return;
        }
        for line in laid_out(header, rows, self.terminal.then_some(None)).lines() {
            self.raw(line.trim_end());
        }
    }

    /// Prints the document of a command, `{"schema": "jobctl.<command>/1", …}`; nothing when text was asked for.
    pub fn document(self, command: &str, body: Value) {
        if self.json {
            self.raw(&serde_json::to_string_pretty(&with_schema(command, body)).unwrap_or_default());
        }
    }

    /// Prints one object of a stream, in one line, with the same key.
    pub fn stream(self, command: &str, body: Value) {
        self.raw(&with_schema(command, body).to_string());
    }

    /// Says on standard error what ended the command; with JSON, as a document on standard output as well.
    pub fn ended(self, ended: &Ended) {
        let failure = &ended.failure;
        if self.json {
            self.document("error", json!({ "failure": failure, "exit_code": ended.exit as u8 }));
            return;
        }
        let mut text = format!("{} {}", styled(self.error_colour, "error:", anstyle::AnsiColor::Red), failure.message);
        if failure.code != "usage" {
            text.push_str(&format!("\n  code: {}", failure.code));
        }
        if let Some(hint) = &failure.hint {
            text.push_str(&format!("\n  hint: {hint}"));
        }
        let _ = writeln!(std::io::stderr().lock(), "{}", harmless(&text));
    }

    /// `text` in red, where there is colour.
    #[must_use]
    pub fn red(self, text: &str) -> String {
        styled(self.colour, text, anstyle::AnsiColor::Red)
    }

    /// `text` in green, where there is colour.
    #[must_use]
    pub fn green(self, text: &str) -> String {
        styled(self.colour, text, anstyle::AnsiColor::Green)
    }

    /// Prints text as it is, but for what a terminal would obey ([`harmless`]). A reader that went away (`| head`) is no
    /// error; another failure is kept for [`Output::failure`].
    pub fn raw(self, text: &str) {
        let mut stdout = std::io::stdout().lock();
        match writeln!(stdout, "{}", harmless(text)).and_then(|()| stdout.flush()) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
            Err(error) => {
                let _ = UNWRITTEN.set(error.to_string());
            }
        }
    }

    /// What kept the output from being written, if anything did: what was printed is then not whole.
    #[must_use]
    pub fn failure() -> Option<&'static str> {
        UNWRITTEN.get().map(String::as_str)
    }
}

/// `text` with the characters that a terminal obeys written out (`\u{1b}`): a reason, a label or a file's name is
/// somebody else's text, and may clear the screen or turn the rest of a line round. Line ends, tabs and colours stay.
#[must_use]
pub fn harmless(text: &str) -> Cow<'_, str> {
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_obeyed = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || turns(c);
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let colour = colour_length(rest);
        if colour > 0 {
            shown.push_str(&rest[..colour]);
            rest = &rest[colour..];
            continue;
        }
        if is_obeyed(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
        rest = &rest[c.len_utf8()..];
    }
    Cow::Owned(shown)
}

/// How many bytes of `text` begin it with the sequence of a colour, `ESC [ 31 m`; 0 for anything else.
fn colour_length(text: &str) -> usize {
    let Some(inner) = text.strip_prefix("\u{1b}[") else { return 0 };
    let end = inner.find(|c: char| !c.is_ascii_digit() && c != ';');
    end.filter(|end| inner[*end..].starts_with('m')).map_or(0, |end| end + 3)
}

fn with_schema(command: &str, body: Value) -> Value {
    let mut document = serde_json::Map::new();
    document.insert("schema".to_owned(), json!(format!("jobctl.{command}/1")));
    match body {
        Value::Object(fields) => document.extend(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            document.insert("value".to_owned(), body);
        }
    }
    Value::Object(document)
}

fn styled(is_coloured: bool, text: &str, colour: anstyle::AnsiColor) -> String {
    if is_coloured {
        let style = anstyle::Style::new().fg_color(Some(colour.into()));
        format!("{style}{text}{style:#}")
    } else {
        text.to_owned()
    }
}

/// A table as text. Within a width, that of the terminal or the one given, free text goes on in a further line, and
/// nothing else does.
fn laid_out<const N: usize>(header: [&str; N], rows: Vec<[String; N]>, within: Option<Option<u16>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    if let Some(width) = within {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        if let Some(width) = width {
            table.set_width(width);
        }
    }
    for row in rows {
        table.add_row(row);
    }
    for (column, name) in table.column_iter_mut().zip(header) {
        // Free text in a column of a few characters reads as none: rather a line that is too long.
        column.set_constraint(match FREE_TEXT.contains(&name) {
            true => ColumnConstraint::LowerBoundary(Width::Fixed(FREE_TEXT_WIDTH)),
            false => ColumnConstraint::ContentWidth,
        });
    }
    table.to_string()
}

/// An instant for a person: the local time, to the second. Documents have it in full.
#[must_use]
pub fn moment(at_ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(at_ms) {
        Ok(at) => at.to_zoned_datetime(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => at_ms.to_string(),
    }
}

/// `1234567` as `1,234,567`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A size for a person: `14.9 MB`, in powers of ten.
#[must_use]
pub fn size(bytes: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
    let value = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", value / 1e6),
        _ => format!("{:.1} GB", value / 1e9),
    }
}

/// A duration for a person: `0.1 s`, `2 min 05 s`.
#[must_use]
pub fn duration(us: u64) -> String {
    let seconds = us / 1_000_000;
    if seconds < 100 {
        format!("{}.{} s", us / 1_000_000, us % 1_000_000 / 100_000)
    } else {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}

/// An id as a table shows it: its beginning and its end. Every command takes this form.
#[must_use]
pub fn short(id: &str) -> String {
    if id.len() < 14 || !id.is_ascii() { id.to_owned() } else { format!("{}…{}", &id[..4], &id[id.len() - 6..]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_table_breaks_free_text_and_nothing_else() {
        let id = "01a18e76-2bad-7480-abfe-2ba8a6889a45";
        let row = || [id.to_owned(), "2026-11-30 08:30:00".to_owned(), "several words that do not fit here".to_owned()];
        for width in [20, 60, 80, 200] {
            let text = laid_out(["EDITION", "AT", "WHY"], vec![row()], Some(Some(width)));
            assert!(text.contains(id) && text.contains("2026-11-30 08:30:00"), "{width}:\n{text}");
        }
        assert!(laid_out(["EDITION", "AT", "WHY"], vec![row()], Some(Some(80))).lines().count() > 2);
        assert_eq!(laid_out(["EDITION", "AT", "WHY"], vec![row()], None).lines().count(), 2);
    }

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        assert_eq!(harmless("plain\n\ttext é"), "plain\n\ttext é");
        assert_eq!(harmless("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(harmless("\u{1b}]0;title\u{7}"), "\\u{1b}]0;title\\u{7}");
        assert_eq!(harmless("over\rwritten\u{9b}2J"), "over\\u{d}written\\u{9b}2J");
        assert_eq!(harmless("turned \u{202e}round"), "turned \\u{202e}round");
        let red = styled(true, "red", anstyle::AnsiColor::Red);
        assert_eq!(harmless(&red), red);
        assert_eq!(harmless("\u{1b}[31"), "\\u{1b}[31");
    }

    #[test]
    fn numbers_sizes_durations_and_ids_read_well() {
        assert_eq!(grouped(5_475_519), "5,475,519");
        assert_eq!(grouped(12), "12");
        assert_eq!(grouped(123), "123");
        assert_eq!(size(999), "999 B");
        assert_eq!(size(14_900_000), "14.9 MB");
        assert_eq!(duration(149_999), "0.1 s");
        assert_eq!(duration(125_000_000), "2 min 05 s");
        assert_eq!(short("01a18e76-2bad-7480-abfe-2ba8a6889a45"), "01a1…889a45");
    }
}
