//! Finds import circles: the child modules of a module must not import each other in a circle. An
//! import by any descendant of a child counts as an import by the child. An import of a re-exported
//! item counts as an import of the module that defines the item. Test modules are not checked.

mod lexer;
mod modules;

use std::collections::{BTreeMap, BTreeSet};

use super::{File, Finding, Rule};
use modules::{Crate, ModuleId};

/// Folders whose library crates are checked.
const FOLDERS: [&str; 2] = ["broker/", "codegen/"];
/// Maximum number of imports that a finding lists for each pair of modules.
const IMPORTS_SHOWN_MAX: usize = 3;

/// Pairs of children of one module, where the first imports the second, with the imports.
type Arrows = BTreeMap<(ModuleId, ModuleId), BTreeSet<Import>>;

/// One import of another module, with its file.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Import {
    file: String,
    line: usize,
    path: String,
}

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let is_checked = |path: &str| FOLDERS.iter().any(|folder| path.starts_with(folder));
    files
        .iter()
        .filter(|file| is_checked(&file.path) && file.path.ends_with("src/lib.rs"))
        .flat_map(|root| check_crate(root, files))
        .collect()
}

fn check_crate(root: &File, files: &[File]) -> Vec<Finding> {
    let krate = Crate::read(root, files);
    let mut findings = Vec::new();
    for (parent, arrows) in arrows_by_parent(&krate) {
        for circle in circles(&arrows) {
            let what = describe(&krate, &circle, &arrows);
            findings.push(Finding {
                rule: Rule::ImportCircle,
                path: krate.path(parent).to_owned(),
                line: 1,
                what,
            });
        }
    }
    findings
}

/// Returns the imports between the children of each module.
fn arrows_by_parent(krate: &Crate) -> BTreeMap<ModuleId, Arrows> {
    let mut all: BTreeMap<ModuleId, Arrows> = BTreeMap::new();
    for from in krate.ids() {
        for used in krate.uses(from) {
            for to in krate.resolve(from, &used.segments) {
                if let Some((parent, arrow)) = krate.siblings(from, to) {
                    let import = Import {
                        file: krate.path(from).to_owned(),
                        line: used.line,
                        path: used.segments.join("::"),
                    };
                    let arrows = all.entry(parent).or_default();
                    arrows.entry(arrow).or_default().insert(import);
                }
            }
        }
    }
    all
}

/// Returns groups of modules in which each module can reach every other.
fn circles(arrows: &Arrows) -> Vec<BTreeSet<ModuleId>> {
    let modules: BTreeSet<ModuleId> = arrows.keys().flat_map(|(a, b)| [*a, *b]).collect();
    let reached: BTreeMap<ModuleId, BTreeSet<ModuleId>> = modules
        .iter()
        .map(|module| (*module, reachable(*module, arrows)))
        .collect();
    let reaches = |a: &ModuleId, b: &ModuleId| reached.get(a).is_some_and(|it| it.contains(b));
    let mut circles: Vec<BTreeSet<ModuleId>> = Vec::new();
    for module in &modules {
        if reaches(module, module) && !circles.iter().any(|it| it.contains(module)) {
            let others = modules.iter().copied();
            circles.push(
                others
                    .filter(|it| reaches(module, it) && reaches(it, module))
                    .collect(),
            );
        }
    }
    circles
}

fn reachable(from: ModuleId, arrows: &Arrows) -> BTreeSet<ModuleId> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        let next = arrows.keys().filter(|(a, _)| *a == module);
        open.extend(next.map(|(_, b)| *b).filter(|it| found.insert(*it)));
    }
    found
}

/// Lists the modules of a circle, then the imports of each pair of modules. The pair with the
/// fewest imports comes first.
fn describe(krate: &Crate, circle: &BTreeSet<ModuleId>, arrows: &Arrows) -> String {
    let names: Vec<&str> = circle.iter().map(|it| krate.name(*it)).collect();
    let mut text = format!(
        "the modules {} import each other in a circle; remove one of these directions",
        names.join(", ")
    );
    let mut inner: Vec<_> = arrows
        .iter()
        .filter(|((a, b), _)| circle.contains(a) && circle.contains(b))
        .collect();
    inner.sort_by_key(|(_, imports)| imports.len());
    for ((from, to), imports) in inner {
        text.push_str(&format!(
            "\n    {} -> {}:",
            krate.name(*from),
            krate.name(*to)
        ));
        for import in imports.iter().take(IMPORTS_SHOWN_MAX) {
            let Import { file, line, path } = import;
            text.push_str(&format!(" {file}:{line} imports {path};"));
        }
        match imports.len().saturating_sub(IMPORTS_SHOWN_MAX) {
            0 => {
                text.pop();
            }
            more => text.push_str(&format!(" and {more} more")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the findings. `files` contains paths below `broker/src`, with their texts.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| File {
            path: format!("broker/src/{path}"),
            text: (*text).to_owned(),
        };
        let files: Vec<File> = files.iter().map(file).collect();
        check(&files).into_iter().map(|it| it.what).collect()
    }

    fn check_found(files: &[(&str, &str)], expected: &[&str]) {
        let start = "the modules ";
        let circles: Vec<String> = found(files)
            .iter()
            .filter_map(|it| it.strip_prefix(start)?.split_once(" import each other"))
            .map(|(names, _)| names.to_owned())
            .collect();
        assert_eq!(circles, expected, "{files:?}");
    }

    #[test]
    fn check_names_modules_and_imports_of_circle() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\n"),
            (
                "a.rs",
                "use crate::b::{self, Two as Other};\npub struct One;\n",
            ),
            (
                "b.rs",
                "pub struct Two;\nfn f() {\n    crate::a::One::new();\n}\n",
            ),
        ];
        assert_eq!(
            found(&files),
            [
                "the modules a, b import each other in a circle; remove one of these directions\n    \
              b -> a: broker/src/b.rs:3 imports crate::a::One::new\n    \
              a -> b: broker/src/a.rs:1 imports crate::b; broker/src/a.rs:1 imports crate::b::Two"
            ]
        );
    }

    #[test]
    fn parent_and_child_may_use_each_other() {
        check_found(
            &[
                ("lib.rs", "mod a;\nmod leaf;\n"),
                (
                    "a.rs",
                    "mod child;\nuse child::Inner;\npub const MAX: u8 = 1;\n",
                ),
                (
                    "a/child.rs",
                    "use super::MAX;\nuse crate::leaf::Leaf;\npub struct Inner;\n",
                ),
                ("leaf.rs", "pub struct Leaf;\n"),
            ],
            &[],
        );
    }

    #[test]
    fn child_stands_for_everything_below_it() {
        check_found(
            &[
                ("lib.rs", "mod a;\nmod b;\n"),
                ("a.rs", "mod deep;\npub use deep::A;\n"),
                ("a/deep.rs", "use crate::b::B;\npub struct A;\n"),
                ("b.rs", "mod deep;\npub struct B;\n"),
                ("b/deep.rs", "use crate::a::A;\n"),
            ],
            &["a, b"],
        );
    }

    #[test]
    fn reexport_counts_as_module_that_defines_the_item() {
        let middle = |text| {
            [
                ("lib.rs", "mod a;\nmod b;\nmod c;\n"),
                ("a.rs", "use crate::c::Low;\npub struct High;\n"),
                ("b.rs", text),
                ("c.rs", "use crate::b::High;\npub struct Low;\n"),
            ]
        };
        check_found(&middle("pub use crate::a::High;\n"), &["a, c"]);
        check_found(&middle("pub use crate::a::*;\n"), &["a, c"]);
        check_found(&middle("pub struct High;\n"), &[]);
    }

    #[test]
    fn import_through_parent_counts_as_its_child() {
        check_found(
            &[
                ("lib.rs", "mod p;\n"),
                ("p.rs", "mod a;\nmod b;\npub use a::A;\n"),
                ("p/a.rs", "use super::b::B;\npub struct A;\n"),
                ("p/b.rs", "use super::A;\npub struct B;\n"),
            ],
            &["a, b"],
        );
    }

    #[test]
    fn circle_of_three_in_inline_modules_is_found() {
        check_found(
            &[(
                "lib.rs",
                "mod a { use super::b::X; pub enum X { Y } }\n\
                 mod b { pub use crate::c::X; pub fn b() {} }\n\
                 mod c { use crate::a::X::*; use super::b::b; pub struct X; }\n",
            )],
            &["a, b, c"],
        );
    }

    #[test]
    fn tests_comments_and_texts_are_passed_over() {
        check_found(
            &[
                ("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod tests;\n"),
                (
                    "a.rs",
                    "//! use crate::b::B;\n/* /* */ use crate::b::B; */\n\
                     const T: &str = \"use crate::b::B; \\\" \";\nconst R: &str = r#\"crate::b::B\"#;\n\
                     fn f<'a>(c: char, t: &'a str) -> bool { c == '\"' }\npub struct A;\n\
                     #[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n",
                ),
                ("b.rs", "use crate::a::A;\npub struct B;\n"),
                ("tests.rs", "use crate::a::A;\n"),
            ],
            &[],
        );
    }
}
