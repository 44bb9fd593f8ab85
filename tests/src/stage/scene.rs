//! The broker that runs a case. Most cases use the broker of the stage. A case about questions and
//! grants has its own broker, session and approver.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use airlock::config::{Config, Environment, Flags};
use airlock::core::grant::{Condition, Grant};
use airlock::core::id::{Digest, GrantId};
use airlock::core::labels::Labels;
use airlock::core::run::Fsync;
use airlock::core::shared_state::SessionName;
use airlock::shared_file::SharedFile;
use airlock::upstream::{ServerSpec, Transport};
use airlock::{Broker, Builder, Script};
use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::person::Person;
use super::{Stage, tools};
use crate::binary::workspace;
use crate::case_file::{Attack, CaseFile, ChangeBetween, EarlierRun, GrantMismatch, PriorGrant};
use crate::command::program;
use crate::engine::engine;

/// A broker and its approver.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) broker: Broker,
    pub(super) runs_dir: PathBuf,
    /// The script to run. A change between two runs may have modified it.
    pub(super) script: String,
    pub(super) person: Option<Arc<Person>>,
    _own: Option<TempDir>,
}

/// The differences between a broker and the previous broker.
#[derive(Debug, Clone, Copy, Default)]
struct Variation {
    session: &'static str,
    description: bool,
    rules: bool,
}

impl Scene {
    pub(super) fn new(stage: &Stage, case: &CaseFile) -> Result<Self> {
        if case.asking.is_there() {
            return Self::own(stage, case);
        }
        let broker = match case.policies {
            true => &stage.watched,
            false => &stage.broker,
        };
        Ok(Self {
            broker: broker.clone(),
            runs_dir: stage.runs_dir(),
            script: case.script.clone(),
            person: None,
            _own: None,
        })
    }

    fn own(stage: &Stage, case: &CaseFile) -> Result<Self> {
        let own = TempDir::with_prefix("airlock-scene-")?;
        let person = Arc::new(Person::new(case.asking.answers.clone(), own.path()));
        let mut scene = Self {
            broker: build(stage, case, own.path(), &person, Variation::default())?,
            runs_dir: own.path().join("runs"),
            script: case.script.clone(),
            person: Some(Arc::clone(&person)),
            _own: None,
        };
        if let Some(before) = &case.asking.before {
            scene.play_before(stage, case, before)?;
            let mut variation = Variation::default();
            for between in &case.asking.between {
                match between {
                    ChangeBetween::Session => variation.session = "another",
                    ChangeBetween::Description => variation.description = true,
                    ChangeBetween::Rules => variation.rules = true,
                    ChangeBetween::LineEnds => scene.script = scene.script.replace('\n', "\r\n"),
                    ChangeBetween::OneSpace => scene.script.push(' '),
                    ChangeBetween::Revoked => revoke(own.path())?,
                    ChangeBetween::Process => {}
                }
            }
            if !case.asking.between.is_empty() {
                scene.broker = build(stage, case, own.path(), &person, variation)?;
            }
        }
        scene._own = Some(own);
        Ok(scene)
    }

    /// Runs the earlier run. Only its effects on the session are kept.
    fn play_before(&self, stage: &Stage, case: &CaseFile, before: &EarlierRun) -> Result<()> {
        let text = match before {
            EarlierRun::Same => &case.script,
            EarlierRun::Other(text) => text,
        };
        let script = Script::body(text.clone())
            .named(format!("{}.js", case.name))
            .with_limits(super::limits(case)?);
        let report = stage.runtime.block_on(self.broker.run(script).report());
        ensure!(report.error.is_none(), "earlier run: {:?}", report.error);
        std::fs::remove_file(
            self.broker
                .journal_path(&airlock::core::id::RunId(report.run.into())),
        )?;
        stage.log.take();
        Ok(())
    }
}

fn build(
    stage: &Stage,
    case: &CaseFile,
    own: &Path,
    person: &Arc<Person>,
    variation: Variation,
) -> Result<Broker> {
    let builder = || -> Result<Builder> { builder(stage, case, own, person, variation) };
    if case.asking.given.is_empty() {
        return Ok(stage.runtime.block_on(builder()?.build())?);
    }
    // A broker with the same tools and rules provides the values to which a grant is bound.
    let like = stage.runtime.block_on(builder()?.build())?;
    let grants = case.asking.given.iter().enumerate();
    let grants = grants
        .map(|(at, given)| grant(at, given, case, &like))
        .collect::<Result<Vec<_>>>()?;
    Ok(stage.runtime.block_on(builder()?.grants(grants).build())?)
}

fn builder(
    stage: &Stage,
    case: &CaseFile,
    own: &Path,
    person: &Arc<Person>,
    variation: Variation,
) -> Result<Builder> {
    let mut builder = Broker::builder();
    if case.policies {
        builder = builder.config(watched(own)?);
    } else {
        builder = builder.allow("*.*")?.deny("box.forbidden")?;
    }
    builder = builder.engine(engine());
    for pattern in &case.asking.asks {
        builder = builder.ask(pattern)?;
    }
    if variation.rules {
        builder = builder.deny("box.gauge")?;
    }
    if case.asking.with_rogue {
        let command = program("rogue-server").display().to_string();
        builder = builder.server(ServerSpec::new(
            "rogue",
            Transport::Stdio {
                command,
                args: Vec::new(),
                env: Vec::new(),
                cwd: None,
            },
        ));
    }
    let session = match variation.session {
        "" => "work",
        other => other,
    };
    let remark = if variation.description {
        " Changed."
    } else {
        ""
    };
    let builder = builder
        .state_dir(own)
        .session(SessionName::parse(session)?)
        .project(own)
        .fsync(Fsync::Never)
        .secrets(super::secrets())
        .approver(person.approver());
    Ok(tools::all(&stage.log, remark)
        .into_iter()
        .fold(builder, Builder::tool))
}

/// Configures the shipped policies, in a folder that a case may change, with `labels.toml`.
fn watched(own: &Path) -> Result<Config> {
    let folder = copied(own)?;
    watched_config(own, &folder)
}

/// Returns the error for a policy folder with this fault; fails if there is no error.
pub(super) fn refusal(stage: &Stage, attack: Attack) -> Result<String> {
    let own = TempDir::with_prefix("airlock-folder-")?;
    let folder = copied(own.path())?;
    attack.commit(&folder)?;
    let config = match watched_config(own.path(), &folder) {
        Ok(config) => config,
        Err(problem) => return Ok(problem.to_string()),
    };
    let builder = Broker::builder()
        .config(config)
        .engine(engine())
        .state_dir(own.path());
    let all = tools::all(&stage.log, "").into_iter();
    let built = stage
        .runtime
        .block_on(all.fold(builder, Builder::tool).build());
    match built {
        Ok(_) => anyhow::bail!("the broker accepted the policy folder"),
        Err(error) => Ok(error.to_string()),
    }
}

fn copied(own: &Path) -> Result<std::path::PathBuf> {
    let folder = own.join("policies");
    std::fs::create_dir_all(&folder)?;
    for entry in std::fs::read_dir(workspace().join("policies"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "cedar") {
            std::fs::copy(&path, folder.join(path.file_name().context("a name")?))?;
        }
    }
    Ok(folder)
}

/// Configures the labels of the `box` tools, and these policies.
pub(super) fn watched_config(state: &Path, policies: &Path) -> Result<Config> {
    let flags = Flags {
        labels: vec![workspace().join("tests/hostile/labels.toml")],
        policies: vec![policies.to_owned()],
        state_dir: Some(state.to_owned()),
        ..Flags::default()
    };
    let environment = Environment::from([("HOME", "/nowhere")]);
    Config::load(flags, &environment).map_err(|problem| anyhow::anyhow!("{problem}"))
}

fn grant(at: usize, given: &PriorGrant, case: &CaseFile, like: &Broker) -> Result<Grant> {
    const DAY_MS: u64 = 86_400_000;
    let catalog = like.catalog();
    let tool = catalog
        .find(&given.tool)
        .with_context(|| format!("no tool {}", given.tool))?;
    let condition = match &given.args {
        Some(args) => Condition::exactly(args).context("too many fields")?,
        None => Condition::anything(),
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let now_ms = u64::try_from(now.as_millis())?;
    let mut grant = Grant {
        id: GrantId(format!("given-{at}").into()),
        scope: given.scope,
        tool: given.tool.clone(),
        description: tool.description_digest,
        script: Some(Digest::sha256(case.script.as_bytes())),
        policy: like.rules().digest(),
        condition,
        uses_max: given.uses_max,
        uses: 0,
        given_at_ms: now_ms,
        expires_at_ms: now_ms + DAY_MS,
        labels: Labels::worst().joined(&tool.labelling.reads),
        shown: Digest::sha256(b"the header of the case"),
        by: "the header of the case".into(),
    };
    match given.but {
        None => {}
        Some(GrantMismatch::OtherScript) => grant.script = Some(Digest::sha256(b"another script")),
        Some(GrantMismatch::OtherRules) => grant.policy = Digest::sha256(b"other rules"),
        Some(GrantMismatch::OtherDescription) => {
            grant.description = Digest::sha256(b"another description")
        }
        Some(GrantMismatch::Expired) => grant.expires_at_ms = now_ms,
        Some(GrantMismatch::UsedUp) => grant.uses = grant.uses_max.get(),
        Some(GrantMismatch::NoLabels) => grant.labels = Labels::default(),
    }
    Ok(grant)
}

/// Revokes every stored grant.
fn revoke(state: &Path) -> Result<()> {
    for (file, shared) in SharedFile::all(state)? {
        for kept in shared?.grants {
            file.change(|shared| shared.end(&kept.grant.id, "it was revoked", 1))?;
        }
    }
    Ok(())
}
