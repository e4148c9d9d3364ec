//! Why a message was not read.

use engine_rules::failure::{ActivityError, Disposition};

/// A file that is not a structure message that is read here, or that ends or breaks before its end. What it holds in
/// part is not handed on.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The bytes could not be read.
    #[error("the message could not be read to its end")]
    Io(#[source] std::io::Error),
    /// No byte but white space.
    #[error("the file is empty: expected a structure message in SDMX-ML 2.1, 3.0 or 3.1, or SDMX-JSON 2.0")]
    Empty,
    /// Neither XML nor JSON.
    #[error(
        "the file begins with {found:?}: expected a structure message in SDMX-ML 2.1, 3.0 or 3.1, or SDMX-JSON 2.0, in \
         UTF-8"
    )]
    Format {
        /// The first characters.
        found: String,
    },
    /// Another encoding than UTF-8.
    #[error("the message says that it is in {found}: expected UTF-8; convert it first")]
    Encoding {
        /// The encoding that the message names.
        found: String,
    },
    /// SDMX-ML 2.0.
    #[error(
        "this is an SDMX-ML 2.0 message ({found}), and 2.0 is not read: ask the service for SDMX-ML 2.1 or 3.0, or \
         convert it"
    )]
    Version20 {
        /// The root element and its namespace.
        found: String,
    },
    /// Another message than one of structures.
    #[error("this is {found}: expected a structure message in SDMX-ML 2.1, 3.0 or 3.1, or SDMX-JSON 2.0")]
    NotStructures {
        /// What it is.
        found: String,
    },
    /// Not well-formed XML.
    #[error("line {line}: this is not well-formed XML: {found}; fetch the message again, it may be cut off")]
    Xml {
        /// The line.
        line: u64,
        /// What is wrong.
        found: String,
    },
    /// Not well-formed JSON.
    #[error(
        "this is not well-formed JSON, or not of the shape of SDMX-JSON 2.0; fetch the message again, it may be cut off"
    )]
    Json(#[source] serde_json::Error),
    /// A document type or an entity of its own.
    #[error("line {line}: the message has {found}, which SDMX-ML does not use and a reader must not follow; remove it")]
    Doctype {
        /// The line.
        line: u64,
        /// What it has.
        found: String,
    },
    /// Elements deeper than any structure has.
    #[error("{place}: elements are nested more than {limit} deep; no structure is")]
    TooDeep {
        /// Where.
        place: String,
        /// How deep they may be.
        limit: usize,
    },
    /// A part that is held whole and is larger than the limit.
    #[error(
        "{place}: a part of the message that is held whole is larger than {limit_bytes} bytes; split the artefact, or \
         ask for it in parts"
    )]
    TooLarge {
        /// Where.
        place: String,
        /// How large it may be.
        limit_bytes: usize,
    },
}

impl ActivityError for ReadError {
    fn code(&self) -> &'static str {
        match self {
            Self::Io(_) => "sdmx.io",
            Self::Empty => "sdmx.empty",
            Self::Format { .. } => "sdmx.format",
            Self::Encoding { .. } => "sdmx.encoding",
            Self::Version20 { .. } => "sdmx.version_2_0",
            Self::NotStructures { .. } => "sdmx.not_structures",
            Self::Xml { .. } => "sdmx.xml",
            Self::Json(_) => "sdmx.json",
            Self::Doctype { .. } => "sdmx.doctype",
            Self::TooDeep { .. } => "sdmx.too_deep",
            Self::TooLarge { .. } => "sdmx.too_large",
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::Io(_) => Disposition::Retry,
            Self::Empty
            | Self::Format { .. }
            | Self::Encoding { .. }
            | Self::Version20 { .. }
            | Self::NotStructures { .. }
            | Self::Xml { .. }
            | Self::Json(_)
            | Self::Doctype { .. }
            | Self::TooDeep { .. }
            | Self::TooLarge { .. } => Disposition::Terminal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Empty | Self::NotStructures { .. } | Self::Format { .. } => Some(
                "ask the service for its structures as application/vnd.sdmx.structure+xml;version=2.1 or \
                     application/vnd.sdmx.structure+json;version=2.0.0"
                    .to_owned(),
            ),
            Self::Io(_)
            | Self::Encoding { .. }
            | Self::Version20 { .. }
            | Self::Xml { .. }
            | Self::Json(_)
            | Self::Doctype { .. }
            | Self::TooDeep { .. }
            | Self::TooLarge { .. } => None,
        }
    }
}
