//! One test of the suite: the requirements in its header, and its result in a realm.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use boa_engine::{Context, JsArgs, JsError, JsResult, JsValue, NativeFunction, Source, js_string};
use guest_differential::realm::{Realm, detach};

/// The relevant parts of a test's header.
pub(crate) struct Case {
    text: String,
    /// The folder of files that tests include.
    harness: PathBuf,
    includes: Vec<String>,
    flags: Vec<String>,
    /// The class of the error with which the test must end.
    negative: Option<String>,
}

/// Success if a test passes, or the reason why it fails.
pub(crate) type Outcome = Result<(), String>;

impl Case {
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read(path).unwrap();
        let text = String::from_utf8_lossy(&text).into_owned();
        let head = text
            .split_once("/*---")
            .and_then(|(_, rest)| rest.split_once("---*/"))
            .map_or("", |(head, _)| head);
        let suite = path.ancestors().find(|folder| folder.ends_with("test"));
        let harness = suite.map_or_else(PathBuf::new, |test| test.with_file_name("harness"));
        Self {
            harness,
            includes: list(head, "includes:"),
            flags: list(head, "flags:"),
            negative: line(head, "type:").filter(|_| head.contains("negative:")),
            text,
        }
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|one| one == flag)
    }

    pub(crate) fn run(&self, realm: &mut Realm) -> Outcome {
        let context = realm.context();
        context.strict(false);
        if !self.has("raw") {
            let mut needed = vec!["assert.js", "sta.js"];
            needed.extend(self.has("async").then_some("doneprintHandle.js"));
            needed.extend(self.includes.iter().map(String::as_str));
            for name in needed {
                let file = self.harness.join(name);
                let text = fs::read(&file).map_err(|why| format!("{name}: {why}"))?;
                let done = context.eval(Source::from_bytes(&text));
                done.map_err(|error| format!("{name}: {error}"))?;
            }
        }
        // The guest runs its scripts in strict mode too.
        let is_loose = self.has("noStrict") || self.has("raw");
        context.strict(!is_loose);
        let ended = context
            .eval(Source::from_bytes(&self.text))
            .and_then(|_| context.run_jobs());
        let outcome = match (ended, &self.negative) {
            (Ok(()), None) => Ok(()),
            (Ok(()), Some(class)) => Err(format!("no {class}")),
            (Err(error), None) => Err(message(&error, context)),
            (Err(error), Some(class)) => {
                let message = message(&error, context);
                match message.starts_with(class.as_str()) {
                    true => Ok(()),
                    false => Err(message),
                }
            }
        };
        if self.has("async") && outcome.is_ok() {
            let printed = context.get_data::<Rc<LastPrint>>().map(|it| it.0.take());
            return match printed.unwrap_or_default().as_str() {
                "Test262:AsyncTestComplete" => Ok(()),
                "" => Err("the test never called `$DONE`".to_owned()),
                other => Err(other.to_owned()),
            };
        }
        outcome
    }
}

fn message(error: &JsError, context: &mut Context) -> String {
    match error.clone().into_opaque(context) {
        Ok(value) => value
            .to_string(context)
            .map_or_else(|_| error.to_string(), |text| text.to_std_string_escaped()),
        Err(_) => error.to_string(),
    }
}

fn line(head: &str, key: &str) -> Option<String> {
    head.lines()
        .find_map(|line| line.trim().strip_prefix(key))
        .map(|value| value.trim().to_owned())
}

/// Returns a list from the header, on one line or with one item per line.
fn list(head: &str, key: &str) -> Vec<String> {
    let Some(first) = line(head, key) else {
        return Vec::new();
    };
    if !first.is_empty() {
        return first
            .trim_matches(['[', ']'])
            .split(',')
            .map(|item| item.trim().to_owned())
            .filter(|item| !item.is_empty())
            .collect();
    }
    head.lines()
        .skip_while(|line| line.trim() != key)
        .skip(1)
        .map_while(|line| line.trim().strip_prefix("- "))
        .map(|item| item.trim().to_owned())
        .collect()
}

type Native = fn(&JsValue, &[JsValue], &mut Context) -> JsResult<JsValue>;

/// Adds the functions that the suite expects from its host.
pub(crate) fn offer(realm: &mut Realm) {
    realm.context().insert_data(Rc::new(LastPrint::default()));
    realm.offer("print", NativeFunction::from_fn_ptr(print));
    let members: [(&str, Native); 4] = [
        ("createRealm", create_realm),
        ("evalScript", eval_script),
        ("detachArrayBuffer", detach),
        ("gc", |_, _, _| Ok(JsValue::undefined())),
    ];
    let members = members.map(|(name, native)| (name, NativeFunction::from_fn_ptr(native)));
    realm.offer_object("$262", members.into());
}

/// The last text that a test printed.
#[derive(Default)]
struct LastPrint(RefCell<String>);

fn print(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let text = args.get_or_undefined(0).to_string(context)?;
    if let Some(printed) = context.get_data::<Rc<LastPrint>>() {
        printed.0.replace(text.to_std_string_escaped());
    }
    Ok(JsValue::undefined())
}

fn create_realm(_: &JsValue, _: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let other = context.create_realm()?;
    let before = context.enter_realm(other);
    let global = context.global_object();
    context.enter_realm(before);
    let answer = boa_engine::JsObject::with_object_proto(context.intrinsics());
    answer.set(js_string!("global"), global, true, context)?;
    Ok(answer.into())
}

fn eval_script(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let text = args.get_or_undefined(0).to_string(context)?;
    context.eval(Source::from_bytes(&text.to_std_string_escaped()))
}

/// Collects the tests below a folder, sorted.
pub(crate) fn below(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            below(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "js") {
            found.push(entry);
        }
    }
}
