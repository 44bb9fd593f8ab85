#!/usr/bin/env python3
"""Renames by `rules/*.rules`. See README.md.

    rename.py [--dry] [--check] [--skip GROUP]... [--only GROUP]... [ROOT]
"""
import fnmatch
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rust_index import Index, KEYWORDS, lex  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
TEXT = (".md", ".toml", ".json", ".yml", ".yaml", ".sh", ".txt", ".cedar", ".js", ".ts", ".html")
STD_METHODS = set(
    "take put of get set len push pop insert remove next iter map and or not as_str lock read write close send recv "
    "clone into from new default fmt eq cmp hash drop deref index add sub mul div wait join find position "
    "keep split rest first last end start min max name path kind text id args".split()
)


class Rules:
    def __init__(self, skip, only):
        self.names = {}  # full path -> (new, group)
        self.words = []  # (glob, old, new, group)
        self.texts = []  # (glob, old, new, group)
        self.crates = []  # (package, new package, folder, new folder, group)
        self.targets = []  # (old path, new path, group)
        self.modrs = False
        self.bad = []
        folder = os.path.join(HERE, "rules")
        for n in sorted(os.listdir(folder)):
            if n.endswith(".rules"):
                group = n[:-6].split("-")[-1]
                if group in skip or (only and group not in only):
                    continue
                self.read(os.path.join(folder, n), group)

    def read(self, path, group):
        base = ""
        for i, line in enumerate(open(path, encoding="utf-8"), 1):
            line = line.split("#")[0].strip()
            if not line:
                continue
            where = f"{os.path.basename(path)}:{i}"
            if line.startswith("["):
                base = line.strip("[]").strip().removeprefix("::")
                continue
            p = line.split()
            if p[0] == "@word" and len(p) == 4:
                self.words.append((p[1], p[2], p[3], group))
            elif p[0] == "@crate" and len(p) == 5:
                self.crates.append((*p[1:], group))
            elif p[0] == "@target" and len(p) == 3:
                self.targets.append((p[1], p[2], group))
            elif p[0] == "@text" and len(p) == 4:
                self.texts.append((p[1], p[2], p[3], group))
            elif p[0] == "@modrs":
                self.modrs = True
            elif len(p) == 2:
                old = p[0]
                if base and not old.startswith("::"):
                    old = base + "::" + old
                old = old.removeprefix("::")
                new = p[1]
                if old in self.names and self.names[old][0] != new:
                    self.bad.append(f"{where}: {old} has two new names")
                if old.split("::")[-1] == new:
                    self.bad.append(f"{where}: {old} is renamed to itself")
                self.names[old] = (new, group)
            else:
                self.bad.append(f"{where}: not a rule: {line}")


def globbed(path, pattern):
    return any(fnmatch.fnmatchcase(path, p) for p in pattern.split(","))


class Renamer:
    def __init__(self, root, rules):
        self.root, self.rules = root, rules
        self.ix = Index(root).load()
        self.edits = defaultdict(dict)  # path -> {(start, end): new}
        self.hits = Counter()
        self.notes = []
        self.new_of = {}  # id(def) -> new name
        self.rule_of = {}
        self.done = set()
        self.collect()

    def note(self, kind, text):
        self.notes.append((kind, text))

    # ---- which definitions ------------------------------------------------
    def collect(self):
        by_full = defaultdict(list)
        for d in self.ix.defs:
            by_full[d.full()].append(d)
        by_tail = defaultdict(list)
        for d in self.ix.defs:
            f = d.full().split("::")
            by_tail[(f[0], f[-1])].append(d)
        self.missing = []
        for old, (new, group) in self.rules.names.items():
            ds = [d for d in by_full.get(old, []) if d.kind not in ("field",)] or by_full.get(old, [])
            if not ds:
                seg = old.split("::")
                now = [self.rules.names.get("::".join(seg[: k + 1]), (seg[k],))[0] for k in range(len(seg))]
                for package, new_package, *_ in self.rules.crates:
                    a, b = package.replace("-", "_"), new_package.replace("-", "_")
                    if now[0] == a or now[0].startswith(a + "@"):
                        now[0] = b + now[0][len(a) :]
                if by_full.get("::".join(now)):
                    self.done.add(old)
                    continue
                # moved since: the same name, once, in the same crate
                seg = old.split("::")
                cands = {id(d): d for d in by_tail.get((seg[0], seg[-1]), []) if d.full() not in self.rules.names}
                same = [d for d in cands.values() if d.kind not in ("field", "variant", "assoc", "method")]
                if len({d.full() for d in same}) == 1 and seg[-1][0].isupper() and len(seg[-1]) > 5:
                    ds = same
                    self.note("moved", f"{old} is now {same[0].full()}")
                else:
                    parent, last = "::".join(seg[:-1]), seg[-1]
                    if by_full.get(parent + "::" + new) or any(d.name == new for d in by_tail.get((seg[0], new), [])):
                        self.done.add(old)
                    else:
                        self.missing.append(old)
                    continue
            for d in ds:
                self.new_of[id(d)] = new
                self.rule_of[id(d)] = old
        # a file that two crates share has its definitions twice
        at = {(d.file.path, d.tok): d for d in self.ix.defs if id(d) in self.new_of and d.kind != "mod"}
        for d in self.ix.defs:
            twin = at.get((d.file.path, d.tok)) if d.file else None
            if twin is not None and id(d) not in self.new_of and d.kind != "mod":
                self.new_of[id(d)] = self.new_of[id(twin)]
                self.rule_of[id(d)] = self.rule_of[id(twin)]
        self.olds = {d.name for d in self.ix.defs if id(d) in self.new_of}
        # methods with receivers: `.name(` is renamed only if every definition of the name is
        byname = defaultdict(list)
        for d in self.ix.defs:
            byname[d.name].append(d)
        self.dot = {}
        for name in self.olds:
            ds = [d for d in byname[name] if d.kind in ("method", "field", "assoc")]
            if not ds:
                continue
            renamed = [d for d in ds if id(d) in self.new_of]
            if not renamed:
                continue
            news = {self.new_of.get(id(d)) for d in ds}
            with_self = [d for d in renamed if d.kind == "field" or self.has_self(d)]
            if len(news) == 1 and name not in STD_METHODS:
                self.dot[name] = news.pop()
            elif with_self:
                for d in with_self:
                    self.note("ambiguous method", f"{d.full()} ({d.file.path}): other definitions of `{name}` exist")

    @staticmethod
    def has_self(d):
        sig = d.file.sig
        return any(t.t == "self" for t in sig[d.tok : d.tok + 12])

    # ---- edits -------------------------------------------------------------
    def edit(self, path, s, e, new, rule):
        old = self.edits[path].get((s, e))
        if old is not None and old[0] != new:
            self.note("conflict", f"{path}:{s}: {old[0]} or {new}")
            return
        if old is None:
            self.edits[path][(s, e)] = (new, rule)
            self.hits[rule] += 1

    def pick(self, defs, name):
        """The new name for a token that means `defs`."""
        mine = [d for d in defs if id(d) in self.new_of and d.name == name]
        if not mine:
            return None, None
        news = {self.new_of[id(d)] for d in mine}
        others = [d for d in defs if id(d) not in self.new_of and d.name == name and d.kind not in ("field",)]
        if len(news) > 1:
            return None, f"several new names: {news}"
        warn = f"also means {[d.full() for d in others]}" if others else None
        return (news.pop(), self.rule_of[id(mine[0])]), warn

    def run_names(self):
        for v in self.ix.views:
            f, sig = v.file, v.file.sig
            n = len(sig)
            for i, tok in enumerate(sig):
                if tok.k != "id" or tok.t not in self.olds:
                    continue
                d = v.deftok.get(i)
                if d is not None:
                    if id(d) in self.new_of:
                        self.edit(f.path, tok.s, tok.e, self.new_of[id(d)], self.rule_of[id(d)])
                    elif d.kind == "field" and tok.t in self.dot:
                        self.edit(f.path, tok.s, tok.e, self.dot[tok.t], "." + tok.t)
                    continue
                prev = sig[i - 1].t if i else ""
                nxt = sig[i + 1].t if i + 1 < n else ""
                scope = v.tokscope[i]
                if i in v.usepaths:
                    segs = v.usepaths[i]
                    got, warn = self.pick(self.narrow(self.ix.resolve(scope, segs, use=True), nxt, use=True), tok.t)
                    if got:
                        self.edit(f.path, tok.s, tok.e, *got)
                    if warn:
                        self.note("use", f"{f.path}:{self.line(f, tok)}: {'::'.join(segs)}: {warn}")
                    continue
                if prev == ".":
                    if tok.t in self.dot:
                        self.edit(f.path, tok.s, tok.e, self.dot[tok.t], "." + tok.t)
                    continue
                segs = self.ix.prefix(sig, i)
                if segs is None:
                    if tok.t in self.dot:
                        self.edit(f.path, tok.s, tok.e, self.dot[tok.t], "." + tok.t)
                    continue
                if len(segs) == 1 and tok.t[0].islower():
                    if not self.is_item(v, i, prev, nxt):
                        if self.is_field_key(sig, i, prev, nxt) and tok.t in self.dot and any(
                            d.kind == "field" for d in self.ix.defs if d.name == tok.t and id(d) in self.new_of
                        ):
                            self.edit(f.path, tok.s, tok.e, self.dot[tok.t], "." + tok.t)
                        continue
                if nxt == ":" and len(segs) == 1 and tok.t[0].islower():
                    continue
                got, warn = self.pick(self.narrow(self.ix.resolve(scope, segs), nxt), tok.t)
                if got:
                    if len(segs) == 1 and tok.t[0].islower() and nxt != "::" and self.bound(v, i, got[0]):
                        self.note("shadowed", f"{f.path}:{self.line(f, tok)}: {tok.t} -> {got[0]}, which is a local name there")
                    self.edit(f.path, tok.s, tok.e, *got)
                    if warn:
                        self.note("path", f"{f.path}:{self.line(f, tok)}: {'::'.join(segs)}: {warn}")
            self.attr_paths(v)

    @staticmethod
    def is_field_key(sig, i, prev, nxt):
        return nxt == ":" and prev in ("{", ",")

    def narrow(self, defs, nxt, use=False):
        """Of several meanings those that fit what follows."""
        if len(defs) < 2:
            return defs
        if nxt == "::":
            out = [d for d in defs if d.kind in ("mod", "crate", "struct", "enum", "trait", "type", "union")]
            return out or defs
        if nxt == "!":
            out = [d for d in defs if d.kind == "macro"]
            return out or defs
        if use:
            return defs
        out = [d for d in defs if d.kind not in ("mod", "crate")]
        return out or defs

    def line(self, f, tok):
        return f.text.count("\n", 0, tok.s) + 1

    def is_item(self, v, i, prev, nxt):
        """Whether a lone lower-case name is an item and no local variable."""
        name = v.file.sig[i].t
        if nxt == "::":
            return True
        if nxt == "!":
            return True
        if name.count("_") >= 3 and not self.bound(v, i):
            return nxt != ":"
        if nxt == "(":
            return prev not in ("fn", "let") and not self.bound(v, i)
        if prev in ("(", ",", "=", "=>", "return", "&", "?", "{", "|", "||", ";") and nxt in (")", ",", ";", "}", "?", ".", "]", "as"):
            return not self.bound(v, i)
        return False

    def bound(self, v, i, name=None):
        """Whether the enclosing function binds the name of token i to something local."""
        sig = v.file.sig
        name = name or sig[i].t
        s = v.tokscope[i]
        outer = None
        while s is not None:
            if s.kind == "fn":
                outer = s
            s = s.parent
        if outer is None:
            return False
        a = outer.fn.tok if outer.fn else outer.start
        if i + 1 < len(sig) and sig[i + 1].t == "(":
            # called: only a closure or a parameter could be meant
            for j in range(a, i):
                if sig[j].t != name or sig[j].k != "id":
                    continue
                if sig[j - 1].t in ("let", "mut") and sig[j + 1].t == "=" and sig[j + 2].t in ("|", "||", "move", "&", "async"):
                    return True
                if sig[j + 1].t == ":" and j < outer.start and sig[j - 1].t in ("(", ",", "mut"):
                    return True
                if sig[j - 1].t in ("let", "mut") and sig[j + 1].t == ":" and any(x.t == ";" for x in sig[j:i]):
                    return True
            return False
        for j in range(a, min(outer.end or len(sig), len(sig))):
            if sig[j].t != name or sig[j].k != "id":
                continue
            p, x = sig[j - 1].t, sig[j + 1].t
            if p in ("let", "mut", "ref", "for"):
                return True
            if x == ":" and p in ("(", ",", "|", "mut", "{"):
                if p in ("(", "|", "mut") or self.in_params(sig, j, a, outer):
                    return True
            if p in ("|", ",") and x in ("|",):
                return True
            if p == "|" and x in (",", "|", ":"):
                return True
            if p == "(" and x == ")" and sig[j - 2].t in ("Some", "Ok", "Err") and sig[j + 2].t in ("=", "=>", "|", "if"):
                return True
            if p in ("(", ",") and x in (",", ")"):
                k = j
                depth = 0
                while k > a and k > j - 40:
                    k -= 1
                    if sig[k].t in (")", "]", "}"):
                        depth += 1
                    elif sig[k].t in ("(", "[", "{"):
                        depth -= 1
                        if depth < -2:
                            break
                    elif sig[k].t == "let" or (sig[k].t == "for"):
                        between = [t.t for t in sig[k:j]]
                        if "=" not in between and "in" not in between:
                            return True
                        break
                    elif sig[k].t in (";",):
                        break
        return False

    @staticmethod
    def in_params(sig, j, a, outer):
        return j < outer.start

    def attr_paths(self, v):
        """Paths in strings of serde attributes."""
        sig = v.file.sig
        for i, tok in enumerate(sig):
            if tok.k != "str" or not v.inattr[i] or i < 2 or sig[i - 1].t != "=":
                continue
            if sig[i - 2].t not in ("deserialize_with", "serialize_with", "with", "default", "skip_serializing_if", "try_from", "from", "into"):
                continue
            segs = tok.t[1:-1].split("::")
            scope = v.tokscope[i]
            pos = tok.s + 1
            for k in range(len(segs)):
                if segs[k] in self.olds:
                    got, _ = self.pick(self.ix.resolve(scope, segs[: k + 1]), segs[k])
                    if got:
                        self.edit(v.file.path, pos, pos + len(segs[k]), *got)
                pos += len(segs[k]) + 2

    # ---- comments ----------------------------------------------------------
    SPAN = re.compile(r"`([^`\n]+)`|\]\(([A-Za-z_][\w:]*)\)")
    IDENT = re.compile(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*")

    def run_comments(self):
        for v in self.ix.views:
            f = v.file
            ends = [t.s for t in f.sig]
            import bisect

            for c in f.com:
                if c.k != "lc":
                    continue
                j = bisect.bisect_left(ends, c.s)
                if c.t.startswith("//!") :
                    scope = v.tokscope[j] if j < len(f.sig) and j > 0 else v.mod.scope
                else:
                    scope = v.tokscope[j] if j < len(f.sig) else v.mod.scope
                for m in self.SPAN.finditer(c.t):
                    g = 1 if m.group(1) is not None else 2
                    content, at = m.group(g), c.s + m.start(g)
                    linked = g == 2 or c.t[m.start() - 1 : m.start()] == "["
                    target = re.match(r"\]\(([A-Za-z_][\w:]*)\)", c.t[m.end() :]) if g == 1 else None
                    if target and content in self.olds and target.group(1).split("::")[-1] == content:
                        got, _ = self.pick(self.ix.resolve(scope, target.group(1).split("::")), content)
                        if got:
                            self.edit(f.path, at, at + len(content), *got)
                            continue
                    for p in self.IDENT.finditer(content):
                        segs = p.group().split("::")
                        pos = at + p.start()
                        for k in range(len(segs)):
                            name = segs[k]
                            if name in self.olds:
                                whole = p.group() == content.removesuffix("()")
                                sure = len(segs) > 1 or linked or name[0].isupper() or name.count("_") >= 2 or content.endswith("()")
                                if whole and sure:
                                    got, _ = self.pick(self.ix.resolve(scope, segs[: k + 1]), name)
                                    if got:
                                        self.edit(f.path, pos, pos + len(name), *got)
                            pos += len(name) + 2

    # ---- words: variables and fields ----------------------------------------
    def serialised(self, d):
        o = d.owner
        return o is not None and any(x in ("Serialize", "Deserialize", "Args", "Parser", "Subcommand", "ValueEnum") for x in o.derives)

    def run_words(self):
        byfile = defaultdict(list)
        for glob, old, new, group in self.rules.words:
            for path in self.ix.files:
                if path.endswith(".rs") and globbed(path, glob):
                    byfile[path].append((old, new))
        protected = defaultdict(set)
        for d in self.ix.defs:
            if d.kind == "field" and self.serialised(d):
                protected[d.name].add(d.full())
        seen_files = set()
        for v in self.ix.views:
            f = v.file
            if f.path not in byfile or f.path in seen_files:
                continue
            seen_files.add(f.path)
            table = {}
            for old, new in byfile[f.path]:
                table.setdefault(old, new)
            sig, n = f.sig, len(f.sig)
            fields = {d.name for d in self.ix.defs if d.kind == "field"}
            for i, tok in enumerate(sig):
                if tok.k in ("str", "raw") and "{" in tok.t and not v.inattr[i]:
                    for m in re.finditer(r"(?<!\{)\{([a-z_]\w*)(?=[}:.])", tok.t):
                        if m.group(1) in table:
                            self.edit(f.path, tok.s + m.start(1), tok.s + m.end(1), table[m.group(1)], "@word " + m.group(1))
                    continue
                if tok.k != "id" or tok.t not in table or (tok.s, tok.e) in self.edits[f.path]:
                    continue
                d = v.deftok.get(i)
                prev = sig[i - 1].t if i else ""
                nxt = sig[i + 1].t if i + 1 < n else ""
                new = table[tok.t]
                if d is not None:
                    if d.kind == "field" and self.serialised(d):
                        self.note("serialised field left", f"{d.full()} ({f.path})")
                        continue
                    if d.kind not in ("field", "method"):
                        continue
                elif prev == "::" and i not in v.usepaths:
                    segs = self.ix.prefix(sig, i)
                    ds = self.ix.resolve(v.tokscope[i], segs) if segs else []
                    tables = [dict(byfile.get(d.file.path, ())) for d in ds if d.kind == "method"]
                    if not any(t.get(tok.t) == new for t in tables):
                        continue
                elif i in v.usepaths or nxt in ("::", "!"):
                    continue
                elif prev != "." and nxt == "(" and self.ix.resolve(v.tokscope[i], [tok.t]) and not self.bound(v, i):
                    continue
                elif v.inattr[i]:
                    continue
                if tok.t in protected and (prev == "." or nxt == ":"):
                    self.note("may be serialised", f"{f.path}:{self.line(f, tok)}: {tok.t}: {sorted(protected[tok.t])}")
                self.edit(f.path, tok.s, tok.e, new, "@word " + tok.t)
                s = v.tokscope[i]
                while s is not None and s.kind != "fn":
                    s = s.parent
                if s is not None and prev != ".":
                    for j in range(s.fn.tok, s.end or n):
                        if sig[j].t == new and sig[j].k == "id" and sig[j - 1].t not in (".", "::") and sig[j + 1].t not in ("::", ":", "("):
                            self.note("word collision", f"{f.path}:{self.line(f, tok)}: {tok.t} -> {new} is also a name in this function")
                            break

    def check_words(self):
        """Fields and methods that a word rule renames in one file and not in another."""
        olds = {}
        for _, old, new, _ in self.rules.words:
            olds.setdefault(old, set()).add(new)
        for old in sorted(olds):
            renamed, kept, dots_new, dots_old = set(), set(), Counter(), Counter()
            for d in self.ix.defs:
                if d.name == old and d.kind in ("field", "method") and d.file:
                    t = d.file.sig[d.tok]
                    (renamed if (t.s, t.e) in self.edits[d.file.path] else kept).add(f"{d.full()}")
            for p, f in self.ix.files.items():
                for i, t in enumerate(f.sig):
                    if t.k == "id" and t.t == old and i and f.sig[i - 1].t == ".":
                        (dots_new if (t.s, t.e) in self.edits[p] else dots_old)[p] += 1
            if renamed and dots_old or kept and dots_new:
                self.note("word in part", f"{old}: fields renamed {sorted(renamed)} kept {sorted(kept)}; uses renamed in {dict(dots_new)} kept in {dict(dots_old)}")

    # ---- files ---------------------------------------------------------------
    def moves(self):
        """Old path -> new path for every file of the tree that moves."""
        ix = self.ix
        dirmap, filemap = {}, {}

        def new_name(m):
            return self.new_of.get(id(m.d), m.name)

        newdir = {}

        def child_dir(m):
            """(old, new) folder in which the children of a file module lie."""
            if id(m) in newdir:
                return newdir[id(m)]
            f = m.file
            if m.parent is None:
                d = os.path.dirname(f.path)
                t = dict(self.target_dirs()).get(d, d)
                out = (d, t)
            elif m.scope is not None and m.scope.start >= 0:  # inline
                o, n = child_dir(m.parent)
                out = (f"{o}/{m.name}", f"{n}/{new_name(m)}")
            elif m.pathattr is not None:
                d = os.path.dirname(f.path)
                out = (d, None)
            else:
                o, n = child_dir(m.parent)
                if n is None:
                    n = o
                out = (f"{o}/{m.name}", f"{n}/{new_name(m)}")
            newdir[id(m)] = out
            return out

        for old, new in self.target_dirs():
            dirmap[old] = new
        for v in ix.views:
            m, p = v.mod, v.file.path
            if m.parent is None or m.pathattr is not None:
                continue
            o, n = child_dir(m)
            if n is None:
                continue
            if p.endswith("/mod.rs"):
                target = f"{n}.rs" if self.rules.modrs else f"{n}/mod.rs"
            else:
                target = f"{n}.rs"
            if target != p:
                filemap[p] = target
            if o != n:
                dirmap[o] = n
        for old, new, _ in self.rules.targets:
            if old in ix.files:
                filemap[old] = new
        allfiles = self.all_files()
        for p in allfiles:
            if p in filemap:
                continue
            best = max((d for d in dirmap if p.startswith(d + "/")), key=len, default=None)
            if best is not None and dirmap[best] != best:
                filemap[p] = dirmap[best] + p[len(best) :]
        for _, _, old, new, _ in self.rules.crates:
            for p in allfiles:
                q = filemap.get(p, p)
                if q.startswith(old + "/"):
                    filemap[p] = new + q[len(old) :]
            dirmap[old] = new
        self.dirmap = dirmap
        return {a: b for a, b in filemap.items() if a != b}

    def target_dirs(self):
        return [(o, n) for o, n, _ in self.rules.targets if not o.endswith(".rs")]

    def all_files(self):
        if not hasattr(self, "_all"):
            out = subprocess.run(["git", "-C", self.root, "ls-files"], capture_output=True, text=True)
            if out.returncode == 0 and out.stdout:
                self._all = [p for p in out.stdout.splitlines() if os.path.isfile(os.path.join(self.root, p))]
            else:
                self._all = []
                for base, dirs, names in os.walk(self.root):
                    dirs[:] = [d for d in dirs if d not in ("target", ".git", "node_modules")]
                    self._all += [os.path.relpath(os.path.join(base, n), self.root) for n in names]
        return self._all

    def run_paths(self):
        """Relative paths in include_str!, #[path]; and paths from the root in any text."""
        moved = self.moves()
        self.moved = moved
        allset = set(self.all_files())
        for f in self.ix.files.values():
            sig = f.sig
            here = os.path.dirname(f.path)
            there = os.path.dirname(moved.get(f.path, f.path))
            for i, tok in enumerate(sig):
                if tok.k != "str" or "." not in tok.t:
                    continue
                is_include = i >= 3 and sig[i - 1].t == "(" and sig[i - 2].t == "!" and sig[i - 3].t.startswith("include")
                is_path = i >= 2 and sig[i - 1].t == "=" and sig[i - 2].t == "path" and f.text[sig[max(0, i - 4)].s : tok.s].replace(" ", "").startswith("#[")
                if not (is_include or is_path):
                    continue
                old = os.path.normpath(os.path.join(here, tok.t[1:-1]))
                if old not in allset:
                    continue
                new = os.path.relpath(moved.get(old, old), there)
                if new != os.path.normpath(tok.t[1:-1]):
                    self.edit(f.path, tok.s, tok.e, f'"{new}"', "@path")
        # paths from the root, longest first
        table = {}
        for o, n in moved.items():
            table[o] = n
        for o, n in self.dirmap.items():
            if o != n:
                table[o] = n
        byname = defaultdict(set)
        for o, n in moved.items():
            if o.endswith(".rs"):
                byname[os.path.basename(o)].add(o)
        pathish = re.compile(r"(?<![\w/.-])(?:[\w.-]+/)+[\w-]+(?:\.[\w.-]*\w)?/?|(?<![\w/.-])[\w-]+\.rs\b")
        self.other = {}
        for p in sorted(allset):
            if not (p.endswith(".rs") or p.endswith(TEXT) or p.startswith(".ci/")):
                continue
            if p in self.ix.files:
                text = self.ix.files[p].text
            else:
                try:
                    text = open(os.path.join(self.root, p), encoding="utf-8").read()
                except (UnicodeDecodeError, FileNotFoundError):
                    continue
            for m in pathish.finditer(text):
                w = m.group()
                tail = "/" if w.endswith("/") else ""
                bare = w.rstrip("/")
                new = None
                if bare in table:
                    new = table[bare]
                else:
                    best = max((d for d in table if bare.startswith(d + "/")), key=len, default=None)
                    if best is not None and not bare.endswith(".rs"):
                        new = table[best] + bare[len(best) :]
                    elif p.endswith(".toml") and "/" in bare and os.path.basename(p) == "Cargo.toml":
                        full = os.path.normpath(os.path.join(os.path.dirname(p), bare))
                        np = os.path.dirname(moved.get(p, p))
                        if full in table or full in allset or os.path.isdir(os.path.join(self.root, full)):
                            target = table.get(full, moved.get(full, full))
                            cand = os.path.relpath(target, np or ".")
                            if full in table or cand != os.path.normpath(bare):
                                new = cand
                    elif bare.endswith(".rs") and "/" in bare:
                        c = [o for o in byname[os.path.basename(bare)] if o.endswith("/" + bare)]
                        if len(c) == 1 and not any(q.endswith("/" + bare) for q in allset if q != c[0]):
                            o, n = c[0], moved[c[0]]
                            cut = len(o) - len(bare)
                            new = n[cut:] if n.startswith(o[:cut]) else None
                if new is not None and new != bare:
                    self.edit(p, m.start(), m.end(), new + tail, "@path")

    # ---- documents -----------------------------------------------------------
    def run_texts(self):
        once = defaultdict(set)
        for d in self.ix.defs:
            if id(d) in self.new_of and d.kind in ("struct", "enum", "trait", "type", "union", "fn"):
                once[d.name].add(self.new_of[id(d)])
        left = defaultdict(int)
        for d in self.ix.defs:
            if id(d) not in self.new_of and d.kind != "field":
                left[d.name] += 1
        tests = {n: next(iter(s)) for n, s in once.items() if n.count("_") >= 3 and len(s) == 1}
        types = {n: next(iter(s)) for n, s in once.items() if n[0].isupper() and len(s) == 1 and not left[n]}
        for p in self.all_files():
            if not (p.endswith(TEXT) or p.startswith(".ci/")):
                continue
            try:
                text = open(os.path.join(self.root, p), encoding="utf-8").read()
            except (UnicodeDecodeError, FileNotFoundError):
                continue
            for m in re.finditer(r"\b[a-z]\w*\b", text):
                if m.group() in tests:
                    self.edit(p, m.start(), m.end(), tests[m.group()], "@doc test")
            if p.endswith(".md"):
                for m in re.finditer(r"`([A-Z]\w+)(?:::\w+)?`", text):
                    if m.group(1) in types:
                        self.edit(p, m.start(1), m.end(1), types[m.group(1)], "@doc type")
        for f in self.ix.files.values():
            for tok in f.sig:
                if tok.k == "str" and tok.t.count("_") >= 3:
                    inner = tok.t[1:-1]
                    if inner in tests:
                        self.edit(f.path, tok.s + 1, tok.e - 1, tests[inner], "@test name in a text")
                    else:
                        for m in re.finditer(r"[a-z]\w*", inner):
                            if m.group() in tests:
                                self.edit(f.path, tok.s + 1 + m.start(), tok.s + 1 + m.end(), tests[m.group()], "@test name in a text")
        for glob, old, new, _ in self.rules.texts:
            for p in self.all_files():
                if globbed(p, glob):
                    text = open(os.path.join(self.root, p), encoding="utf-8").read()
                    for m in re.finditer(r"(?<![\w])" + re.escape(old) + r"(?![\w])", text):
                        self.edit(p, m.start(), m.end(), new, "@text " + old)
        for package, new, folder, newfolder, _ in self.rules.crates:
            a, b = package.replace("-", "_"), new.replace("-", "_")
            seen = set()
            for v in self.ix.views:
                f = v.file
                for i, tok in enumerate(f.sig):
                    if tok.k != "id" or tok.t != a:
                        continue
                    nxt = f.sig[i + 1].t if i + 1 < len(f.sig) else ""
                    prev = f.sig[i - 1].t if i else ""
                    first = v.usepaths.get(i) == [a] if i in v.usepaths else prev not in ("::", ".") and nxt == "::"
                    if first and any(d.kind == "crate" for d in self.ix.resolve(v.tokscope[i], [a], use=i in v.usepaths)):
                        self.edit(f.path, tok.s, tok.e, b, "@crate " + package)
                if f.path in seen:
                    continue
                seen.add(f.path)
                for c in f.com:
                    for m in re.finditer(r"\b" + a + r"(?=::)", c.t):
                        self.edit(f.path, c.s + m.start(), c.s + m.end(), b, "@crate " + package)
            for p in self.all_files():
                if os.path.basename(p) in ("Cargo.toml", "Cargo.lock", "borders.toml"):
                    text = open(os.path.join(self.root, p), encoding="utf-8").read()
                    for m in re.finditer(r'(?<=")' + re.escape(package) + r'(?=")|^' + re.escape(package) + r"(?= *[=.])", text, re.M):
                        self.edit(p, m.start(), m.end(), new, "@crate " + package)

    # ---- checks -----------------------------------------------------------------
    def run_warnings(self):
        types = {d.name: self.new_of[id(d)] for d in self.ix.defs if id(d) in self.new_of and d.name[0].isupper()}
        debug = re.compile(r"\b(" + "|".join(map(re.escape, sorted(types))) + r")\b") if types else None
        if debug:
            for f in self.ix.files.values():
                for tok in f.sig:
                    if tok.k in ("str", "raw"):
                        for m in debug.finditer(tok.t):
                            around = tok.t[max(0, m.start() - 25) : m.end() + 25].replace("\n", " ")
                            if re.search(re.escape(m.group()) + r"\s*[({]|(struct|enum|::)\s*" + re.escape(m.group()), tok.t):
                                self.note("old type name in a text", f"{f.path}:{self.line(f, tok)}: …{around}…")
                                break
            for p in self.all_files():
                if p.endswith((".txt", ".snap", ".out", ".golden", ".md", ".json")):
                    try:
                        text = open(os.path.join(self.root, p), encoding="utf-8").read()
                    except (UnicodeDecodeError, FileNotFoundError):
                        continue
                    for m in re.finditer(r"\b(?:struct|enum) (\w+)", text):
                        if m.group(1) in types:
                            self.note("old type name in a golden", f"{p}: {m.group()}")

    def run_collisions(self):
        for d in self.ix.defs:
            if id(d) not in self.new_of:
                continue
            new = self.new_of[id(d)]
            if new in KEYWORDS:
                self.note("collision", f"{d.full()}: {new} is a keyword")
            if d.kind in ("method", "variant", "field", "assoc"):
                key = "." + new if d.kind == "field" else new
                others = d.owner.members.get(key, []) if d.owner is not None else []
                if any(id(o) not in self.new_of for o in others):
                    self.note("collision", f"{d.full()}: {new} exists in the same type")
                continue
            mod = d.mod.parent if d.kind == "mod" else d.mod
            ns = lambda k: "t" if k in ("mod", "struct", "enum", "trait", "type", "union") else "v"  # noqa: E731
            scope = mod.scope
            for o in scope.items.get(new, []):
                if id(o) not in self.new_of and ns(o.kind) == ns(d.kind):
                    self.note("collision", f"{d.full()}: {new} exists there already")
            for name, os_ in scope.items.items():
                for o in os_:
                    if o is not d and id(o) in self.new_of and self.new_of[id(o)] == new and ns(o.kind) == ns(d.kind) and o.tok != d.tok:
                        self.note("collision", f"{d.full()} and {o.full()} both become {new}")
        # imports and uses under the new names
        for v in self.ix.views:
            for s in v.scopes:
                names = defaultdict(set)
                for name, ds in s.items.items():
                    for d in ds:
                        if d.kind not in ("method", "assoc"):
                            names[self.new_of.get(id(d), name)].add((id(d), "t" if d.kind not in ("fn", "const", "macro") else d.kind))
                ext = defaultdict(set)
                for u in s.uses:
                    if u.glob or u.name == "_":
                        continue
                    ds = self.ix.resolve(s, u.segs, use=True)
                    if not ds:
                        ext[u.name].add("::".join(u.segs))
                    for d in ds:
                        nn = u.name if u.alias else self.new_of.get(id(d), u.name)
                        names[nn].add((id(d), "t" if d.kind not in ("fn", "const", "macro") else d.kind))
                for nn, set_ in names.items():
                    for ns in {x[1] for x in set_}:
                        if len({x[0] for x in set_ if x[1] == ns}) > 1:
                            dd = [d for d in self.ix.defs if id(d) in {x[0] for x in set_ if x[1] == ns}]
                            if any(id(d) in self.new_of for d in dd) and len({(d.file.path, d.tok) for d in dd}) > 1:
                                self.note("collision", f"{v.file.path}: {nn} means {[d.full() for d in dd]}")
                    if nn in ext and any(x[1] == "t" for x in set_):
                        dd = [d for d in self.ix.defs if id(d) in {x[0] for x in set_}]
                        if any(id(d) in self.new_of for d in dd):
                            self.note("collision", f"{v.file.path}: {nn} is also {sorted(ext[nn])}")

    PRELUDE = set("Option Result Some None Ok Err Vec String Box Iterator Default Clone Copy Send Sync Fn FnMut FnOnce Drop ToString ToOwned Into From TryFrom TryInto Eq PartialEq Ord PartialOrd AsRef AsMut Extend IntoIterator".split())

    def plan(self):
        self.run_names()
        self.run_comments()
        self.run_words()
        self.run_paths()
        self.run_texts()
        self.check_words()
        self.run_warnings()
        self.run_collisions()
        for d in self.ix.defs:
            if id(d) in self.new_of and d.kind != "variant" and self.new_of[id(d)] in self.PRELUDE:
                self.note("collision", f"{d.full()}: {self.new_of[id(d)]} is in the prelude")

    def apply(self):
        for path, edits in self.edits.items():
            if path in self.ix.files:
                text = self.ix.files[path].text
            else:
                text = open(os.path.join(self.root, path), encoding="utf-8").read()
            items = sorted(edits.items(), reverse=True)
            last = len(text) + 1
            for (s, e), (new, _) in items:
                if e > last:
                    self.note("conflict", f"{path}:{s}: overlapping edits")
                    continue
                text = text[:s] + new + text[e:]
                last = s
            with open(os.path.join(self.root, path), "w", encoding="utf-8") as f:
                f.write(text)
        for path in self.edits:
            if os.path.basename(path) == "Cargo.lock":
                self.sort_lock(os.path.join(self.root, path))
        git = os.path.exists(os.path.join(self.root, ".git"))
        made = set()
        order = sorted(self.moved.items())
        # through temporary names, as some targets are sources of other moves
        taken = {o for o, _ in order}
        for stage in (0, 1):
            for old, new in order:
                via = new + ".moving" if new in taken else None
                if stage == 0:
                    src, dst = old, via or new
                elif via:
                    src, dst = via, new
                else:
                    continue
                d = os.path.join(self.root, os.path.dirname(dst))
                if d not in made:
                    os.makedirs(d, exist_ok=True)
                    made.add(d)
                done = False
                if git:
                    done = subprocess.run(["git", "-C", self.root, "mv", src, dst], capture_output=True).returncode == 0
                if not done:
                    os.replace(os.path.join(self.root, src), os.path.join(self.root, dst))
        for old, _ in order:
            d = os.path.join(self.root, os.path.dirname(old))
            while d != self.root:
                try:
                    os.rmdir(d)
                except OSError:
                    break
                d = os.path.dirname(d)

    @staticmethod
    def sort_lock(path):
        """The packages of a lock file, and the dependencies of each, in Cargo's order."""
        head, *blocks = open(path, encoding="utf-8").read().split("[[package]]\n")

        def tidy(block):
            m = re.search(r"dependencies = \[\n(.*?)\]", block, re.S)
            if not m:
                return block.strip("\n")
            lines = sorted(m.group(1).splitlines(), key=lambda x: x.strip(' ",').split())
            return (block[: m.start(1)] + "\n".join(lines) + "\n" + block[m.end(1) :]).strip("\n")

        blocks = sorted(map(tidy, blocks), key=lambda b: re.search(r'name = "([^"]+)"', b).group(1))
        with open(path, "w", encoding="utf-8") as f:
            f.write(head + "\n\n".join("[[package]]\n" + b for b in blocks) + "\n")

    def report(self, verbose):
        kinds = Counter()
        for old, (new, group) in sorted(self.rules.names.items()):
            kinds[group] += 1
            if verbose:
                print(f"{self.hits[old]:5} {old} -> {new}  [{group}]")
        print("rules:", dict(kinds), "words:", len(self.rules.words), "texts:", len(self.rules.texts))
        print("places:", sum(len(e) for e in self.edits.values()), "in", len(self.edits), "files; files moved:", len(self.moved))
        for k, n in sorted(self.hits.items()):
            if k.startswith("@"):
                print(f"{n:5} {k}")
        print("applied before:", len(self.done))
        for m in self.missing:
            print("MATCHES NOTHING:", m)
        for b in self.rules.bad:
            print("BAD RULE:", b)
        for k, t in sorted(set(self.notes)):
            print(f"{k.upper()}: {t}")


def graph(ix, moved):
    """What each identifier means, as data that can be compared before and after."""
    out = {}
    for v in ix.views:
        rows = []
        sig = v.file.sig
        for i, tok in enumerate(sig):
            if tok.k != "id" or tok.t in KEYWORDS - {"self"}:
                continue
            if i in v.deftok:
                d = v.deftok[i]
                rows.append((i, "def", [(d.file.path, d.tok)]))
                continue
            if i in v.usepaths:
                ds = ix.resolve(v.tokscope[i], v.usepaths[i], use=True)
            elif i and sig[i - 1].t == ".":
                continue
            else:
                segs = ix.prefix(sig, i)
                if segs is None:
                    continue
                if len(segs) == 1 and tok.t[0].islower() and sig[i + 1].t != "::":
                    if sig[i + 1].t == ":" or sig[i + 1].t == "=" and sig[i - 1].t in ("let", "mut"):
                        continue
                    ds = [d for d in ix.resolve(v.tokscope[i], segs) if d.kind in ("fn", "const")]
                    if ds:
                        rows.append((i, "local?", sorted({(d.file.path, d.tok) for d in ds}, key=str)))
                    continue
                ds = ix.resolve(v.tokscope[i], segs)
            types = [d for d in ds if d.kind in ("mod", "crate", "struct", "enum", "trait", "type", "union")]
            if sig[i + 1].t == "::":
                ds = types or ds
            elif i not in v.usepaths:
                ds = [d for d in ds if d.kind not in ("mod", "crate")] or ds
            rows.append((i, tok.t if not ds else "", sorted({(d.file.path if d.file else d.name, d.tok or 0) if d.kind != "mod" else ("mod", d.mod.file.path if d.mod.file else "", d.mod.scope.start if d.mod.scope else 0) for d in ds}, key=str)))
        out[(v.mod.crate, v.file.path)] = rows
    return out


def compare(before, after, moved, texts=None):
    bad = 0

    def mv(x):
        return tuple(moved.get(y, y) if isinstance(y, str) else y for y in x)

    crates = {}
    a = {(c, moved.get(p, p)): r for (c, p), r in before.items()}
    b = {(c, p): r for (c, p), r in after.items()}
    bykey = defaultdict(list)
    for (c, p), r in b.items():
        bykey[p].append(r)
    for (c, p), rows in a.items():
        rs = bykey.get(p)
        if not rs:
            print("LOST FILE:", p)
            bad += 1
            continue
        c = moved.get(c, c)
        other = next((r for (c2, p2), r in b.items() if p2 == p and c2 == c), rs[0])
        o = {i: (n, t) for i, n, t in other}
        for i, n, t in rows:
            n2, t2 = o.get(i, ("?", []))
            if n == "local?" and n2 == "?":
                if texts is not None:
                    sig = texts[p].sig
                    print(f"LOCAL, OR LEFT BEHIND: {p}: {' '.join(x.t for x in sig[max(0, i - 4) : i + 4])}")
                continue
            if sorted(map(mv, t), key=str) != sorted(map(tuple, t2), key=str):
                bad += 1
                if bad <= 60:
                    print(f"MEANS SOMETHING ELSE: {p} token {i}: {n} {t} -> {n2} {t2}")
            elif not t and n != n2:
                bad += 1
                if bad <= 60:
                    print(f"UNRESOLVED RENAMED: {p} token {i}: {n} -> {n2}")
    print("meanings that differ:", bad)
    return bad


def main():
    args = sys.argv[1:]
    dry = check = verbose = False
    skip, only, rest = [], [], []
    while args:
        a = args.pop(0)
        if a == "--dry":
            dry = True
        elif a == "--check":
            check = True
        elif a == "-v":
            verbose = True
        elif a == "--skip":
            skip.append(args.pop(0))
        elif a == "--only":
            only.append(args.pop(0))
        else:
            rest.append(a)
    root = os.path.abspath(rest[0] if rest else ".")
    r = Renamer(root, Rules(skip, only))
    r.plan()
    r.report(verbose)
    if dry:
        return
    before = graph(r.ix, r.moved) if check else None
    r.apply()
    print("applied")
    if check:
        ix = Index(root).load()
        names = {p.replace("-", "_"): n.replace("-", "_") for p, n, *_ in r.rules.crates}
        names.update({f"{a}@{k}": f"{b}@{k}" for a, b in list(names.items()) for k in ("main", "build", "tests@growth")})
        compare(before, graph(ix, {}), {**r.moved, **names}, ix.files)


if __name__ == "__main__":
    main()
