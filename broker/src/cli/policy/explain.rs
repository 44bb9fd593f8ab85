//! `airlock policy explain`: explains the decision on a recorded call or on a described one. The
//! texts about a recorded call come from its journal. For any other call, the texts are the same as
//! in the journal of a run with this call.

use std::path::{Path, PathBuf};

use airlock_core::call::{Args, Call, CallHistory, Site};
use airlock_core::catalog::ToolOwner;
use airlock_core::code::Code;
use airlock_core::facts::Facts;
use airlock_core::id::{CallId, ToolId};
use airlock_core::journal::{AnswerWord, Body, DecidedEntry, Verdict, VerifiedJournal};
use airlock_core::level::Level;
use airlock_core::limits::Limits;
use airlock_core::problem::Problem;
use airlock_core::rules::RuleVerdict;
use codegen::description::Description;
use codegen::validate::Validator;
use serde_json::Value;

use super::sources::{Folders, RuleSources, SourceOptions};
use super::table::{self, CALL_BOUNDS, JsonCall};
use crate::broker::tool_discovery;
use crate::cli::options::usage;
use crate::cli::screen::Screen;
use crate::cli::{Outcome, exit, input, print, print_json, runs};
use crate::config::{ApproverChoice, Environment};
use crate::render::{self, Explanation};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ExplainOptions {
    /// A recorded call as RUN:CALL or FILE.jsonl:CALL, or any call as {"tool": …, "args": …,
    /// "facts": …}; @FILE reads the call from a file
    #[arg(value_name = "CALL")]
    call: String,
    /// Folders of rules for a call that is not recorded
    #[arg(long = "policy", value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    #[command(flatten)]
    sources: SourceOptions,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// The assumption of an explanation: the checks that precede the rules have passed. The given facts
/// are used only by the rules.
const SHOWN: &str = "the session was shown the tool with its current description, and the call is \
                     within the limits; other calls are refused before any rule is evaluated";

pub(super) fn run(options: ExplainOptions, environment: &Environment, screen: &Screen) -> Outcome {
    let is_json = options.json;
    let text = match options.call.strip_prefix('@') {
        Some(path) => {
            let bytes = input::file(
                Path::new(path),
                "the call",
                u64::from(CALL_BOUNDS.bytes_max),
            )?;
            String::from_utf8(bytes).map_err(|_| unclear("the file is not UTF-8".into()))?
        }
        None => options.call.clone(),
    };
    let explained = if text.trim_start().starts_with('{') {
        let said = JsonCall::parse(&text).map_err(unclear)?;
        match options
            .sources
            .open(Folders::Added(options.folders), environment, screen)
        {
            Ok(opened) => imagined(said, &opened)?,
            Err(error) => return super::unusable(error, is_json),
        }
    } else {
        let (journal, call) = text
            .rsplit_once(':')
            .ok_or_else(|| unclear("the text is neither RUN:CALL nor a call in JSON".into()))?;
        if !options.folders.is_empty() || options.sources.names_configuration() {
            screen.remark(
                "a recorded call is explained from its journal alone: with the rules, labels and \
                 roots of its run; `airlock policy replay` decides it with the current rules\n",
            );
        }
        let call: u32 = call
            .parse()
            .map_err(|_| unclear(format!("`{call}` is not the number of a call")))?;
        let (name, verified) = runs::journal(journal, options.sources.state, environment)?;
        recorded(&name, &verified, CallId(call))?
    };
    if is_json {
        print_json(&explained)?;
    } else {
        print(&render::explanation(&explained))?;
    }
    Ok(exit::DONE)
}

fn unclear(why: String) -> Problem {
    let next = "write RUN:CALL, such as 01h2:3, or {\"tool\": \"server.tool\", \"args\": {…}}";
    usage("invalid call", why, next)
}

/// Explains a call of a run from its journal.
fn recorded(run: &str, journal: &VerifiedJournal, call: CallId) -> Result<Explanation, Problem> {
    let bodies = || journal.lines.iter().map(|line| &line.body);
    let of_call = || bodies().filter(|body| body.call() == Some(call));
    let answered = of_call().find_map(|body| match body {
        Body::Answered(answered) => Some(asked(answered.answer)),
        _ => None,
    });
    let decided = of_call().find_map(|body| match body {
        Body::Decided(decided) => Some(&**decided),
        _ => None,
    });
    let started = bodies().find_map(|body| match body {
        Body::RunStarted(started) => Some(started),
        _ => None,
    });
    let script = started.map(|it| it.script_name.as_str());
    let declassified = started.map(|it| it.declassified.clone());
    let declassified = declassified.unwrap_or_default();
    if let Some(decided) = decided {
        let how = answered.unwrap_or_default();
        let explained = of_decided(run, script.unwrap_or_default(), decided, &how);
        return Ok(Explanation {
            declassified,
            ..explained
        });
    }
    let asked = of_call().find_map(|body| match body {
        Body::Asked(asked) => Some(asked),
        _ => None,
    });
    let Some(asked) = asked else {
        let why = format!("the journal of {run} has no call {}", call.0);
        let next = "`airlock runs show RUN` lists the calls of a run";
        return Err(usage("no such call", why, next));
    };
    Ok(Explanation {
        tool: asked.tool.clone(),
        of: place(run, script.unwrap_or_default(), call, asked.site),
        args: Some(asked.args.clone()),
        decision: "asked, but no decision is recorded".into(),
        reasons: asked.reasons.clone(),
        prompts: Vec::new(),
        told: None,
        facts: asked.facts.as_deref().cloned(),
        assuming: None,
        declassified,
    })
}

fn asked(answer: AnswerWord) -> String {
    let how = match answer {
        AnswerWord::AllowOnce
        | AnswerWord::AllowDeclassified
        | AnswerWord::AllowTool
        | AnswerWord::Refuse
        | AnswerWord::Stated => {
            format!("answered {}", render::word(&answer))
        }
        AnswerWord::Unanswered => "not answered".to_owned(),
        AnswerWord::Invalid => "invalid answer".to_owned(),
        AnswerWord::Withdrawn => "the question was withdrawn".to_owned(),
    };
    format!("asked, {how}; ")
}

fn of_decided(run: &str, script: &str, decided: &DecidedEntry, how: &str) -> Explanation {
    let code = decided.code.filter(|code| *code != Code::Denied);
    let code = code.map(|code| format!(" ({code})"));
    let grant = decided.grant.as_ref().map(|used| {
        format!(
            " by grant {}, use {} of {}",
            used.id, used.number, used.uses_max
        )
    });
    let verdict = match decided.decision {
        Verdict::Allow => "allowed",
        Verdict::Deny => "denied",
        Verdict::Unsent => "allowed or asked about, but the run ended before the call was sent",
    };
    Explanation {
        tool: decided.tool.clone(),
        of: place(run, script, decided.call, decided.site),
        args: decided.args.clone(),
        decision: [
            how,
            verdict,
            &code.unwrap_or_default(),
            &grant.unwrap_or_default(),
        ]
        .concat(),
        reasons: decided.reasons.clone(),
        prompts: Vec::new(),
        told: decided.told.clone(),
        facts: decided.facts.as_deref().cloned(),
        assuming: None,
        declassified: Vec::new(),
    }
}

fn place(run: &str, script: &str, call: CallId, site: Site) -> String {
    let Site { line, column } = site;
    format!("call {} of {run}, {script}:{line}:{column}:", call.0)
}

/// Explains the decision that rules would make on a call that is in no journal. Facts that are not
/// given have their worst value.
fn imagined(said: JsonCall, opened: &RuleSources) -> Result<Explanation, Problem> {
    let tool = ToolId::parse(&said.tool).map_err(|bad| unclear(bad.to_string()))?;
    let description = described(&tool, &opened.descriptions)?;
    let args = said.args;
    let bytes = args.to_string();
    let canonical = Args::parse(bytes.as_bytes(), &Limits::default());
    let canonical = canonical.map_err(|bad| unclear(bad.to_string()))?;
    let is_explained = table::is_explained(&said.facts);
    let schema = &description.input_schema;
    let computed = opened.facts.of(&tool, schema, &canonical, is_explained);
    let mut assuming = assuming(&said.facts, &computed);
    let are_roots_given = said.facts.get("path_roots").is_some();
    if !are_roots_given && opened.facts.lacks_path_base(&tool, schema, &canonical) {
        assuming.push(format!(
            "a relative path counts as `outside`, because [labels.{}] has no `path_base`",
            tool.server.0
        ));
    }
    let facts = match said.facts {
        Value::Null => computed,
        facts => {
            let policies = opened.rules.policies();
            let words = policies.and_then(|it| it.vocabulary().configured.as_ref());
            table::facts(facts, &computed, words).map_err(unclear)?
        }
    };
    let validator = Validator::compile(&description.input_schema);
    let validator = validator.map_err(|bad| unclear(bad.to_string()))?;
    let errors = validator.errors("args", &args);
    let mut explained = Explanation {
        of: "a call of".into(),
        args: Some(canonical.clone()),
        decision: "denied (invalid-arguments)".into(),
        reasons: errors.iter().map(ToString::to_string).collect(),
        prompts: Vec::new(),
        told: None,
        facts: Some(facts.clone()),
        assuming: None,
        declassified: Vec::new(),
        tool: tool.clone(),
    };
    let owner = tool_discovery::owner(&tool.server.0, &tool.tool.0);
    if let Some(denied) = opened.rules.always_denied(owner, &tool) {
        explained.decision = "denied".into();
        explained.reasons = denied.reasons;
        return Ok(explained);
    }
    let labelling = tool_discovery::labelling(owner, &tool, &opened.flow.label_config);
    let labelling = labelling.fitted(&description.input_schema);
    explained
        .reasons
        .extend(labelling.objection(canonical.value()));
    if explained.reasons.is_empty() {
        let call = Call {
            id: CallId(1),
            tool,
            args: canonical,
            site: Site::default(),
            facts: Some(facts.into()),
            history: CallHistory::default(),
        };
        let consulted = opened.rules.consult_for_owner(owner, &call);
        let RuleVerdict {
            level,
            reasons,
            prompts,
            ..
        } = consulted;
        let asked = who_is_asked(opened.approver.as_ref());
        explained.decision = match level {
            Level::Allow => "allowed".into(),
            Level::AskRun => format!("{asked}; a grant for the run is enough"),
            Level::AskCall => format!("{asked}; only an approval of this call is enough"),
            Level::Deny => "denied".into(),
        };
        let gets_through = level < Level::Deny && owner != ToolOwner::OwnLocal;
        let shown = gets_through.then(|| SHOWN.to_owned());
        let assumed: Vec<String> = shown.into_iter().chain(assuming).collect();
        explained.assuming = (!assumed.is_empty()).then(|| assumed.join("; "));
        (explained.reasons, explained.prompts) = (reasons, prompts);
    }
    Ok(explained)
}

/// Says who is asked about a call that needs an approval.
fn who_is_asked(approver: Option<&ApproverChoice>) -> String {
    if approver == Some(&ApproverChoice::Never) {
        return "an approval is needed, and the approver `never` gives none".to_owned();
    }
    match approver.and_then(ApproverChoice::command) {
        Some(command) => format!("the program `{command}` is asked, and not a person"),
        None => "a person is asked".to_owned(),
    }
}

/// Returns what is assumed about facts that depend on the run and that are not given, and about
/// given facts that this call does not have.
fn assuming(said: &Value, computed: &Facts) -> Vec<String> {
    let run = [
        ("labels", "untrusted, private"),
        ("script_trusted", "false"),
        ("dest_explained", "false"),
    ];
    let is_open = |name: &str| {
        let applies = name != "dest_explained" || computed.dest_explained == Some(false);
        applies && said.get(name).is_none()
    };
    let open = run.iter().filter(|(name, _)| is_open(name));
    let open: Vec<String> = open
        .map(|(name, worst)| format!("{name} ({worst})"))
        .collect();
    let mut all = Vec::new();
    if !open.is_empty() {
        let open = open.join(", ");
        all.push(format!(
            "facts that depend on the run have their worst values: {open}"
        ));
    }
    let given = said.get("path_roots");
    let real = computed.path_roots.as_ref().map(|it| serde_json::json!(it));
    if let (Some(given), Some(real)) = (given, real)
        && *given != real
    {
        all.push(format!(
            "`path_roots` is {given}, although the paths of this call lead to {real}"
        ));
    }
    all
}

fn described<'a>(tool: &ToolId, all: &'a [Description]) -> Result<&'a Description, Problem> {
    let is_meant = |it: &&Description| *it.server == *tool.server.0 && *it.name == *tool.tool.0;
    all.iter().find(is_meant).ok_or_else(|| {
        let names = all.iter().map(|it| format!("{}.{}", it.server, it.name));
        super::no_tool(&tool.to_string(), "", &names.collect::<Vec<_>>())
    })
}
