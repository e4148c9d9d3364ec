//! SDMX-ML.

use std::io::Read;

use catalog_rules::sdmx::finding::FindingCode;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::context::{Dialect, cut};
use super::delivery::Delivery;
use super::input::Input;
use super::map;
use super::node::Node;
use super::{EVENT_BYTES, ReadError};

/// Where the namespaces of SDMX-ML begin.
const NAMESPACES: &[(&str, Dialect)] = &[
    ("http://www.sdmx.org/resources/sdmxml/schemas/v2_1/", Dialect::Ml21),
    ("http://www.sdmx.org/resources/sdmxml/schemas/v3_0/", Dialect::Ml30),
    ("http://www.sdmx.org/resources/sdmxml/schemas/v3_1/", Dialect::Ml31),
];

pub(super) fn read<R: Read>(mut input: Input<R>, delivery: &mut Delivery<'_>) -> Result<(), ReadError> {
    input.limit(EVENT_BYTES);
    let mut reader = Reader::from_reader(input);
    let config = reader.config_mut();
    config.expand_empty_elements = true;
    config.check_end_names = true;
    Parser { reader, buffer: Vec::new(), delivery }.message()
}

struct Parser<'a, 'd, R> {
    reader: Reader<Input<R>>,
    buffer: Vec<u8>,
    delivery: &'a mut Delivery<'d>,
}

/// What comes next, of what matters.
enum Next {
    Start(Node),
    End,
    Text(String),
    Eof,
}

impl<R: Read> Parser<'_, '_, R> {
    fn line(&self) -> u64 {
        self.reader.get_ref().line()
    }

    fn malformed(&self, found: impl ToString) -> ReadError {
        ReadError::Xml { line: self.line(), found: found.to_string() }
    }

    fn error(&self, error: quick_xml::Error) -> ReadError {
        match error {
            quick_xml::Error::Io(_) if self.reader.get_ref().is_over() => {
                ReadError::TooLarge { place: format!("line {}", self.line()), limit_bytes: EVENT_BYTES }
            }
            quick_xml::Error::Io(error) => ReadError::Io(std::io::Error::new(error.kind(), error.to_string())),
            error => self.malformed(error),
        }
    }

    fn next(&mut self) -> Result<Next, ReadError> {
        loop {
            self.buffer.clear();
            self.reader.get_mut().begin();
            let mut buffer = std::mem::take(&mut self.buffer);
            let event = self.reader.read_event_into(&mut buffer);
            let next = match event {
                Ok(event) => self.event(&event),
                Err(error) => Err(self.error(error)),
            };
            self.buffer = buffer;
            if let Some(next) = next? {
                return Ok(next);
            }
        }
    }

    fn event(&self, event: &Event<'_>) -> Result<Option<Next>, ReadError> {
        Ok(Some(match event {
            Event::Start(start) | Event::Empty(start) => Next::Start(self.start(start)?),
            Event::End(_) => Next::End,
            Event::Text(text) => Next::Text(text.replace("\r\n", "\n").replace('\r', "\n")),
            Event::CData(text) => Next::Text(text.replace("\r\n", "\n").replace('\r', "\n")),
            Event::GeneralRef(reference) => {
                let name: &str = reference;
                let character = match reference.resolve_char_ref() {
                    Ok(Some(character)) => Some(character),
                    Ok(None) => predefined(name),
                    Err(error) => return Err(self.malformed(error)),
                };
                match character {
                    Some(character) => Next::Text(character.to_string()),
                    None => {
                        let found = format!("the entity &{name};");
                        return Err(ReadError::Doctype { line: self.line(), found });
                    }
                }
            }
            Event::DocType(_) => {
                let found = "a document type (DOCTYPE)".to_owned();
                return Err(ReadError::Doctype { line: self.line(), found });
            }
            Event::Decl(declaration) => {
                if let Some(Ok(encoding)) = declaration.encoding() {
                    let name = encoding.to_ascii_lowercase();
                    if name != "utf-8" && name != "utf8" && name != "us-ascii" && name != "ascii" {
                        return Err(ReadError::Encoding { found: encoding.to_string() });
                    }
                }
                return Ok(None);
            }
            Event::Comment(_) | Event::PI(_) => return Ok(None),
            Event::Eof => Next::Eof,
        }))
    }

    fn start(&self, start: &BytesStart<'_>) -> Result<Node, ReadError> {
        let mut node = Node::new(start.local_name().as_ref(), self.line());
        for attribute in start.attributes() {
            let attribute = attribute.map_err(|error| self.malformed(error))?;
            let name: &str = attribute.key.as_ref();
            // Namespaces are kept for the root, which tells the format by them.
            if name.starts_with("xsi:") {
                continue;
            }
            let raw: String =
                attribute.value.chars().map(|c| if matches!(c, '\t' | '\n' | '\r') { ' ' } else { c }).collect();
            let value = quick_xml::escape::unescape(&raw).map_err(|error| self.malformed(error))?.into_owned();
            let name = if name == "xml:lang" || name.starts_with("xmlns") {
                name.to_owned()
            } else {
                attribute.key.local_name().as_ref().to_owned()
            };
            node.held_bytes += name.len() + value.len() + 48;
            node.attributes.push((name, value));
        }
        Ok(node)
    }

    fn message(&mut self) -> Result<(), ReadError> {
        let root = loop {
            match self.next()? {
                Next::Start(root) => break root,
                Next::Text(text) if text.trim().is_empty() => {}
                Next::Text(text) => return Err(self.malformed(format!("{:?} before the root element", cut(&text)))),
                Next::End => return Err(self.malformed("an end tag before the root element")),
                Next::Eof => return Err(ReadError::Empty),
            }
        };
        self.root(&root)?;
        let is_metadata = root.name == "GenericMetadata";
        while let Some(mut node) = self.child()? {
            drop_namespaces(&mut node);
            match node.name.as_str() {
                "Header" | "header" => self.skip()?,
                "Structures" if !is_metadata => self.structures()?,
                "MetadataSet" if is_metadata => self.artefact(node)?,
                "Footer" => {
                    let place = format!("line {}: Footer", node.line);
                    let footer = self.tree(node, 2)?;
                    let message = format!("the message has a footer: {:?}", cut(&all_text(&footer)));
                    self.delivery.context.find(FindingCode::Footer, place, message);
                }
                _ => {
                    let message = "this has no place in the model and is left out".to_owned();
                    self.delivery.context.find_at(&node, FindingCode::NotRepresented, message);
                    self.skip()?;
                }
            }
        }
        loop {
            match self.next()? {
                Next::Eof => return Ok(()),
                Next::Text(text) if text.trim().is_empty() => {}
                Next::Text(_) | Next::Start(_) | Next::End => {
                    return Err(self.malformed("something follows the root element"));
                }
            }
        }
    }

    /// Tells the format by the root element.
    fn root(&mut self, root: &Node) -> Result<(), ReadError> {
        let mut namespaces = root.attributes.iter().filter(|(name, _)| name.starts_with("xmlns")).map(|(_, uri)| uri);
        let message = namespaces.clone().find(|uri| uri.ends_with("/message"));
        let uri = message.or_else(|| namespaces.find(|uri| uri.contains("sdmx"))).cloned().unwrap_or_default();
        let found = format!("{} in {}", root.name, if uri.is_empty() { "no namespace of SDMX" } else { &uri });
        if uri.to_ascii_lowercase().contains("/v2_0/") || uri.contains("/v1_0/") {
            return Err(ReadError::Version20 { found });
        }
        let dialect = NAMESPACES.iter().find(|(start, _)| uri.starts_with(start)).map(|(_, dialect)| *dialect);
        let Some(dialect) = dialect else {
            return Err(ReadError::NotStructures { found: format!("an XML document with the root element {found}") });
        };
        self.delivery.context.dialect = dialect;
        let is_read = root.name == "Structure" || root.name == "GenericMetadata" && dialect != Dialect::Ml21;
        if !is_read {
            let kind = match root.name.as_str() {
                "StructureSpecificData"
                | "GenericData"
                | "StructureSpecificTimeSeriesData"
                | "GenericTimeSeriesData" => "a data message",
                "GenericMetadata" | "StructureSpecificMetadata" => "a metadata message",
                "RegistryInterface" => "a registry message",
                "Error" => "an error message of a service",
                _ => "another message",
            };
            let found = format!("{kind} ({} in {})", root.name, dialect.name());
            return Err(ReadError::NotStructures { found });
        }
        Ok(())
    }

    /// The next child of the open element; none at its end. Text between elements is reported.
    fn child(&mut self) -> Result<Option<Node>, ReadError> {
        loop {
            match self.next()? {
                Next::Start(node) => return Ok(Some(node)),
                Next::End => return Ok(None),
                Next::Text(text) if text.trim().is_empty() => {}
                Next::Text(text) => {
                    let place = format!("line {}", self.line());
                    let message = format!("the text {:?} stands between elements and is left out", cut(&text));
                    self.delivery.context.find(FindingCode::NotRepresented, place, message);
                }
                Next::Eof => return Err(self.malformed("the message ends before its root element does")),
            }
        }
    }

    fn structures(&mut self) -> Result<(), ReadError> {
        while let Some(container) = self.child()? {
            // A container may be of a class that is not held: its artefacts are told one by one.
            while let Some(mut node) = self.child()? {
                drop_namespaces(&mut node);
                match map::class(&node.name) {
                    Some((.., true)) => self.artefact(node)?,
                    Some((.., false)) => {
                        self.delivery.unsupported(&node);
                        self.skip()?;
                    }
                    None => {
                        let message = format!("this is no artefact that is known in {}; left out", container.name);
                        self.delivery.context.find_at(&node, FindingCode::NotRepresented, message);
                        self.skip()?;
                    }
                }
            }
        }
        Ok(())
    }

    fn artefact(&mut self, node: Node) -> Result<(), ReadError> {
        self.delivery.begin(&node);
        let node = self.tree(node, 3)?;
        self.delivery.artefact(node);
        Ok(())
    }

    /// Goes past the open element, however deep it is.
    fn skip(&mut self) -> Result<(), ReadError> {
        let mut depth = 1_u64;
        while depth > 0 {
            match self.next()? {
                Next::Start(_) => depth += 1,
                Next::End => depth -= 1,
                Next::Text(_) => {}
                Next::Eof => return Err(self.malformed("the message ends before its root element does")),
            }
        }
        Ok(())
    }

    /// Reads the rest of an element, `depth` below the root.
    fn tree(&mut self, root: Node, depth: usize) -> Result<Node, ReadError> {
        let mut above: Vec<Node> = Vec::new();
        let mut here = root;
        self.delivery.grow(here.held_bytes, || super::context::place(&here))?;
        loop {
            match self.next()? {
                Next::Start(mut node) => {
                    drop_namespaces(&mut node);
                    Delivery::depth(depth + above.len(), || super::context::place(&node))?;
                    self.delivery.grow(node.held_bytes, || super::context::place(&node))?;
                    above.push(std::mem::replace(&mut here, node));
                }
                Next::Text(text) => {
                    // White space between elements is no text.
                    if here.children.is_empty() && here.items.is_empty() || !text.trim().is_empty() {
                        self.delivery.grow(text.len(), || super::context::place(&here))?;
                        here.held_bytes += text.len();
                        here.text.push_str(&text);
                    }
                }
                Next::End => match above.pop() {
                    None => return Ok(here),
                    Some(mut parent) => {
                        self.delivery.child(&mut parent, here);
                        here = parent;
                    }
                },
                Next::Eof => return Err(self.malformed("the message ends before its root element does")),
            }
        }
    }
}

fn drop_namespaces(node: &mut Node) {
    node.attributes.retain(|(name, _)| name != "xmlns" && !name.starts_with("xmlns:"));
}

fn predefined(name: &str) -> Option<char> {
    Some(match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "apos" => '\'',
        "quot" => '"',
        _ => return None,
    })
}

fn all_text(node: &Node) -> String {
    let mut text = node.text.trim().to_owned();
    for child in &node.children {
        text.push(' ');
        text.push_str(&all_text(child));
    }
    text.trim().to_owned()
}
