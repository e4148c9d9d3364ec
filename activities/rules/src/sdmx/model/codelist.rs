//! Lists of codes and values.

use super::base::{Annotation, InternationalString, Link, UrnText};

class! {
    /// One code of a codelist.
    #[derive(Eq, Default)]
    Code {
        id: String,
        name: InternationalString,
        description: InternationalString,
        parent_id: Option<String>,
        annotations: Vec<Annotation>,
        uri: Option<String>,
        links: Vec<Link>,
    }
}

class! {
    /// A code of a set of geographic features.
    #[derive(Eq, Default)]
    GeoFeatureSetCode {
        id: String,
        name: InternationalString,
        description: InternationalString,
        parent_id: Option<String>,
        annotations: Vec<Annotation>,
        uri: Option<String>,
        links: Vec<Link>,
        /// The features, as `lat,long:lat,long`.
        value: String,
    }
}

class! {
    /// A code of a cell in a geographic grid.
    #[derive(Eq, Default)]
    GeoGridCode {
        id: String,
        name: InternationalString,
        description: InternationalString,
        parent_id: Option<String>,
        annotations: Vec<Annotation>,
        uri: Option<String>,
        links: Vec<Link>,
        /// The cell within the grid.
        geo_cell: String,
    }
}

maintainable! {
    /// A list of codes, each with at most one parent in the same list.
    #[derive(Eq)]
    Codelist lacks [] {
        /// The codes, in document order.
        codes: Vec<Code>,
        /// The lists whose codes it takes in, in order of their precedence.
        extensions: Vec<CodelistExtension>,
        /// Whether this is a subset of the full list.
        is_partial: bool,
    }
}

maintainable! {
    /// A codelist of geographic features. Its URN is a codelist's.
    #[derive(Eq)]
    GeographicCodelist lacks [] {
        codes: Vec<GeoFeatureSetCode>,
        extensions: Vec<CodelistExtension>,
        is_partial: bool,
    }
}

maintainable! {
    /// A codelist of the cells of a grid. Its URN is a codelist's.
    #[derive(Eq)]
    GeoGridCodelist lacks [] {
        codes: Vec<GeoGridCode>,
        extensions: Vec<CodelistExtension>,
        is_partial: bool,
        /// The grid that the cells are in.
        grid_definition: String,
    }
}

class! {
    /// One value of a value list. Its id may be any text.
    #[derive(Eq, Default)]
    ValueItem {
        id: String,
        name: InternationalString,
        description: InternationalString,
        annotations: Vec<Annotation>,
    }
}

maintainable! {
    /// A list of values, which need not be codes.
    #[derive(Eq)]
    ValueList lacks ["legacy_is_final"] { items: Vec<ValueItem> }
}

class! {
    /// Another codelist whose codes a codelist takes in.
    #[derive(Eq, Default)]
    CodelistExtension {
        /// The other codelist, by URN.
        codelist: UrnText,
        /// Which of its codes; all of them without a selection.
        selection: Option<CodeSelection>,
        /// What is put before each of its codes.
        prefix: Option<String>,
    }
}

class! {
    /// Which codes of another list are taken in.
    #[derive(Eq)]
    CodeSelection {
        /// Whether the members are taken or left.
        mode: InclusionMode,
        /// The members, in document order.
        members: Vec<MemberValue>,
    }
}

members! {
    /// Whether the members of a selection are taken or left.
    InclusionMode { Include "INCLUDE" "inclusive", Exclude "EXCLUDE" "exclusive" }
}

class! {
    /// One member of a selection: a code, or a pattern with `%`.
    #[derive(Eq, Default)]
    MemberValue { value: String, cascade: Option<CascadeSelection> }
}

members! {
    /// Whether a member of a selection stands for its descendants too.
    #[derive(Default)]
    CascadeSelection {
        IncludeDescendants "INCLUDE_DESCENDANTS" "true",
        #[default]
        SelfOnly "SELF_ONLY" "false",
        ExcludeRoot "EXCLUDE_ROOT" "excluderoot",
    }
}
