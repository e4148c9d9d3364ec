//! Constraints.

use std::collections::BTreeSet;

use catalog_rules::sdmx::finding::FindingCode;
use catalog_rules::sdmx::model::{
    Artefact, AttachmentConstraint, ComponentValueSet, ConstraintAttachment, ConstraintType, CubeRegion,
    DataConstraint, DataKey, DataKeySet, DataSetReference, KeyValue, Maintained, QueryableDataSource, ReferencePeriod,
    RegionValue, ReleaseCalendar, TimeBound, TimeRange,
};

use super::super::context::Context;
use super::super::node::{Node, items};
use super::common::{annotations, reference, references};
use super::items::cascade;

pub(super) fn data_constraint(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
    let constraint_type = context.member(node, "role|type", "Allowed or Actual", |text| {
        let mut letters = text.chars();
        let capital: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
        ConstraintType::from_value(&capital)
    });
    let period = node.child("ReferencePeriod|referencePeriod").and_then(|mut node| {
        let start = context.instant(&mut node, "startTime|startPeriod");
        let end = context.instant(&mut node, "endTime|endPeriod");
        if start.is_none() || end.is_none() {
            let message = "a reference period without start or end; left out".to_owned();
            context.find_at(&node, FindingCode::BadValue, message);
        }
        context.done(node);
        Some(ReferencePeriod { start_period: start?, end_period: end? })
    });
    let release_calendar = node.child("ReleaseCalendar|releaseCalendar").map(|mut node| {
        let calendar = ReleaseCalendar {
            periodicity: context.word(&mut node, "Periodicity|periodicity").unwrap_or_default(),
            offset: context.word(&mut node, "Offset|offset").unwrap_or_default(),
            tolerance: context.word(&mut node, "Tolerance|tolerance").unwrap_or_default(),
        };
        context.done(node);
        calendar
    });
    let regions = node.children("CubeRegion|cubeRegions");
    Artefact::DataConstraint(Box::new(DataConstraint {
        common,
        constraint_type: constraint_type.unwrap_or_default(),
        attachment: attachment(context, node),
        regions: regions.into_iter().map(|node| region(context, node)).collect(),
        data_key_sets: key_sets(context, node),
        reference_period: period,
        release_calendar,
    }))
}

pub(super) fn attachment_constraint(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
    let attachment = attachment(context, node);
    Artefact::AttachmentConstraint(AttachmentConstraint { common, attachment, data_key_sets: key_sets(context, node) })
}

fn attachment(context: &mut Context, node: &mut Node) -> ConstraintAttachment {
    let Some(mut node) = node.child("ConstraintAttachment|constraintAttachment") else {
        return ConstraintAttachment::default();
    };
    let data_sets = node.children("DataSet|dataSets");
    let sources = node.children("QueryableDataSource|queryableDataSources");
    let made = ConstraintAttachment {
        data_provider: reference(context, &mut node, "DataProvider|dataProvider", "DataProvider"),
        data_sets: data_sets
            .into_iter()
            .map(|mut node| {
                let names = "DataProvider|dataProvider";
                let data_provider = reference(context, &mut node, names, "DataProvider").unwrap_or_default();
                let id = context.word(&mut node, "ID|id").unwrap_or_default();
                context.done(node);
                DataSetReference { data_provider, id }
            })
            .collect(),
        simple_data_sources: context.words(&mut node, "SimpleDataSource|simpleDataSources|simpleDataSource"),
        data_structures: references(context, &mut node, "DataStructure|dataStructures", "DataStructure"),
        dataflows: references(context, &mut node, "Dataflow|dataflows", "Dataflow"),
        provision_agreements: references(
            context,
            &mut node,
            "ProvisionAgreement|provisionAgreements",
            "ProvisionAgreement",
        ),
        queryable_data_sources: sources.into_iter().map(|node| queryable(context, node)).collect(),
    };
    context.done(node);
    made
}

fn queryable(context: &mut Context, mut node: Node) -> QueryableDataSource {
    let made = QueryableDataSource {
        data_url: context.word(&mut node, "DataURL|dataURL").unwrap_or_default(),
        is_rest_datasource: context.flag(&mut node, "isRESTDatasource").unwrap_or_default(),
        is_web_service_datasource: context.flag(&mut node, "isWebServiceDatasource").unwrap_or_default(),
        wsdl_url: context.word(&mut node, "WSDLURL|wsdlURL"),
        wadl_url: context.word(&mut node, "WADLURL|wadlURL"),
    };
    context.done(node);
    made
}

fn key_sets(context: &mut Context, node: &mut Node) -> Vec<DataKeySet> {
    let sets = node.children("DataKeySet|dataKeySets");
    sets.into_iter()
        .map(|mut node| {
            let is_included = context.flag(&mut node, "isIncluded").unwrap_or(true);
            let keys = items!(node, DataKey);
            context.done(node);
            DataKeySet { is_included, keys }
        })
        .collect()
}

pub(super) fn data_key(context: &mut Context, mut node: Node) -> DataKey {
    always_included(context, &mut node);
    let mut values = Vec::new();
    for mut key in node.children("KeyValue|keyValues") {
        always_included(context, &mut key);
        let id = context.word(&mut key, "id").unwrap_or_default();
        let of_key = context.texts(&mut key, "Value|value|values");
        if of_key.len() != 1 {
            let message = format!("{id:?} has {} values in a key, which has one each", of_key.len());
            context.find_at(&key, FindingCode::BadValue, message);
        }
        context.done(key);
        values.extend(of_key.into_iter().map(|value| (id.clone(), value)));
    }
    let components = node.children("Component|components|Attribute");
    let key = DataKey {
        values,
        annotations: annotations(context, &mut node),
        valid_from: context.word(&mut node, "validFrom"),
        valid_to: context.word(&mut node, "validTo"),
        components: components.into_iter().map(|node| component(context, node)).collect(),
    };
    context.done(node);
    key
}

/// `include` is always true within a key.
fn always_included(context: &mut Context, node: &mut Node) {
    if context.flag(node, "include") == Some(false) {
        let message = "include is false within a key, where it is always true; left out".to_owned();
        context.find_at(node, FindingCode::BadValue, message);
    }
}

fn region(context: &mut Context, mut node: Node) -> CubeRegion {
    let keys = node.children("KeyValue|keyValues");
    let components = node.children("Component|components|Attribute");
    let region = CubeRegion {
        include: context.flag(&mut node, "include").unwrap_or(true),
        keys: keys.into_iter().map(|node| key_value(context, node)).collect(),
        components: components.into_iter().map(|node| component(context, node)).collect(),
        annotations: annotations(context, &mut node),
    };
    context.done(node);
    region
}

fn key_value(context: &mut Context, mut node: Node) -> KeyValue {
    let made = KeyValue {
        dimension_id: context.word(&mut node, "id").unwrap_or_default(),
        values: region_values(context, &mut node),
        time_range: time_range(context, &mut node),
        include: context.flag(&mut node, "include").unwrap_or(true),
        remove_prefix: context.flag(&mut node, "removePrefix").unwrap_or_default(),
        valid_from: context.word(&mut node, "validFrom"),
        valid_to: context.word(&mut node, "validTo"),
    };
    context.done(node);
    made
}

fn component(context: &mut Context, mut node: Node) -> ComponentValueSet {
    let made = ComponentValueSet {
        component_id: context.word(&mut node, "id").unwrap_or_default(),
        values: region_values(context, &mut node),
        time_range: time_range(context, &mut node),
        include: context.flag(&mut node, "include").unwrap_or(true),
        remove_prefix: context.flag(&mut node, "removePrefix").unwrap_or_default(),
    };
    context.done(node);
    made
}

fn region_values(context: &mut Context, node: &mut Node) -> BTreeSet<RegionValue> {
    let nodes = node.children("Value|values");
    let mut values = BTreeSet::new();
    for mut node in nodes {
        let cascade = context.member(&mut node, "cascadeValues", "true, false or excluderoot", cascade);
        let made = RegionValue {
            cascade: cascade.unwrap_or_default(),
            lang: context.text(&mut node, "xml:lang|lang"),
            valid_from: context.word(&mut node, "validFrom"),
            valid_to: context.word(&mut node, "validTo"),
            // In JSON a value is a text, or an object with one.
            value: node.attribute("value").unwrap_or_else(|| std::mem::take(&mut node.text)),
        };
        if values.contains(&made) {
            let message = format!("the value {:?} stands twice; it counts once", made.value);
            context.find_at(&node, FindingCode::DuplicateItem, message);
        }
        context.done(node);
        values.insert(made);
    }
    values
}

fn time_range(context: &mut Context, node: &mut Node) -> Option<TimeRange> {
    let mut node = node.child("TimeRange|timeRange")?;
    let mut bound = |names: &str| {
        node.child(names).map(|mut node| {
            let inclusive = context.flag(&mut node, "isInclusive").unwrap_or(true);
            let text = node.attribute("period").unwrap_or_else(|| std::mem::take(&mut node.text));
            context.done(node);
            TimeBound { period: text.trim().to_owned(), inclusive }
        })
    };
    let start = bound("StartPeriod|startPeriod|AfterPeriod|afterPeriod");
    let end = bound("EndPeriod|endPeriod|BeforePeriod|beforePeriod");
    let range = TimeRange {
        start,
        end,
        valid_from: context.word(&mut node, "validFrom"),
        valid_to: context.word(&mut node, "validTo"),
    };
    context.done(node);
    Some(range)
}
