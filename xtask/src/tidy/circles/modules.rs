//! Reads the modules of a crate with their items and imports, and resolves paths to modules.

use std::collections::{BTreeMap, BTreeSet};

use super::lexer::{Token, tokens};
use crate::tidy::File;

pub(super) type ModuleId = usize;

/// Keywords before the name of an item.
const ITEMS: [&str; 9] = [
    "struct",
    "enum",
    "union",
    "trait",
    "fn",
    "const",
    "static",
    "type",
    "macro_rules",
];
/// First segments of a path that needs no import.
const ROOTS: [&str; 3] = ["crate", "super", "self"];

/// The modules of one library. The first module is the root.
pub(super) struct Crate(Vec<Module>);

#[derive(Default)]
struct Module {
    name: String,
    path: String,
    parent: Option<ModuleId>,
    children: BTreeMap<String, ModuleId>,
    items: BTreeSet<String>,
    imports: Vec<Import>,
    uses: Vec<UsedPath>,
}

/// A name that a `use` brings into its module.
struct Import {
    /// The name, or `None` for `*`.
    name: Option<String>,
    segments: Vec<String>,
}

/// A path in the text of a module, in a `use` or elsewhere.
pub(super) struct UsedPath {
    pub(super) segments: Vec<String>,
    pub(super) line: usize,
}

/// The meaning of the part of a path that is resolved so far.
#[derive(Clone, Copy, PartialEq)]
enum Meaning {
    Module(ModuleId),
    /// An item of this module, or something inside an item.
    Item(ModuleId),
}

/// A file that is read as a module.
struct Source<'a> {
    file: &'a File,
    module: ModuleId,
    /// The folder of its child modules.
    folder: String,
}

impl Crate {
    pub(super) fn read(root: &File, files: &[File]) -> Self {
        let by_path: BTreeMap<&str, &File> = files.iter().map(|it| (&*it.path, it)).collect();
        let mut krate = Self(vec![Module {
            path: root.path.clone(),
            ..Module::default()
        }]);
        let folder = root.path.trim_end_matches("lib.rs");
        let mut open = vec![Source {
            file: root,
            module: 0,
            folder: folder.to_owned(),
        }];
        while let Some(source) = open.pop() {
            for (module, folder) in krate.read_file(&source) {
                let name = krate.name(module).to_owned();
                let candidates = [
                    format!("{folder}{name}.rs"),
                    format!("{folder}{name}/mod.rs"),
                ];
                let file = candidates.iter().find_map(|it| by_path.get(it.as_str()));
                if let (Some(file), Some(entry)) = (file, krate.0.get_mut(module)) {
                    entry.path.clone_from(&file.path);
                    open.push(Source {
                        file,
                        module,
                        folder: format!("{folder}{name}/"),
                    });
                }
            }
        }
        krate
    }

    /// Reads a file. Returns the modules that it declares without a body, with the folder of each.
    fn read_file(&mut self, source: &Source<'_>) -> Vec<(ModuleId, String)> {
        let tokens = tokens(&source.file.text);
        let mut reader = Reader {
            krate: self,
            tokens: &tokens,
            at: 0,
            outside: Vec::new(),
        };
        reader.module(source.module, &source.folder);
        reader.outside
    }

    fn add(&mut self, parent: ModuleId, name: &str) -> ModuleId {
        let id = self.0.len();
        self.0.push(Module {
            name: name.to_owned(),
            path: self.path(parent).to_owned(),
            parent: Some(parent),
            ..Module::default()
        });
        if let Some(parent) = self.0.get_mut(parent) {
            parent.children.insert(name.to_owned(), id);
        }
        id
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = ModuleId> {
        0..self.0.len()
    }

    pub(super) fn name(&self, module: ModuleId) -> &str {
        self.0.get(module).map_or("", |it| it.name.as_str())
    }

    /// Returns the path of the file that contains the module.
    pub(super) fn path(&self, module: ModuleId) -> &str {
        self.0.get(module).map_or("", |it| it.path.as_str())
    }

    pub(super) fn uses(&self, module: ModuleId) -> &[UsedPath] {
        self.0.get(module).map_or(&[], |it| it.uses.as_slice())
    }

    fn parent(&self, module: ModuleId) -> Option<ModuleId> {
        self.0.get(module)?.parent
    }

    /// Returns the modules from the root to this one.
    fn way(&self, module: ModuleId) -> Vec<ModuleId> {
        let mut way: Vec<_> = std::iter::successors(Some(module), |it| self.parent(*it)).collect();
        way.reverse();
        way
    }

    /// Returns the closest common ancestor of two modules, and its two children that contain them.
    /// Returns `None` if one module contains the other.
    pub(super) fn siblings(
        &self,
        one: ModuleId,
        other: ModuleId,
    ) -> Option<(ModuleId, (ModuleId, ModuleId))> {
        let (one, other) = (self.way(one), self.way(other));
        let at = one.iter().zip(&other).position(|(a, b)| a != b)?;
        Some((
            *one.get(at.checked_sub(1)?)?,
            (*one.get(at)?, *other.get(at)?),
        ))
    }

    /// Returns the modules that define the item of a path. There are several modules if a name has
    /// several meanings, and none if the item is in another crate.
    pub(super) fn resolve(&self, module: ModuleId, segments: &[String]) -> BTreeSet<ModuleId> {
        let meanings = self.meanings(module, segments, &mut BTreeSet::new());
        let defines = |meaning| match meaning {
            Meaning::Module(module) | Meaning::Item(module) => module,
        };
        meanings.into_iter().map(defines).collect()
    }

    /// Returns the meanings of a path. `seen` contains the names that are being resolved, to end
    /// cycles.
    fn meanings(
        &self,
        module: ModuleId,
        segments: &[String],
        seen: &mut BTreeSet<(ModuleId, String)>,
    ) -> Vec<Meaning> {
        let Some((first, rest)) = segments.split_first() else {
            return vec![Meaning::Module(module)];
        };
        let mut current = match first.as_str() {
            "crate" => vec![Meaning::Module(0)],
            "self" => vec![Meaning::Module(module)],
            "super" => self
                .parent(module)
                .map(Meaning::Module)
                .into_iter()
                .collect(),
            name => self.lookup(module, name, seen),
        };
        for segment in rest {
            let mut next = Vec::new();
            for meaning in current {
                match (meaning, segment.as_str()) {
                    (Meaning::Item(_), _) => next.push(meaning),
                    (Meaning::Module(it), "super") => {
                        next.extend(self.parent(it).map(Meaning::Module));
                    }
                    (Meaning::Module(it), name) => next.extend(self.lookup(it, name, seen)),
                }
            }
            current = next;
        }
        current
    }

    /// Returns the meanings of a name in a module: an item of the module, or an import. Glob
    /// imports count only if the name has no other meaning.
    fn lookup(
        &self,
        id: ModuleId,
        name: &str,
        seen: &mut BTreeSet<(ModuleId, String)>,
    ) -> Vec<Meaning> {
        let key = (id, name.to_owned());
        let Some(module) = self.0.get(id).filter(|_| seen.insert(key.clone())) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        found.extend(module.children.get(name).copied().map(Meaning::Module));
        if module.items.contains(name) {
            found.push(Meaning::Item(id));
        }
        let named = |it: &&Import| it.name.as_deref() == Some(name);
        for import in module.imports.iter().filter(named) {
            found.extend(self.meanings(id, &import.segments, seen));
        }
        if found.is_empty() {
            for import in module.imports.iter().filter(|it| it.name.is_none()) {
                for meaning in self.meanings(id, &import.segments, seen) {
                    if let Meaning::Module(from) = meaning {
                        found.extend(self.lookup(from, name, seen));
                    }
                }
            }
        }
        seen.remove(&key);
        found
    }
}

/// A reader of one file's tokens.
struct Reader<'a> {
    krate: &'a mut Crate,
    tokens: &'a [Token<'a>],
    at: usize,
    outside: Vec<(ModuleId, String)>,
}

impl<'a> Reader<'a> {
    fn text(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |it| it.text)
    }

    /// Reads up to the closing brace of the module, or to the end of the file.
    fn module(&mut self, module: ModuleId, folder: &str) {
        // Number of open blocks within the module.
        let mut depth = 0;
        let mut is_test = false;
        while let Some(token) = self.tokens.get(self.at) {
            match token.text {
                "}" if depth == 0 => return,
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth -= 1,
                "#" if self.text(self.at + 1) == "[" => {
                    is_test |= self.attribute() == ["cfg", "(", "test", ")"];
                    continue;
                }
                "mod" if depth == 0 && self.declares_module() => {
                    self.child(module, folder, std::mem::take(&mut is_test));
                    continue;
                }
                "use" if self.text(self.at + 1) != "<" => {
                    self.at += 1;
                    self.use_tree(module, &mut Vec::new(), depth == 0);
                    is_test = false;
                    continue;
                }
                ";" => is_test = false,
                word if depth == 0 && ITEMS.contains(&word) => {
                    is_test = false;
                    self.item(module, word);
                }
                word if ROOTS.contains(&word) && self.text(self.at + 1) == "::" => {
                    self.plain_path(module);
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Skips `#[…]` and returns the tokens inside.
    fn attribute(&mut self) -> Vec<&'a str> {
        let mut depth = 0;
        let mut inner = Vec::new();
        self.at += 1;
        while let Some(token) = self.tokens.get(self.at) {
            self.at += 1;
            match token.text {
                "[" => depth += 1,
                "]" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            inner.push(token.text);
        }
        inner.into_iter().skip(1).collect()
    }

    fn declares_module(&self) -> bool {
        let is_name = self.tokens.get(self.at + 1).is_some_and(Token::is_name);
        is_name && matches!(self.text(self.at + 2), ";" | "{")
    }

    fn child(&mut self, parent: ModuleId, folder: &str, is_test: bool) {
        let name = self.text(self.at + 1);
        let is_inline = self.text(self.at + 2) == "{";
        self.at += 3;
        if is_test {
            if is_inline {
                self.pass_block();
            }
            return;
        }
        let child = self.krate.add(parent, name);
        if is_inline {
            self.module(child, &format!("{folder}{name}/"));
            self.at += 1;
        } else {
            self.outside.push((child, folder.to_owned()));
        }
    }

    /// Skips the rest of a block, including its closing brace.
    fn pass_block(&mut self) {
        let mut depth = 1;
        while let Some(token) = self.tokens.get(self.at).filter(|_| depth > 0) {
            match token.text {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            self.at += 1;
        }
    }

    fn item(&mut self, module: ModuleId, word: &str) {
        let name = match word {
            "macro_rules" => self.text(self.at + 2),
            _ => self.text(self.at + 1),
        };
        if let Some(module) = self.krate.0.get_mut(module) {
            module.items.insert(name.to_owned());
        }
    }

    /// Reads one tree of a `use`, up to the token that ends it. `brings` is true if the tree's
    /// names become names of the module.
    fn use_tree(&mut self, module: ModuleId, before: &mut Vec<String>, brings: bool) {
        let outer = before.len();
        while let Some(token) = self.tokens.get(self.at) {
            match token.text {
                "{" => {
                    self.at += 1;
                    while !matches!(self.text(self.at), "}" | "") {
                        self.use_tree(module, before, brings);
                        if self.text(self.at) == "," {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    break;
                }
                "*" => {
                    self.at += 1;
                    self.note(module, (before, token.line), brings.then_some(None));
                    break;
                }
                "::" => self.at += 1,
                name if token.is_name() => {
                    self.at += 1;
                    // `self` within braces stands for the path before them.
                    if name != "self" || before.is_empty() {
                        before.push(name.to_owned());
                    }
                    if self.text(self.at) == "::" {
                        continue;
                    }
                    let mut brought = before.last().cloned().unwrap_or_default();
                    if self.text(self.at) == "as" {
                        brought = self.text(self.at + 1).to_owned();
                        self.at += 2;
                    }
                    self.note(
                        module,
                        (before, token.line),
                        brings.then_some(Some(brought)),
                    );
                    break;
                }
                _ => break,
            }
        }
        before.truncate(outer);
    }

    fn note(
        &mut self,
        module: ModuleId,
        (segments, line): (&[String], usize),
        brought: Option<Option<String>>,
    ) {
        let Some(module) = self.krate.0.get_mut(module) else {
            return;
        };
        let segments = segments.to_vec();
        module.uses.push(UsedPath {
            segments: segments.clone(),
            line,
        });
        if let Some(name) = brought {
            module.imports.push(Import { name, segments });
        }
    }

    /// Reads a path such as `crate::a::b`.
    fn plain_path(&mut self, module: ModuleId) {
        let line = self.tokens.get(self.at).map_or(0, |it| it.line);
        let mut segments = vec![self.text(self.at).to_owned()];
        self.at += 1;
        while self.text(self.at) == "::" && self.tokens.get(self.at + 1).is_some_and(Token::is_name)
        {
            segments.push(self.text(self.at + 1).to_owned());
            self.at += 2;
        }
        self.note(module, (&segments, line), None);
    }
}
