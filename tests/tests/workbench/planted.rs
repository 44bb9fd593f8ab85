//! Tests planted mistakes, one in each file of `policy-mistakes/planted/`. Each mistake is found at
//! its position. After its fix was applied, nothing is found.
//!
//! A file's first line describes the mistake, and its second line the expected finding. The fixed
//! file is in `policy-mistakes/fixed/`; with `AIRLOCK_BLESS=1` it is rewritten.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tests::command::{CommandOutput, Home};
use tests::solver;

/// A home with the folder of mistakes.
pub(crate) struct PlantedFolder {
    home: Home,
}

pub(crate) struct Mistake {
    pub(crate) name: String,
    /// Extension of its file: `cedar` for rules, `toml` for grants.
    ending: String,
    pub(crate) text: String,
    /// The expected code, from the file's second line.
    code: String,
    tightens: bool,
    /// Whether only a solver finds the mistake.
    by_proof: bool,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("policy-mistakes")
}

impl PlantedFolder {
    pub(crate) fn new() -> Self {
        let home = Home::new();
        for entry in std::fs::read_dir(folder()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                home.write(&name, std::fs::read(&path).unwrap());
            }
        }
        std::fs::create_dir(home.path().join("planted")).unwrap();
        Self { home }
    }

    pub(crate) fn mistakes() -> Vec<Mistake> {
        let mut paths: Vec<_> = std::fs::read_dir(folder().join("planted"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        paths.iter().map(|path| Mistake::read(path)).collect()
    }

    /// Runs `policy check` on a text instead of the mistake.
    pub(crate) fn check(&self, mistake: &Mistake, text: &str, format: &str) -> CommandOutput {
        let file = format!("planted/{}", mistake.file());
        self.home.write(&file, text);
        let rules: &[&str] = match (mistake.tightens, mistake.ending.as_str()) {
            (true, _) => &["base.cedar", "--tighten", &file],
            (_, "toml") => &["base.cedar", "--grant", &file],
            _ => &[&file],
        };
        let tools = [
            "--from",
            "mail.json",
            "--from",
            "files.json",
            "--from",
            "web.json",
            "--from",
            "tickets.json",
        ];
        let more = ["--config", "airlock.toml", "--format", format];
        let proof: &[&str] = match mistake.by_proof {
            true => &["--prove", "--prove-seconds", "3600"],
            false => &[],
        };
        self.home
            .run([&["policy", "check"], rules, &tools, &more, proof].concat())
    }
}

impl Mistake {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let code = text
            .lines()
            .nth(1)
            .and_then(|line| line.split_once(" finds "))
            .map(|(_, code)| code);
        let ending = path.extension().unwrap().to_string_lossy().into_owned();
        Self {
            ending,
            code: code
                .unwrap_or_else(|| panic!("{name} names no finding"))
                .to_owned(),
            tightens: text.starts_with("// A folder that may only tighten"),
            by_proof: text.starts_with("// By proof"),
            name,
            text,
        }
    }

    /// Returns whether the mistake can be found on this machine. Some mistakes need a solver.
    pub(crate) fn can_be_found(&self) -> bool {
        !self.by_proof || solver::path().is_some()
    }

    pub(crate) fn file(&self) -> String {
        format!("{}.{}", self.name, self.ending)
    }

    /// Returns the text with all edits of a fix applied. JSON and SARIF must give the same text.
    pub(crate) fn fixed(&self, edits: &[(Value, Value, String)]) -> String {
        let mut text = self.text.clone();
        for (start, end, instead) in edits.iter().rev() {
            let (start, end) = (offset(&self.text, start), offset(&self.text, end));
            text.replace_range(start..end, instead);
        }
        text
    }
}

/// Returns the byte offset of `[line, column]`. Both count from 1, and the column counts
/// characters.
fn offset(text: &str, place: &Value) -> usize {
    let number = |at: usize| usize::try_from(place[at].as_u64().unwrap()).unwrap();
    let lines = text.split_inclusive('\n');
    let before: usize = lines.clone().take(number(0) - 1).map(str::len).sum();
    let line = lines.clone().nth(number(0) - 1).unwrap_or_default();
    let within: usize = line.chars().take(number(1) - 1).map(char::len_utf8).sum();
    before + within
}

fn edits(fix: &Value) -> Vec<(Value, Value, String)> {
    let place = |place: &Value| serde_json::json!([place["line"], place["column"]]);
    let edits = fix["edits"].as_array().unwrap().iter();
    edits
        .map(|edit| {
            let text = edit["text"].as_str().unwrap().to_owned();
            (place(&edit["start"]), place(&edit["end"]), text)
        })
        .collect()
}

#[test]
fn planted_mistake_is_found_and_fixed() {
    let planted = PlantedFolder::new();
    let mistakes = PlantedFolder::mistakes();
    let mut wrong = Vec::new();
    for mistake in mistakes.iter().filter(|it| it.can_be_found()) {
        if let Err(why) = look(&planted, mistake) {
            wrong.push(format!("{}: {why}", mistake.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let codes: BTreeSet<&str> = mistakes.iter().map(|it| it.code.as_str()).collect();
    println!(
        "{} planted mistakes of {} kinds",
        mistakes.len(),
        codes.len()
    );
    assert!(mistakes.len() >= 60 && codes.len() >= 40, "{codes:?}");
}

fn look(planted: &PlantedFolder, mistake: &Mistake) -> Result<(), String> {
    let found = planted.check(mistake, &mistake.text, "json");
    let findings = found.json()["findings"].clone();
    let [finding] = findings.as_array().unwrap().as_slice() else {
        return Err(format!("expected one finding\n{found}"));
    };
    if found.code != Some(32) || finding["code"] != *mistake.code {
        return Err(format!("the code is not `{}`\n{found}", mistake.code));
    }
    for part in ["what", "next"] {
        let is_said = finding[part].as_str().is_some_and(|it| !it.is_empty());
        let is_said = is_said || part == "next" && finding["code"] == "unreadable";
        if !is_said && finding["code"] != "annotation-unusable" {
            return Err(format!("no `{part}` in the finding\n{found}"));
        }
    }
    if finding["place"]["file"] != mistake.file() {
        return Err(format!("the finding is in another file\n{found}"));
    }
    let fixed = mistake.fixed(&edits(&finding["fix"]));
    let golden = folder().join("fixed").join(mistake.file());
    let place = &finding["place"];
    let shown = undated(&fixed).replacen(
        &format!(" finds {}", mistake.code),
        &format!(
            " found {} at {}:{}",
            mistake.code, place["line"], place["column"]
        ),
        1,
    );
    if std::env::var("AIRLOCK_BLESS").is_ok_and(|it| it == "1") {
        std::fs::create_dir_all(golden.parent().unwrap()).unwrap();
        std::fs::write(&golden, &shown).unwrap();
    }
    if std::fs::read_to_string(&golden).unwrap_or_default() != shown {
        return Err(format!(
            "the fixed text differs; AIRLOCK_BLESS=1 rewrites the file\n{shown}"
        ));
    }
    let after = planted.check(mistake, &fixed, "json");
    match after.code {
        Some(0) => Ok(()),
        _ => Err(format!("findings after the fix\n{fixed}\n{after}")),
    }
}

/// Masks proposed end dates, which differ each time.
fn undated(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix("expires = ") {
        Some(_) => "expires = …\n".to_owned(),
        None => line.to_owned(),
    };
    text.split_inclusive('\n').map(line).collect()
}

#[test]
fn every_finding_kind_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = std::fs::read_to_string(root.join("docs/policy-check.md")).unwrap();
    let planted = PlantedFolder::new();
    let mistake = &PlantedFolder::mistakes()[0];
    let log = planted.check(mistake, &mistake.text, "sarif").json();
    let rules = log["runs"][0]["tool"]["driver"]["rules"]
        .as_array()
        .unwrap();
    assert!(rules.len() > 40, "{rules:?}");
    for rule in rules {
        let row = format!("| `{}` |", rule["id"].as_str().unwrap());
        assert!(text.contains(&row), "docs/policy-check.md has no row {row}");
    }
}

#[test]
fn correct_rules_have_no_findings() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let home = Home::new();
    let shipped = root.join("policies").display().to_string();
    for rules in [
        shipped.clone(),
        format!("{shipped}/baseline.cedar"),
        format!("{shipped}/flow.cedar"),
    ] {
        let checked = home
            .run(["policy", "check", &rules, "--demo"])
            .expect_code(0);
        assert!(checked.stdout.contains("nothing found"), "{checked}");
    }
    let planted = PlantedFolder::new();
    let base = planted
        .home
        .run(["policy", "check", "base.cedar", "--from", "mail.json"]);
    let base = base.expect_code(0);
    assert!(base.stdout.contains("1 rules, nothing found"), "{base}");
}

#[test]
fn warning_can_be_excepted_and_error_cannot() {
    let home = Home::new();
    let rule = |id: &str, action: &str| {
        format!(
            "@id(\"{id}\") @owner(\"o\") @reason(\"r\")\npermit(principal, {action}, resource);\n"
        )
    };
    home.write("rules/a.cedar", rule("all", "action"));
    let check = |more: &[&str]| home.run([&["policy", "check", "rules", "--demo"], more].concat());
    let found = check(&[]).expect_code(32);
    assert!(
        found
            .stdout
            .contains("warning: rules/a.cedar:2:19: the rule `all` permits"),
        "{found}"
    );
    assert!(
        found
            .stdout
            .contains("    2 | permit(principal, action, resource);\n"),
        "{found}"
    );
    assert!(found.stdout.contains(" code: permit-unscoped\n"), "{found}");
    let excepted = check(&["--except", "permit-unscoped:all"]).expect_code(0);
    assert!(
        excepted
            .stdout
            .contains("nothing found, 1 warning excepted"),
        "{excepted}"
    );
    check(&["--except", "permit-unscoped"]).expect_code(0);
    for (except, expected) in [
        (
            "permit-unscoped:other",
            "`--except permit-unscoped:other` matches no warning",
        ),
        ("rule-dead", "`--except rule-dead` matches no warning"),
        ("permit-unscopd", "did you mean `permit-unscoped`?"),
        ("tool-unknown", "no run starts with such rules"),
    ] {
        check(&["--except", except])
            .expect_code(2)
            .expect_stderr(expected);
    }
}
