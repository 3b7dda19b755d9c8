//! Lists which case or test covers which section and trap of the contract, also as a table in `docs/rest-contract.md`.
//! The test fails if a section or trap is not covered, or if the table is outdated (`RECORD=1` updates it).

#![allow(clippy::expect_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::rest::case;

/// Sections of the contract.
const SECTIONS: [(&str, &str); 29] = [
    ("1", "Routing, methods, precedence of errors"),
    ("2", "Query string: classification, duplicates, encoding"),
    ("2.1", "Names"),
    ("2.2", "select"),
    ("2.3", "Filters"),
    ("2.4", "Logic"),
    ("2.5", "order"),
    ("2.6", "limit, offset, Range"),
    ("2.7", "Embedded scope"),
    ("2.8", "columns, on_conflict"),
    ("2.9", "Shape of parse errors"),
    ("3", "Embedding"),
    ("4", "Aggregates"),
    ("5", "Request bodies"),
    ("6", "Prefer"),
    ("7", "Accept"),
    ("8", "Functions"),
    ("9", "Response headers, profiles"),
    ("10", "Status codes and writes"),
    ("11", "Tokens, transaction, settings"),
    ("12", "Schema cache"),
    ("13", "Errors"),
    ("14", "OpenAPI"),
    ("15", "CORS, OPTIONS, HEAD"),
    ("16", "Admin port"),
    ("17", "Configuration"),
    ("18", "Generated SQL"),
    ("19", "Client libraries"),
    ("limits", "Bad input: size, length, nesting, number"),
];

/// The contract's list of traps, in order.
const TRAPS: [&str; 25] = [
    "206 needs a count larger than the page; 416 needs an offset beyond the count",
    "HEAD ignores Range; writes ignore limit and offset",
    "POST selects the schema by Content-Profile",
    "Content-Range of writes",
    "merge answers 200 or 201, ignore always 201; without a key the preference is ignored",
    "A single object, max-affected and PUT are checked after the write, which is then rolled back",
    "Preference-Applied lists only what was applied, in a fixed order",
    "42501 is 401 for the anonymous role; an unknown role is 401; both with WWW-Authenticate",
    "Time claims have a leeway of 30 s; wrong types are errors; a token without a role is anonymous",
    "request.jwt.claims is always set; settings are empty strings afterwards",
    "Functions are matched by their set of argument names; a single unnamed parameter is the fallback",
    "GET of a function is read only, and so is POST of one that is not volatile",
    "The star is a wildcard for like only; quotes are literal in a top-level value and quote inside lists",
    "An empty list matches nothing, its negation everything",
    "not.and in a group, not.or as a key, rel.not.or in an embed",
    "Unknown table, column, payload column: 404, 400, 400, each with its own code",
    "Views have keys, but the columns of a view are not embed targets",
    "Embedded rows pass through jsonb",
    "Ambiguity is 300 with a list of candidates",
    "void, NULL and SETOF scalars",
    "CSV: NULL and the empty field",
    "Bulk rows with different keys",
    "A role's and a function's settings are applied per request",
    "Unknown types are 406; */* gets JSON",
    "CORS is a literal star; a preflight needs no token",
];

/// Tests with more than one request: (section, trap or 0, file, name).
const TESTS: &[(&str, u32, &str, &str)] = &[
    ("10", 6, "behaviour", "statements_refused_after_execution_are_rolled_back"),
    ("6", 0, "behaviour", "accepted_writes_stay_unless_a_rollback_is_requested"),
    ("12", 0, "behaviour", "a_notification_makes_a_new_table_available"),
    ("12", 0, "behaviour", "an_event_trigger_makes_a_new_table_available"),
    ("12", 0, "behaviour", "ten_thousand_tables_are_served"),
    ("12", 0, "behaviour", "a_lost_database_is_reconnected"),
    ("18", 0, "behaviour", "a_changed_column_does_not_break_prepared_statements"),
    ("18", 0, "behaviour", "concurrent_requests_never_share_a_role"),
    ("18", 0, "policies", "policies_apply_as_for_the_role_itself"),
    ("18", 0, "policies", "the_comparison_detects_a_missing_role_switch"),
    ("11", 10, "behaviour", "request_settings_are_empty_in_the_next_request"),
    ("11", 0, "behaviour", "a_cost_estimate_leaves_nothing_behind"),
    ("11", 0, "behaviour", "a_pre_request_sets_status_and_headers_of_a_long_answer"),
    ("11", 0, "behaviour", "a_role_chosen_by_a_pre_request_may_send_a_long_body"),
    ("11", 0, "behaviour", "tokens_of_every_key_type_are_verified"),
    ("11", 0, "behaviour", "tokens_are_verified_with_the_named_key_of_the_set"),
    ("17", 0, "behaviour", "settings_in_the_database_win_and_are_reloaded_on_request"),
    ("12", 0, "behaviour", "a_database_of_another_encoding_is_served"),
    ("17", 0, "behaviour", "a_function_can_provide_the_settings"),
    ("17", 0, "behaviour", "the_settings_function_can_be_named_in_the_database"),
    ("17", 0, "behaviour", "without_its_settings_function_the_server_starts_with_the_other_settings"),
    ("17", 0, "behaviour", "a_missing_settings_function_keeps_the_databases_settings"),
    ("17", 0, "behaviour", "after_the_first_load_one_session_listens_and_one_reloads"),
    ("17", 0, "behaviour", "without_in_database_configuration_role_settings_are_ignored"),
    ("17", 0, "behaviour", "an_exhausted_pool_answers_504"),
    ("17", 0, "behaviour", "function_settings_apply_only_if_hoisted"),
    ("17", 0, "behaviour", "nothing_is_prepared_if_disabled"),
    ("17", 0, "behaviour", "the_notification_channel_is_configurable"),
    ("17", 0, "behaviour", "connections_are_closed_by_age_and_idle_time"),
    ("9", 0, "behaviour", "stages_are_timed_if_enabled"),
    ("7", 0, "behaviour", "plans_are_shown_if_enabled"),
    ("16", 0, "process", "the_admin_port_reports_liveness_readiness_and_metrics"),
    ("16", 0, "process", "readiness_follows_the_schema_cache"),
    ("12", 0, "process", "signals_reload_schema_and_configuration"),
    ("17", 0, "process", "an_empty_connection_string_uses_libpqs_environment"),
    ("17", 0, "process", "several_processes_can_share_a_port"),
    ("17", 0, "process", "without_recovery_a_lost_database_ends_the_process"),
    ("17", 0, "process", "unix_sockets_have_the_configured_mode"),
    ("17", 0, "process", "requests_and_sql_are_logged_by_level"),
    ("17", 0, "process", "a_shared_port_is_opened_only_once_the_schema_is_loaded"),
    ("limits", 0, "limits", "requests_beyond_limits_get_clear_errors"),
    ("limits", 0, "limits", "a_body_with_an_oversized_length_is_refused_before_it_is_sent"),
    ("limits", 0, "limits", "a_chunked_oversized_body_is_refused"),
    ("limits", 0, "limits", "names_that_nothing_can_have_are_not_compared_and_are_cut_in_the_error"),
    ("limits", 0, "limits", "long_statements_are_not_prepared"),
    ("limits", 0, "random", "meaningless_bytes_are_refused_without_harm"),
];

const SOURCES: [(&str, &str); 5] = [
    ("behaviour", include_str!("behaviour.rs")),
    ("limits", include_str!("limits.rs")),
    ("policies", include_str!("policies.rs")),
    ("process", include_str!("process.rs")),
    ("random", include_str!("random.rs")),
];

/// The table of the current cases and tests.
fn table(suites: &[(&str, case::Suite)]) -> String {
    let mut by_section: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    let mut by_trap: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    let mut total = 0;
    for (file, suite) in suites {
        for case in &suite.cases {
            *by_section.entry(&case.section).or_default().entry(file).or_default() += 1;
            for trap in &case.traps {
                by_trap.entry(*trap).or_default().push(format!("{file}: {}", case.name));
            }
            total += 1;
        }
    }
    let mut text = String::from("# The tests of the REST contract\n\n");
    let _ = writeln!(
        text,
        "{total} cases in `server/tests/rest/cases/*.case` and the tests named here cover the contract. The test `coverage` writes this \
         file (`RECORD=1`)\nand fails if a section or trap has no test. The recorded answers of the reference are counted in \
         [rest-exceptions.md](rest-exceptions.md).\n\n## By section\n\n| Section | Subject | Cases | Tests |\n|---|---|---|---|"
    );
    for (section, subject) in SECTIONS {
        let files = by_section.get(section).map(|files| {
            let files: Vec<String> = files.iter().map(|(file, count)| format!("{file} {count}")).collect();
            files.join(", ")
        });
        let tests: Vec<&str> =
            TESTS.iter().filter(|(known, ..)| *known == section).map(|(_, _, _, name)| *name).collect();
        let _ = writeln!(text, "| {section} | {subject} | {} | {} |", files.unwrap_or_default(), tests.join("<br>"));
    }
    text.push_str("\n## By trap\n\n| Trap | What it is | Cases and tests |\n|---|---|---|\n");
    for (index, trap) in TRAPS.iter().enumerate() {
        let number = u32::try_from(index + 1).expect("a small number");
        let mut holders = by_trap.remove(&number).unwrap_or_default();
        holders.extend(TESTS.iter().filter(|test| test.1 == number).map(|test| format!("{}.rs: {}", test.2, test.3)));
        let _ = writeln!(text, "| {number} | {trap} | {} |", holders.join("<br>"));
    }
    text
}

#[test]
fn every_section_and_every_trap_has_a_case() {
    let suites: Vec<(&str, case::Suite)> =
        crate::rest::SUITES.iter().map(|file| (*file, case::parse(&crate::rest::read(file)))).collect();
    let known: BTreeSet<&str> = SECTIONS.iter().map(|(section, _)| *section).collect();
    let mut held: BTreeSet<&str> = TESTS.iter().map(|(section, ..)| *section).collect();
    let mut traps: BTreeSet<u32> = BTreeSet::new();
    let mut total = 0;
    for (file, suite) in &suites {
        let mut names = BTreeSet::new();
        for case in &suite.cases {
            let place = format!("{file}.case:{}: {}", case.line, case.name);
            assert!(known.contains(case.section.as_str()), "{place}: no section '{}'", case.section);
            assert!(names.insert(&case.name), "{place}: that name is taken");
            assert!(case.traps.iter().all(|trap| (1..=25).contains(trap)), "{place}: {:?}", case.traps);
            held.insert(&case.section);
            traps.extend(&case.traps);
            total += 1;
        }
    }
    let missing: Vec<&&str> = known.difference(&held).collect();
    assert!(missing.is_empty(), "sections without a case or test: {missing:?}");
    let missing: Vec<u32> = (1..=25).filter(|trap| !traps.contains(trap)).collect();
    assert!(missing.is_empty(), "traps without a case: {missing:?}");
    assert!(total >= 600, "only {total} cases");
    for (_, _, file, name) in TESTS {
        let (_, source) = SOURCES.iter().find(|(known, _)| known == file).expect("a known file");
        assert!(source.contains(&format!("async fn {name}()")), "{file}.rs has no test {name}");
    }
    let table = table(&suites);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/rest-contract.md");
    if std::env::var_os("RECORD").is_some() {
        std::fs::write(path, &table).expect("written");
    }
    assert!(std::fs::read_to_string(path).is_ok_and(|text| text == table), "docs/rest-contract.md is old: RECORD=1");
}
