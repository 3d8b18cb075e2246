//! Nobody adds a system variable without its tests and its documentation.

use std::path::Path;
use thread_pool_rs::config::vars::{VARIABLES, Variable, VariableType};

/// Kinds of MTR tests that a variable must have.
fn kinds_of_tests(variable: &Variable) -> Vec<&'static str> {
    let mut kinds = vec!["basic"];
    if matches!(variable.kind, VariableType::Ulong | VariableType::Uint) {
        kinds.push("wrong_max");
        if variable.min > 0 {
            kinds.push("wrong_min");
        }
    }
    kinds
}

#[test]
fn every_variable_has_its_mtr_tests() {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mtr");
    for variable in &VARIABLES {
        for kind in kinds_of_tests(variable) {
            let name = format!("{}_{kind}", variable.name);
            for file in [format!("t/{name}.test"), format!("r/{name}.result")] {
                assert!(suite.join(&file).exists(), "tests/mtr/{file} is missing");
            }
        }
    }
}

#[test]
fn every_variable_is_documented_in_whole_sentences() {
    let mut names = Vec::new();
    for variable in &VARIABLES {
        let Variable { name, comment, details, .. } = *variable;
        assert!(comment.starts_with(|c: char| c.is_uppercase() || c.is_numeric()), "{name}");
        assert!(!comment.ends_with('.'), "{name}: --help ends without a full stop");
        assert!(details.is_empty() || details.ends_with('.'), "{name}");
        assert!(!names.contains(&name), "{name} is in the table twice");
        names.push(name);
    }
}
