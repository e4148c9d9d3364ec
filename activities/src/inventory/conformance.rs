//! What every store must carry through under the Inventory (*catalog* §6.4–6.7, §6.9's conformance cases of stage 1), as
//! functions that a test of each implementation calls. Nothing here expires.
//!
//! A case is given an empty store and makes its own catalog there. Its name is the sentence that it holds. Manifests are
//! small generated documents.

mod crashes;
mod documents;
mod hard;
mod invariants;
mod protocol;
mod races;
mod readers;
pub mod simulation;
mod states;
mod within;
mod world;

use std::fmt;

use crate::store::StoreError;
pub use world::{Checked, Failure, Place};

/// One case.
#[derive(Clone, Copy)]
pub struct Case {
    /// The section that it is from.
    pub rule: &'static str,
    /// The sentence that it holds.
    pub name: &'static str,
    /// Runs it in an empty place.
    pub run: fn(&Place) -> Checked,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("rule", &self.rule).field("name", &self.name).finish_non_exhaustive()
    }
}

/// Hands every case to the macro `$with`, so that a table and the tests cannot differ.
macro_rules! for_each_case {
    ($with:ident) => {
        $with! {
            documents "catalog §6.1–6.3": [
                a_writer_refuses_a_catalog_that_expires,
                every_kind_of_version_carries_the_history_fields,
                a_one_product_change_writes_one_leaf_and_one_root,
                the_change_list_tells_an_entry_that_changes_and_keeps_its_state,
                the_change_list_tells_a_retire_and_a_reinstate,
                a_version_that_changes_no_edition_has_an_empty_change_list,
                a_correction_built_from_an_older_version_links_the_one_before_it,
                a_recorded_and_a_reinstated_entry_say_what_the_manifest_says,
                a_kind_of_event_that_is_newer_is_read_and_built_on,
                what_a_newer_minor_added_is_carried_on,
            ];
            states "catalog §6.4": [
                with_embargo_off_a_record_goes_live_in_its_version,
                with_embargo_on_a_record_waits_and_no_public_reader_sees_it,
                an_edition_off_the_live_one_is_refused_and_both_are_named,
                a_release_takes_what_is_due_by_the_stores_time,
                a_named_release_takes_what_is_never_due,
                a_release_refuses_what_it_must_and_persists_each_refusal,
                a_cancelled_edition_is_never_released,
                one_pending_edition_gives_way_to_another_on_its_base,
                a_rollback_is_a_new_version_that_drops_no_other_release,
                a_rollback_is_refused_once_something_else_is_live,
                what_was_built_on_a_withdrawn_edition_is_refused_with_the_fix,
                a_live_edition_is_taken_back_without_a_replacement,
                only_what_is_out_of_use_is_retired,
                a_reinstate_verifies_every_listed_file,
                a_rescheduled_edition_keeps_its_state,
                an_old_schema_is_superseded_once_a_newer_one_is_live,
                turning_the_embargo_off_releases_nothing,
                a_clock_ahead_of_the_stores_refuses,
            ];
            invariants "catalog §6.5": [
                one_edition_is_live_for_each_schema_version,
                a_manifest_that_is_missing_or_changed_is_refused,
                a_canonical_form_that_is_unknown_is_refused,
                a_copy_that_is_not_as_at_its_home_is_refused,
                a_part_without_a_home_is_refused,
                an_edit_of_a_home_is_accepted_and_makes_its_copies_stale,
                a_shared_artefact_changes_in_one_version_and_is_refused_in_two,
                final_means_final,
                an_edition_built_on_one_that_nobody_knows_is_refused,
                an_artefact_has_one_home,
                a_structure_edition_is_live_before_what_was_cut_from_it,
            ];
            protocol "catalog §6.6": [
                a_version_is_written_as_leaves_then_root_then_current,
                a_writer_that_lost_the_race_builds_on_the_new_head,
                a_writer_that_lost_the_race_asks_every_precondition_again,
                a_stale_automatic_release_writes_nothing_live_after_embargo_was_turned_on,
                time_rises_by_a_millisecond_after_a_base_that_is_ahead,
                a_base_more_than_five_minutes_ahead_is_refused_by_its_time,
                time_rises_across_a_change_of_epoch,
                a_restore_that_was_not_finished_blocks_every_writer,
                a_version_of_an_old_epoch_is_taken_back,
                a_version_under_a_number_that_expired_is_taken_back,
                current_only_moves_forward,
                a_release_brings_current_up_when_it_starts,
            ];
            readers "catalog §6.6 and history, The reader": [
                a_reader_probes_forward_and_lists_nothing,
                current_three_versions_behind_costs_three_probes,
                current_with_an_absurd_number_counts_as_missing,
                current_is_missing_on_a_catalog_that_keeps_its_versions,
                current_is_missing_on_a_catalog_that_expires,
                without_history_a_catalog_that_expires_fails_closed,
                a_held_version_that_expired_is_dropped,
                the_epoch_is_from_history_where_versions_expire_and_else_from_the_catalog,
                a_root_from_before_a_restore_is_passed_over,
                a_root_that_current_does_not_verify_is_walked_back_from,
                a_reader_never_goes_back_within_an_epoch,
                an_empty_root_at_the_head_stops_writers_and_no_reader,
                half_a_root_at_the_head_stops_writers_and_no_reader,
                a_reload_reads_the_changed_leaves_and_nothing_else,
            ];
            crashes "catalog §6.6 and §6.7": [
                a_lost_answer_to_any_write_of_any_operation_is_settled,
                a_client_that_met_its_own_write_is_not_told_that_it_lost,
                a_write_that_was_not_done_is_done_by_the_next_attempt,
                a_write_that_was_refused_is_done_by_the_next_attempt,
                a_writer_killed_before_any_write_is_finished_by_its_next_run,
                a_writer_killed_after_any_write_is_finished_by_its_next_run,
                a_write_that_lands_thirty_seconds_late_is_recognised,
                a_write_that_lands_after_its_retry_changes_nothing,
                a_creation_with_any_write_failing_is_finished_by_the_next_call,
                a_read_that_fails_anywhere_leaves_what_the_next_attempt_finishes,
                a_withdrawn_edition_is_never_brought_back_by_a_repair,
            ];
            races "catalog §6.6": [
                eight_racing_releases_are_told_what_the_chain_says,
                eight_racing_releases_of_one_edition_are_one_release,
                racing_records_on_one_base_let_one_go_live,
            ];
            hard "catalog §6.6 and DESIGN D1, D2, D16, D24": [
                a_killed_writer_between_root_and_current_is_followed_by_the_next_one,
                a_late_root_that_lost_to_another_writer_is_written_once,
                a_late_root_that_another_writer_built_on_is_recognised_with_what_became_of_it,
                a_leaf_deleted_before_the_root_is_missed_and_named,
                a_rollback_in_the_middle_of_a_publish_refuses_its_record,
                a_lost_answer_whose_reading_back_fails_too_is_settled_by_the_rerun,
            ];
        }
    };
}
#[cfg(test)]
pub(super) use for_each_case;

macro_rules! table {
    ($($module:ident $rule:literal: [$($name:ident),* $(,)?];)*) => {
        /// Every case.
        pub const CASES: &[Case] =
            &[$($(Case { rule: $rule, name: stringify!($name), run: $module::$name },)*)*];
    };
}
for_each_case!(table);

/// What became of the cases.
#[derive(Debug, Default)]
pub struct Report {
    /// The cases that hold.
    pub held: Vec<&'static str>,
    /// The cases that do not, and why.
    pub failed: Vec<(Case, Failure)>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cases hold, {} do not", self.held.len(), self.failed.len())?;
        self.failed.iter().try_for_each(|(case, why)| write!(f, "\n{} ({}): {why}", case.name, case.rule))
    }
}

/// Runs every case, each in an empty place that `new` makes, and tells of all that fail.
///
/// # Errors
/// [`StoreError`] when `new` fails.
pub fn suite(new: &dyn Fn() -> Result<Place, StoreError>) -> Result<Report, StoreError> {
    let mut report = Report::default();
    for case in CASES {
        match (case.run)(&new()?) {
            Ok(()) => report.held.push(case.name),
            Err(why) => report.failed.push((*case, why)),
        }
    }
    Ok(report)
}
