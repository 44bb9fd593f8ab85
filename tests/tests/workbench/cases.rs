//! Tests the results of `airlock policy test` in each output format.

use serde_json::{Value, json};
use tests::command::{CommandOutput, Home};

use super::sarif::is_valid;

const RULES: &str = "@id(\"reads\") @owner(\"o\") @reason(\"r & <r>\")
permit(principal, action in Action::\"read-only\", resource);

@id(\"never-tried\") @owner(\"o\") @reason(\"r\")
forbid(principal, action == Action::\"desk.wipe\", resource);
";

const CASES: &str = "[tools.\"desk.read\"]
read_only = true

[tools.\"desk.write\"]
[tools.\"desk.wipe\"]

[[cases]]
name = \"reading is done\"
tool = \"desk.read\"
level = \"allow\"
rules = [\"reads\"]

[[cases]]
name = \"writing is \\\"done\\\" & <wrong>\"
tool = \"desk.write\"
level = \"allow\"
rules = [\"raeds\"]
";

fn home() -> Home {
    let home = Home::new();
    home.write("team/rules/a.cedar", RULES);
    home.write("team/rules/a.cases.toml", CASES);
    home
}

fn test(home: &Home, format: &str) -> CommandOutput {
    home.run(["policy", "test", "team/rules", "--format", format])
}

#[test]
fn failing_case_names_line_and_rules() {
    let ended = test(&home(), "text").expect_code(32);
    let expected = "FAIL rules/a.cases.toml: writing is \"done\" & <wrong> (line 14)\n  \
                    expected allow by raeds\n     found deny by no rule\n           \
                    there is no rule `raeds`; did you mean `reads`?\n           \
                    no policy rule permits the call\n\
                    FAIL the rule `never-tried` (rules/a.cedar:4) decides no case\n      \
                    next: add a case that it decides to rules/a.cases.toml\n\
                    2 cases, 1 failed; 1 of 2 rules covered\n";
    assert_eq!(ended.stdout, expected, "{ended}");
}

#[test]
fn case_results_agree_in_json_and_sarif() {
    let home = home();
    let results = test(&home, "json").expect_code(32).json();
    let same = home.run(["policy", "test", "team/rules", "--json"]);
    assert_eq!(results, same.expect_code(32).json());
    assert_eq!(results["cases"], 2);
    assert_eq!(results["uncovered"], json!(["never-tried"]));
    let failure = &results["failures"][0];
    assert_eq!(failure["line"], 14, "{failure}");
    assert_eq!(failure["found"], "deny by no rule", "{failure}");

    let log = test(&home, "sarif").expect_code(32).json();
    is_valid(&log);
    let places: Vec<(&str, &str, &Value)> = log["runs"][0]["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| {
            let location = &result["locations"][0]["physicalLocation"];
            let uri = location["artifactLocation"]["uri"].as_str().unwrap();
            (
                result["ruleId"].as_str().unwrap(),
                uri,
                &location["region"]["startLine"],
            )
        })
        .collect();
    let expected = [
        ("case-failed", "team/rules/a.cases.toml", &json!(14)),
        ("rule-uncovered", "team/rules/a.cedar", &json!(4)),
    ];
    assert_eq!(places, expected);
}

#[test]
fn junit_output_has_one_test_per_case_and_rule() {
    let home = home();
    let xml = test(&home, "junit").expect_code(32).stdout;
    for part in [
        "<testsuites name=\"airlock policy test\" tests=\"4\" failures=\"2\">",
        "<testsuite name=\"rules/a.cases.toml\" tests=\"2\" failures=\"1\">",
        "<testcase classname=\"rules/a.cases.toml\" name=\"reading is done\"/>",
        "name=\"writing is &quot;done&quot; &amp; &lt;wrong&gt;\">",
        "<failure message=\"expected allow by raeds, found deny by no rule\">",
        "<testsuite name=\"rules covered\" tests=\"2\" failures=\"1\">",
        "<testcase classname=\"rules covered\" name=\"reads\"/>",
    ] {
        assert!(xml.contains(part), "{part}\n{xml}");
    }
    home.write(
        "parse.py",
        "import sys, xml.dom.minidom as d; d.parseString(sys.stdin.buffer.read())",
    );
    let mut parse = std::process::Command::new("python3");
    parse.arg(home.path().join("parse.py"));
    assert_eq!(
        tests::command::start(&mut parse, &xml).wait().code,
        Some(0),
        "{xml}"
    );
}

#[test]
fn unusable_rules_are_reported_in_each_format() {
    let home = home();
    home.write(
        "team/rules/b.cedar",
        RULES.replace("read-only", "raed-only"),
    );
    let found = test(&home, "text").expect_code(32);
    assert!(found.stdout.contains("code: id-taken"), "{found}");
    is_valid(&test(&home, "sarif").expect_code(32).json());
    let found = test(&home, "json").expect_code(32).json();
    assert_eq!(found["findings"][0]["code"], "id-taken", "{found}");
    let xml = test(&home, "junit").expect_code(32).stdout;
    assert!(
        xml.starts_with("<?xml") && xml.contains("failures=\"2\""),
        "{xml}"
    );
    assert!(xml.contains("rule id `reads` is already used"), "{xml}");
}

#[test]
fn server_of_other_table_is_not_misspelt() {
    let home = Home::new();
    let rule = |server: &str| {
        format!(
            "@id(\"{server}\") @owner(\"o\") @reason(\"r\")\n\
             permit(principal, action == Action::\"{server}.read\", resource);\n"
        )
    };
    let case = |server: &str| {
        format!(
            "[tools.\"{server}.read\"]\n[[cases]]\nname = \"n\"\ntool = \"{server}.read\"\n\
             level = \"allow\"\nrules = [\"{server}\"]\n"
        )
    };
    for server in ["files", "filesystem"] {
        home.write(&format!("rules/{server}.cedar"), rule(server));
        home.write(&format!("rules/{server}.cases.toml"), case(server));
    }
    let tested = home.run(["policy", "test", "rules"]).expect_code(0);
    assert_eq!(tested.stdout, "2 cases, 0 failed; 2 of 2 rules covered\n");
}
