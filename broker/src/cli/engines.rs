//! `airlock engines`: lists the engines of this build, as read from their loaded modules, and the
//! differences between the engines.

use airlock_core::problem::Problem;
use clap::Args;
use serde_json::{Value, json};

use super::{Outcome, exit, print, print_json};
use airlock_sandbox::{DIFFERENCES, EngineDifference, JsEngine, Sandbox};

#[derive(Debug, Args)]
pub(super) struct EnginesOptions {
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(options: &EnginesOptions) -> Outcome {
    let mut lines = String::new();
    let mut objects = Vec::new();
    for engine in JsEngine::ALL {
        let (line, object) = if engine.image().is_some() {
            carried(engine)?
        } else {
            let how = format!("cargo xtask engine {engine}");
            let line =
                format!("{engine}  not in this build; run `{how}`, then build airlock again\n");
            (line, json!({ "name": engine.name(), "carried": false }))
        };
        lines.push_str(&line);
        objects.push(object);
    }
    if options.json {
        let differences: Vec<Value> = DIFFERENCES.iter().map(listed).collect();
        print_json(&json!({ "engines": objects, "differences": differences }))?;
    } else {
        lines.push_str("\ndifferences between the engines\n");
        for difference in DIFFERENCES {
            let EngineDifference {
                name, boa, quickjs, ..
            } = difference;
            lines.push_str(&format!(
                "  {name}\n    boa: {boa}\n    quickjs: {quickjs}\n"
            ));
        }
        print(&lines)?;
    }
    Ok(exit::DONE)
}

fn listed(difference: &EngineDifference) -> Value {
    json!({
        "name": difference.name,
        "boa": difference.boa,
        "quickjs": difference.quickjs,
        "why": difference.why,
    })
}

fn carried(engine: JsEngine) -> Result<(String, Value), Problem> {
    let sandbox = Sandbox::load_embedded(engine).map_err(|error| {
        Problem::new(
            "internal",
            "cannot load the sandbox",
            error.to_string(),
            "build airlock again",
        )
    })?;
    let (name, digest) = (sandbox.name(), sandbox.digest().to_string());
    let (bytes, imports) = (sandbox.image_bytes(), sandbox.imports());
    let listed = if imports.is_empty() {
        "none".to_owned()
    } else {
        imports.join(", ")
    };
    let lacks = engine.lacks();
    let line = format!(
        "{name}  {digest}  {bytes} bytes  imports: {listed}  lacks: {}\n",
        lacks.join(", ")
    );
    let object = json!({
        "name": name, "carried": true, "digest": digest, "bytes": bytes,
        "imports": imports, "lacks": lacks,
    });
    Ok((line, object))
}
