//! Organisations and their schemes.

use super::base::{Annotation, InternationalString, Link};

class! {
    /// A person or a desk to ask.
    #[derive(Eq, Default)]
    Contact {
        name: InternationalString,
        department: InternationalString,
        role: InternationalString,
        phones: Vec<String>,
        faxes: Vec<String>,
        x400s: Vec<String>,
        uris: Vec<String>,
        emails: Vec<String>,
        id: Option<String>,
    }
}

class! {
    /// An organisation that maintains artefacts.
    #[derive(Eq, Default)]
    Agency {
        id: String,
        name: InternationalString,
        description: InternationalString,
        contacts: Vec<Contact>,
        annotations: Vec<Annotation>,
        uri: Option<String>,
        links: Vec<Link>,
    }
}

class! {
    /// An organisation that provides data.
    #[derive(Eq, Default)]
    DataProvider {
        id: String,
        name: InternationalString,
        description: InternationalString,
        contacts: Vec<Contact>,
        annotations: Vec<Annotation>,
        uri: Option<String>,
        links: Vec<Link>,
    }
}

class! {
    /// An organisation that provides reference metadata.
    #[derive(Eq, Default)]
    MetadataProvider {
        id: String,
        name: InternationalString,
        description: InternationalString,
        contacts: Vec<Contact>,
        annotations: Vec<Annotation>,
        uri: Option<String>,
        links: Vec<Link>,
    }
}

class! {
    /// An organisation that uses data.
    #[derive(Eq, Default)]
    DataConsumer {
        id: String,
        name: InternationalString,
        description: InternationalString,
        contacts: Vec<Contact>,
        annotations: Vec<Annotation>,
        uri: Option<String>,
        links: Vec<Link>,
    }
}

class! {
    /// A unit of an organisation, with at most one parent in the same scheme.
    #[derive(Eq, Default)]
    OrganisationUnit {
        id: String,
        name: InternationalString,
        description: InternationalString,
        contacts: Vec<Contact>,
        annotations: Vec<Annotation>,
        parent_id: Option<String>,
        uri: Option<String>,
        links: Vec<Link>,
    }
}

maintainable! {
    /// The agencies known to a product.
    #[derive(Eq)]
    AgencyScheme lacks ["legacy_is_final"] {
        /// The agencies, in document order.
        agencies: Vec<Agency>,
        /// Whether this is a subset of the full scheme.
        is_partial: bool,
    }
}

maintainable! {
    /// The providers of data that an agency knows.
    #[derive(Eq)]
    DataProviderScheme lacks ["legacy_is_final"] { providers: Vec<DataProvider>, is_partial: bool }
}

maintainable! {
    /// The providers of reference metadata that an agency knows.
    #[derive(Eq)]
    MetadataProviderScheme lacks ["legacy_is_final"] { providers: Vec<MetadataProvider>, is_partial: bool }
}

maintainable! {
    /// The users of data that an agency knows.
    #[derive(Eq)]
    DataConsumerScheme lacks ["legacy_is_final"] { consumers: Vec<DataConsumer>, is_partial: bool }
}

maintainable! {
    /// The units of an organisation.
    #[derive(Eq)]
    OrganisationUnitScheme lacks ["legacy_is_final"] { organisation_units: Vec<OrganisationUnit>, is_partial: bool }
}
