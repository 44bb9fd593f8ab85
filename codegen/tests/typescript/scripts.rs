//! Tests what a TypeScript compiler adds to the check of a script: no finding for a correct script,
//! and no duplicate for a wrong one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use codegen::check::typed::{Page, TypedFindings};
use codegen::check::{CheckResult, Surface};
use codegen::description::Description;
use codegen::message::Reply;
use codegen::stub::StubTable;
use codegen_script::Checker;
use sandbox_protocol::codec::CodecError;
use serde_json::Value;

use crate::compiler::{self, Compiler};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("script/tests/check")
}

fn cases(file: &str) -> Vec<(String, String)> {
    let text = format!("\n{}", fs::read_to_string(folder().join(file)).unwrap());
    let blocks = text.split("\n=== ").skip(1);
    let case = |block: &str| {
        let (name, script) = block.split_once('\n').unwrap();
        (name.to_owned(), script.to_owned())
    };
    blocks.map(case).collect()
}

fn descriptions() -> Vec<Description> {
    let tools = fs::read(folder().join("tools.json")).unwrap();
    let tools: Value = serde_json::from_slice(&tools).unwrap();
    let mut descriptions = Vec::new();
    for (server, listed) in tools.as_object().unwrap() {
        for tool in listed.as_array().unwrap() {
            descriptions.push(Description::parse(server, tool).unwrap());
        }
    }
    descriptions
}

/// Returns the findings of the check and of the compiler, if the script can be compiled.
fn both(compiler: &Compiler, name: &str, script: &str) -> (CheckResult, TypedFindings) {
    let descriptions = descriptions();
    let table = StubTable::build(&descriptions);
    let surface = Surface::new(&table, &descriptions);
    let ask = |request: &[u8]| -> Result<Reply, CodecError> {
        Reply::decode(&Checker::default().start(request)?)
    };
    let checked = surface.check(name, script, ask).unwrap();
    let Some(page) = Page::new(name, script, &checked, &surface) else {
        return (checked, TypedFindings::default());
    };
    // Tests run at the same time, so each has its own folder.
    let test = std::thread::current().name().unwrap().replace(':', "_");
    let work = compiler.folder(&test);
    for (name, text) in &page.files {
        fs::write(work.join(name), text).unwrap();
    }
    let mut command = Command::new(&compiler.program);
    let output = command.args(page.args()).current_dir(&work).output();
    let said = String::from_utf8(output.unwrap().stdout).unwrap();
    let found = page.findings(&said, &checked.findings);
    let found = found.unwrap_or_else(|error| panic!("{error}: {said}"));
    (checked, found)
}

fn check_script(compiler: &Compiler, name: &str, script: &str, expected: &[&str]) {
    let (_, found) = both(compiler, name, script);
    let found = found.kept.iter().map(|it| {
        let suggestion = it.suggestion.as_deref().unwrap_or_default();
        let (line, column, code, message) = (it.line, it.column, &it.code, &it.message);
        format!("{line}:{column} {code} {message} {suggestion}")
            .trim_end()
            .to_owned()
    });
    assert_eq!(found.collect::<Vec<_>>(), expected, "{script}");
}

/// Scripts that run although the compiler reports an error: a result may have more members than its
/// schema declares, and TypeScript does not accept them.
const OPEN_RESULTS: [&str; 2] = ["a part with a default", "a part that may be there"];

#[test]
fn compiler_accepts_correct_script() {
    let Some(compiler) = compiler::installed() else {
        return;
    };
    for (name, script) in cases("right.cases") {
        let (_, found) = both(compiler, "script", &script);
        let codes: Vec<_> = found.kept.iter().map(|it| it.code.as_str()).collect();
        match OPEN_RESULTS.contains(&name.as_str()) {
            true => assert_eq!(codes, ["ts2339"], "{name}"),
            false => assert_eq!(found, TypedFindings::default(), "{name}"),
        }
    }
}

#[test]
fn compiler_adds_no_duplicate_findings() {
    let Some(compiler) = compiler::installed() else {
        return;
    };
    for file in ["arguments", "awaits", "names", "syntax"] {
        for (name, script) in cases(&format!("wrong-{file}.cases")) {
            let (checked, found) = both(compiler, "script", &script);
            let own = &checked.findings;
            assert_eq!(found, TypedFindings::default(), "{name}: {own:#?}");
        }
    }
}

#[test]
fn compiler_finds_result_misuse_beyond_check() {
    let Some(compiler) = compiler::installed() else {
        return;
    };
    check_script(
        compiler,
        "a.js",
        "const names = [\"a\"];\n\
         const all = await Promise.all(names.map((repo) => forge.list_issues({ owner: \"o\", repo })));\n\
         \"\u{1f600}\"; return all.map((it) => it.isues.length);\n",
        &[
            "3:32 ts2551 property 'isues' does not exist on type '{ issues: { number: number; \
             title: string; open?: boolean | undefined; }[]; tot…' Did you mean `issues`?",
        ],
    );
}

/// The compiler never reads files of this machine for a script, whatever the script names.
#[test]
fn compiler_reads_no_files_named_by_script() {
    let Some(compiler) = compiler::installed() else {
        return;
    };
    let secret = compiler.folder("secret").join("secret.ts");
    fs::write(&secret, "export const password = 'hunter2'\n").unwrap();
    let path = secret.with_extension("");
    let path = path.display();
    let script = format!(
        "/// <reference path=\"{path}.ts\" />\n\
         type All = typeof import('{path}');\n\
         let x: All['password'] = 5 as number;\n\
         return x;"
    );
    check_script(compiler, "a.ts", &script, &[]);
}
