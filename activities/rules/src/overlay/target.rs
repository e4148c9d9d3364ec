//! The artefacts and items that an entry can change (*edition* §5.2).

use crate::sdmx::model::{Annotation, Artefact, InternationalString, Maintained};

/// What a selector compares.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'a> {
    /// The names of its class: in the model first, then those that a URN may have.
    pub classes: &'static [&'static str],
    /// The package of its URN.
    pub package: &'static str,
    /// The item, by its id, or by its path when it is nested; `None` for the artefact itself.
    pub item: Option<&'a str>,
}

/// One artefact or item.
pub(super) struct Target<'a> {
    pub named: Named<'a>,
    pub annotations: &'a mut Vec<Annotation>,
    /// Its name and its description; `None` for a component, which has neither.
    pub texts: Option<Texts<'a>>,
}

pub(super) struct Texts<'a> {
    pub name: &'a mut InternationalString,
    pub description: &'a mut InternationalString,
}

/// Shows `visit` the artefact and then every item in it, in document order, until one is refused.
pub(super) fn each_target<E>(
    artefact: &mut Artefact,
    mut visit: impl FnMut(Target<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let (classes, package): (&'static [&'static str], _) = match artefact {
        Artefact::AgencyScheme(_) => (&["AgencyScheme"], artefact.package()),
        Artefact::Codelist(_) => (&["Codelist"], artefact.package()),
        Artefact::ConceptScheme(_) => (&["ConceptScheme"], artefact.package()),
        Artefact::DataStructure(_) => (&["DataStructure"], artefact.package()),
        Artefact::Dataflow(_) => (&["Dataflow"], artefact.package()),
    };
    let Maintained { name, description, annotations, .. } = common_mut(artefact);
    let named = Named { classes, package, item: None };
    visit(Target { named, annotations, texts: Some(Texts { name, description }) })?;

    /// Items with a name: their fields are of the same names in every class.
    macro_rules! items {
        ($items:expr, $package:literal, $classes:expr) => {
            for item in $items.iter_mut() {
                let named = Named { classes: $classes, package: $package, item: Some(&item.id) };
                let texts = Some(Texts { name: &mut item.name, description: &mut item.description });
                visit(Target { named, annotations: &mut item.annotations, texts })?;
            }
        };
    }
    /// Components: they have no name.
    macro_rules! components {
        ($items:expr, $classes:expr) => {
            for item in $items.iter_mut() {
                let named = Named { classes: $classes, package: "datastructure", item: Some(&item.id) };
                visit(Target { named, annotations: &mut item.annotations, texts: None })?;
            }
        };
    }
    match artefact {
        Artefact::AgencyScheme(scheme) => items!(scheme.agencies, "base", &["Agency"]),
        Artefact::Codelist(list) => items!(list.codes, "codelist", &["Code"]),
        Artefact::ConceptScheme(scheme) => items!(scheme.concepts, "conceptscheme", &["Concept"]),
        Artefact::DataStructure(structure) => {
            components!(structure.dimensions, &["Dimension"]);
            components!(structure.time_dimension, &["TimeDimension"]);
            components!(structure.measure_dimension, &["MeasureDimension"]);
            components!(structure.attributes, &["Attribute", "DataAttribute"]);
            components!(structure.measures, &["Measure", "PrimaryMeasure"]);
            components!(structure.groups.as_deref_mut().unwrap_or_default(), &["Group", "GroupDimensionDescriptor"]);
        }
        Artefact::Dataflow(_) => {}
    }
    Ok(())
}

fn common_mut(artefact: &mut Artefact) -> &mut Maintained {
    match artefact {
        Artefact::AgencyScheme(a) => &mut a.common,
        Artefact::Codelist(a) => &mut a.common,
        Artefact::ConceptScheme(a) => &mut a.common,
        Artefact::DataStructure(a) => &mut a.common,
        Artefact::Dataflow(a) => &mut a.common,
    }
}
