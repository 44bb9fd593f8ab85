//! Runs one program in both realms and compares the results.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use boa_engine::{Context, JsArgs, JsNativeError, JsResult, JsValue, NativeFunction, Source};

use crate::describe::{ScriptEnd, tell};
use crate::engine;
use crate::programs::Program;
use crate::realm::{Realm, RealmKind};

/// Maximum number of programs per pair of realms, if none of them changes it.
const PROGRAMS_MAX: usize = 200;

/// Maximum number of iterations of a program's loop; no program needs many.
const ROUNDS_MAX: u64 = 5_000;

/// The output of a program, line by line.
#[derive(Default)]
struct Log(RefCell<Vec<String>>);

/// A program whose results differ in the two realms.
#[derive(Debug, Clone)]
pub struct Difference {
    pub program: Program,
    pub guest: String,
    pub bare: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for statement in &self.program.statements {
            writeln!(f, "    {statement}")?;
        }
        writeln!(f, "  engine: {}", self.bare)?;
        writeln!(f, "  here:   {}", self.guest)
    }
}

/// The two realms, used for several programs.
#[derive(Debug, Default)]
pub struct Pair {
    realms: Option<[Realm; 2]>,
    programs: usize,
}

impl Pair {
    /// # Errors
    /// Fails if the guest's globals cannot be created, which is a defect of the guest.
    pub fn compare(&mut self, program: &Program) -> Result<Option<Difference>, String> {
        let Some(difference) = self.first_look(program)? else {
            return Ok(None);
        };
        // Uses new realms, so that earlier programs have no influence.
        self.forget();
        let again = self.first_look(program)?;
        self.forget();
        Ok(again.or(Some(Difference {
            guest: format!("{} (not in a new realm)", difference.guest),
            ..difference
        })))
    }

    fn first_look(&mut self, program: &Program) -> Result<Option<Difference>, String> {
        if self.programs >= PROGRAMS_MAX {
            self.forget();
        }
        let mut realms = match self.realms.take() {
            Some(realms) => realms,
            None => [open(RealmKind::Bare)?, open(RealmKind::Guest)?],
        };
        let shown = realms.each_mut().map(|realm| output(realm, program));
        let [bare, guest] = match shown {
            [Some(bare), Some(guest)] => [bare, guest],
            shown => {
                // Realms in which a panic happened are not used again, not even to drop them.
                std::mem::forget(realms);
                self.programs = 0;
                let [bare, guest] = shown;
                // If the engine itself panics, there is nothing to compare.
                return Ok(bare.map(|bare| Difference {
                    program: program.clone(),
                    guest: guest
                        .unwrap_or_else(|| vec!["panicked".to_owned()])
                        .join("\n          "),
                    bare: bare.join("\n          "),
                }));
            }
        };
        self.programs += 1;
        if !program.changes_realm {
            self.realms = Some(realms);
        }
        let at = bare
            .iter()
            .zip(&guest)
            .take_while(|(bare, guest)| bare == guest)
            .count();
        if at == bare.len() && at == guest.len() {
            return Ok(None);
        }
        let line = |lines: &[String]| {
            lines
                .get(at)
                .cloned()
                .unwrap_or_else(|| "nothing more".to_owned())
        };
        let difference = Difference {
            program: program.clone(),
            guest: line(&guest),
            bare: line(&bare),
        };
        Ok((!engine::is_known(&difference)).then_some(difference))
    }

    fn forget(&mut self) {
        self.realms = None;
        self.programs = 0;
    }

    /// Returns the same difference with as few statements as possible.
    ///
    /// # Errors
    /// Fails like [`Pair::compare`].
    pub fn shorten(&mut self, mut difference: Difference) -> Result<Difference, String> {
        let mut at = 0;
        while at < difference.program.statements.len() {
            let mut shorter = difference.program.clone();
            shorter.statements.remove(at);
            match self.compare(&shorter)? {
                Some(found) if is_as_telling(&found, &difference) => difference = found,
                _ => at += 1,
            }
        }
        Ok(difference)
    }
}

/// Whether a shortened program shows the same difference; a missing variable would be another
/// difference.
fn is_as_telling(found: &Difference, difference: &Difference) -> bool {
    let is_missing = |one: &Difference| one.guest.contains("ReferenceError");
    is_missing(found) == is_missing(difference)
}

fn open(which: RealmKind) -> Result<Realm, String> {
    let mut realm = Realm::new(which)?;
    let context = realm.context();
    // The guest runs its scripts in strict mode too.
    context.strict(true);
    context
        .runtime_limits_mut()
        .set_loop_iteration_limit(ROUNDS_MAX);
    context.insert_data(Rc::new(Log::default()));
    realm.offer("log", NativeFunction::from_fn_ptr(log));
    realm.offer("attempt", NativeFunction::from_fn_ptr(attempt));
    realm.offer("attemptClass", NativeFunction::from_fn_ptr(attempt_class));
    realm.offer("attemptAny", NativeFunction::from_fn_ptr(attempt_any));
    Ok(realm)
}

/// Returns everything that the program prints; `None` if the engine panics.
fn output(realm: &mut Realm, program: &Program) -> Option<Vec<String>> {
    catch_unwind(AssertUnwindSafe(|| {
        let text = program.text();
        let ending = match program.is_script {
            true => realm.start(&text),
            false => {
                let context = realm.context();
                let ended = context.eval(Source::from_bytes(&text));
                ScriptEnd::of(ended, context).to_string()
            }
        };
        let mut lines = lines(realm.context());
        lines.push(ending);
        lines
    }))
    .ok()
}

fn lines(context: &Context) -> Vec<String> {
    let log = context.get_data::<Rc<Log>>();
    log.map(|log| log.0.take()).unwrap_or_default()
}

fn put_down(line: String, context: &Context) {
    if let Some(log) = context.get_data::<Rc<Log>>() {
        log.0.borrow_mut().push(line);
    }
}

fn log(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let value = args.get_or_undefined(0);
    let line = tell(value, context);
    put_down(line, context);
    Ok(value.clone())
}

fn attempt(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let ended = call(args, context)?;
    put_down(ended.to_string(), context);
    Ok(JsValue::undefined())
}

fn attempt_class(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let line = match call(args, context)? {
        ScriptEnd::Threw(told) => format!("threw {}", told.split('{').next().unwrap_or_default()),
        ended => ended.to_string(),
    };
    put_down(line, context);
    Ok(JsValue::undefined())
}

fn attempt_any(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let line = match call(args, context)? {
        ScriptEnd::Threw(_) => "threw".to_owned(),
        ended => ended.to_string(),
    };
    put_down(line, context);
    Ok(JsValue::undefined())
}

fn call(args: &[JsValue], context: &mut Context) -> JsResult<ScriptEnd> {
    let missing = || JsNativeError::typ().with_message("the function is missing");
    let function = args.get_or_undefined(0).as_callable().ok_or_else(missing)?;
    match function.call(&JsValue::undefined(), &[], context) {
        Err(error) if error.as_engine().is_some() => Err(error),
        ended => Ok(ScriptEnd::of(ended, context)),
    }
}
