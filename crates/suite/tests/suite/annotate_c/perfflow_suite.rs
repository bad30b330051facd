//! The checks of PerfFlowAspect's own tests of woven programs, in the same steps: run, find the file, append ` {}]`, check with jq.
//!
//! Cases and steps are in `compat/tests/perfflow_suite`, which the tests of the Python module share.

use std::fs;

use serde_json::Value;
use weftline_testkit::Scratch;
use weftline_testkit::case::excerpt;
use weftline_testkit::compile::sources;
use weftline_testkit::product::workspace;
use weftline_testkit::run::Job;

use super::weave::works;

/// As root, and on a machine with fewer processors than ranks.
const LAUNCHER: [&str; 5] = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"];

#[test]
fn every_case() {
    let suite = workspace().join("compat/tests/perfflow_suite");
    let text = fs::read_to_string(suite.join("cases.json")).expect("the cases");
    let stated: Vec<Value> = serde_json::from_str(&text).expect("a list of cases");
    let is_of_c = |case: &&Value| case["languages"].as_array().is_some_and(|list| list.iter().any(|word| word == "c"));
    let cases: Vec<&Value> = stated.iter().filter(is_of_c).collect();
    assert_eq!(cases.len(), 32, "the suite is whole");

    let home = Scratch::new("perfflow-suite");
    let program = home.join("flow_suite");
    let source = sources().join("annotate/flow_suite.cpp");
    let line = format!(
        "weft weave --abi perfflow -- clang++ -O1 -Wall -Wextra -Werror -pthread {} -o {}",
        source.display(),
        program.display()
    );
    works(&line, home.path());
    let (steps, program) = (suite.join("case.sh"), program.to_str().expect("UTF-8"));
    for (number, case) in cases.into_iter().enumerate() {
        let text = |key: &str| case[key].as_str().unwrap_or_else(|| panic!("{key} in {case}"));
        let mut words = vec![steps.to_str().expect("UTF-8"), text("file"), text("leaves")];
        if text("program") == "ranks" {
            words.extend(LAUNCHER);
        }
        words.extend([program, text("program")]);
        let mut job = Job::new(words, &home.dir(&number.to_string()));
        let environment = case["environment"].as_object().expect("variables");
        job.environment =
            environment.iter().map(|(name, value)| (name.into(), value.as_str().map(Into::into))).collect();
        let outcome = job.run();
        let said = [&outcome.stdout[..], &outcome.stderr].concat();
        assert_eq!(outcome.status, 0, "{}: {}", text("case"), excerpt(&said));
    }
}
