"""Tokens, modules and names of a Rust workspace: enough to say what an identifier means.

No types are inferred: paths, imports, globs, re-exports, nested scopes and `Type::member`
are resolved; receivers of method calls and fields are not.
"""
import os
import re

TOKEN = re.compile(
    r"""(?P<lc>//[^\n]*)
  |(?P<bc>/\*.*?\*/)
  |(?P<raw>[bc]?r(?P<h>\#*)".*?"(?P=h))
  |(?P<str>[bc]?"(?:[^"\\]|\\.)*")
  |(?P<chr>b?'(?:[^'\\\n]|\\(?:u\{[^}]*\}|x[0-9a-fA-F]{2}|.))')
  |(?P<life>'[A-Za-z_]\w*)
  |(?P<id>(?:r\#)?[A-Za-z_]\w*)
  |(?P<num>\d\w*(?:\.\d\w*)?)
  |(?P<op>::|->|=>|\.\.=|\.\.\.|\.\.|==|!=|<=|>=|&&|\|\||[^\s])""",
    re.X | re.S,
)

KEYWORDS = set(
    "as async await break const continue crate dyn else enum extern false fn for if impl in let loop "
    "match mod move mut pub ref return self Self static struct super trait true type unsafe use where "
    "while yield box".split()
)


class Tok:
    __slots__ = ("k", "t", "s", "e")

    def __init__(self, k, t, s, e):
        self.k, self.t, self.s, self.e = k, t, s, e


def lex(text):
    sig, com = [], []
    for m in TOKEN.finditer(text):
        k = m.lastgroup
        if k == "h":
            k = "raw"
        t = m.group()
        tok = Tok(k, t, m.start(), m.end())
        if k in ("lc", "bc"):
            com.append(tok)
        else:
            sig.append(tok)
    return sig, com


class Def:
    __slots__ = ("kind", "name", "mod", "file", "tok", "members", "scope", "owner", "derives", "vis", "path", "attrs")

    def __init__(self, kind, name, mod, file, tok, scope=None, owner=None):
        self.kind, self.name, self.mod, self.file, self.tok = kind, name, mod, file, tok
        self.members, self.scope, self.owner = {}, scope, owner
        self.derives, self.vis, self.attrs = (), "", ""
        self.path = None

    def full(self):
        if self.kind in ("mod", "crate"):
            return self.mod.full()
        if self.owner is not None:
            return self.owner.full() + "::" + self.name
        return self.mod.full() + "::" + self.name


class Scope:
    """A brace block. `kind` is mod, impl, trait, enum, struct, fn or block."""

    __slots__ = ("kind", "parent", "start", "end", "items", "uses", "mod", "owner", "selfpath", "fn", "trait")

    def __init__(self, kind, parent, start, mod):
        self.kind, self.parent, self.start, self.end, self.mod = kind, parent, start, None, mod
        self.items, self.uses = {}, []
        self.owner = self.selfpath = self.fn = self.trait = None


class Module:
    __slots__ = ("name", "parent", "crate", "scope", "file", "d", "dir", "decl", "children", "cfgtest", "pathattr")

    def __init__(self, name, parent, crate):
        self.name, self.parent, self.crate = name, parent, crate
        self.scope = self.file = self.d = self.dir = self.decl = self.pathattr = None
        self.children = {}

    def full(self):
        return self.crate if self.parent is None else self.parent.full() + "::" + self.name

    def ancestors(self):
        m = self
        while m:
            yield m
            m = m.parent


class Use:
    __slots__ = ("name", "segs", "glob", "toks", "scope", "alias")

    def __init__(self, name, segs, glob, toks, scope, alias):
        self.name, self.segs, self.glob, self.toks, self.scope, self.alias = name, segs, glob, toks, scope, alias


class File:
    __slots__ = ("path", "text", "sig", "com", "mods", "scopes", "usepaths", "deftok", "attr", "tokscope", "instances")

    def __init__(self, path, text):
        self.path, self.text = path, text
        self.sig, self.com = lex(text)


class View:
    """A file parsed as a module of one crate (a file may belong to several crates)."""

    __slots__ = ("file", "mod", "scopes", "usepaths", "deftok", "tokscope", "inattr")


class Index:
    def __init__(self, root):
        self.root = root
        self.files = {}
        self.crates = {}  # crate name -> Module
        self.views = []
        self.defs = []
        self.problems = []
        self.cache = {}
        self.globs_busy = set()

    # ---- finding crates -------------------------------------------------
    def read(self, path):
        if path not in self.files:
            with open(os.path.join(self.root, path), encoding="utf-8") as f:
                self.files[path] = File(path, f.read())
        return self.files[path]

    def exists(self, path):
        return os.path.isfile(os.path.join(self.root, path))

    def load(self):
        manifests = []
        for base, dirs, names in os.walk(self.root):
            dirs[:] = [d for d in dirs if d not in ("target", ".git", "node_modules")]
            if "Cargo.toml" in names:
                manifests.append(os.path.relpath(base, self.root))
        for d in sorted(manifests):
            text = open(os.path.join(self.root, d, "Cargo.toml"), encoding="utf-8").read()
            m = re.search(r'^\[package\].*?^name *= *"([^"]+)"', text, re.M | re.S)
            if not m:
                continue
            pkg = m.group(1)
            if d.endswith(("quickjs/protocol", "quickjs/common")):
                continue  # the same sources under another manifest
            name = pkg.replace("-", "_")
            dd = "" if d == "." else d + "/"
            lib = dd + "src/lib.rs"
            if self.exists(lib):
                self.crate(name, lib)
            main = dd + "src/main.rs"
            if self.exists(main):
                self.crate(name + "@main", main)
            bins = os.path.join(self.root, dd, "src/bin")
            for n in sorted(os.listdir(bins)) if os.path.isdir(bins) else []:
                p = f"{dd}src/bin/{n}" if n.endswith(".rs") else f"{dd}src/bin/{n}/main.rs"
                if self.exists(p):
                    self.crate(f"{name}@bin@{n.removesuffix('.rs')}", p)
            if self.exists(dd + "build.rs"):
                self.crate(name + "@build", dd + "build.rs")
            for kind in ("tests", "benches", "examples"):
                folder = os.path.join(self.root, dd, kind)
                if not os.path.isdir(folder):
                    continue
                for n in sorted(os.listdir(folder)):
                    if n.endswith(".rs"):
                        self.crate(f"{name}@{kind}@{n[:-3]}", f"{dd}{kind}/{n}")
                    elif self.exists(f"{dd}{kind}/{n}/main.rs"):
                        self.crate(f"{name}@{kind}@{n}", f"{dd}{kind}/{n}/main.rs")
        for p in ("sandbox-guest/engine/correct.rs",):
            if self.exists(p):
                self.crate("correct@build", p)
        self.link_members()
        return self

    def crate(self, name, path):
        mod = Module(name, None, name)
        mod.d = Def("crate", name, mod, None, None)
        self.crates[name] = mod
        self.parse_file(mod, path, os.path.dirname(path))

    def parse_file(self, mod, path, childdir):
        f = self.read(path)
        mod.file, mod.dir = f, childdir
        v = View()
        v.file, v.mod = f, mod
        self.views.append(v)
        self.parse(v)

    # ---- parsing one file ----------------------------------------------
    def parse(self, v):
        f, sig = v.file, v.file.sig
        n = len(sig)
        root = Scope("mod", None, -1, v.mod)
        root.end = n
        v.mod.scope = root
        v.scopes, v.usepaths, v.deftok = [root], {}, {}
        v.tokscope = [root] * n
        v.inattr = bytearray(n)
        cur, stack = root, []
        pending = None  # (kind, payload)
        i, paren = 0, 0
        attr_from = None
        while i < n:
            tok = sig[i]
            t = tok.t
            v.tokscope[i] = cur
            if t == "#" and i + 1 < n and (sig[i + 1].t == "[" or (sig[i + 1].t == "!" and i + 2 < n and sig[i + 2].t == "[")):
                if attr_from is None:
                    attr_from = i
                j = i + 1 if sig[i + 1].t == "[" else i + 2
                depth = 0
                while j < n:
                    if sig[j].t == "[":
                        depth += 1
                    elif sig[j].t == "]":
                        depth -= 1
                        if depth == 0:
                            break
                    j += 1
                for q in range(i, min(j + 1, n)):
                    v.tokscope[q] = cur
                    v.inattr[q] = 1
                i = j + 1
                continue
            if tok.k == "id":
                nxt = sig[i + 1] if i + 1 < n else None
                prev = sig[i - 1] if i else None
                pt = prev.t if prev else "{"
                if t == "mod" and nxt and nxt.k == "id" and i + 2 < n and sig[i + 2].t in (";", "{"):
                    child = Module(nxt.t, cur.mod, cur.mod.crate)
                    d = Def("mod", nxt.t, child, f, i + 1)
                    d.vis = self.vis(sig, i)
                    d.attrs = self.attrs(f, sig, attr_from, i)
                    child.d = d
                    child.decl = (v, i + 1)
                    self.add(cur, nxt.t, d, v, i + 1)
                    cur.mod.children[nxt.t] = child
                    if sig[i + 2].t == ";":
                        m = re.search(r'path\s*=\s*"([^"]+)"', d.attrs)
                        self.child_file(v, child, cur, m.group(1) if m else None)
                        v.tokscope[i + 1] = v.tokscope[i + 2] = cur
                        i += 3
                    else:
                        v.tokscope[i + 1] = cur
                        pending = ("mod", child)
                        i += 2
                    attr_from = None
                    continue
                if t in ("struct", "enum", "trait", "union") and nxt and nxt.k == "id" and (t != "union" or pt in ("pub", ")", ";", "}", "{", "]")):
                    d = Def(t, nxt.t, cur.mod, f, i + 1)
                    d.vis = self.vis(sig, i)
                    d.attrs = self.attrs(f, sig, attr_from, i)
                    m = re.findall(r"derive\(([^)]*)\)", d.attrs)
                    d.derives = tuple(x.strip().split("::")[-1] for y in m for x in y.split(","))
                    self.add(cur, nxt.t, d, v, i + 1)
                    v.tokscope[i + 1] = cur
                    pending = (t, d)
                    i += 2
                    attr_from = None
                    continue
                if t == "impl" and pt in (";", "}", "{", "]", "unsafe"):
                    j, depth, last = i + 1, 0, None
                    if sig[j].t == "<":
                        while j < n:
                            depth += sig[j].t.count("<") - (sig[j].t.count(">") if sig[j].t not in ("->", "=>") else 0)
                            j += 1
                            if depth == 0:
                                break
                    start = j
                    trait = None
                    depth = 0
                    while j < n and not (sig[j].t == "{" and depth == 0):
                        x = sig[j].t
                        if x in ("<", "(", "["):
                            depth += 1
                        elif x in (">", ")", "]"):
                            depth -= 1
                        elif x == "for" and depth == 0 and sig[j + 1].t != "<":
                            trait = start
                            start = j + 1
                        elif x == "where" and depth == 0:
                            break
                        j += 1
                    pending = ("impl", (start, trait))
                    i += 1
                    attr_from = None
                    continue
                if t == "fn" and nxt and nxt.k == "id":
                    own = cur.kind in ("impl", "trait")
                    d = Def("method" if own else "fn", nxt.t, cur.mod, f, i + 1, scope=cur)
                    d.vis = self.vis(sig, i)
                    d.attrs = self.attrs(f, sig, attr_from, i)
                    if own:
                        v.deftok[i + 1] = d
                        self.defs.append(d)
                        cur.items.setdefault(nxt.t, []).append(d)
                    else:
                        self.add(cur, nxt.t, d, v, i + 1)
                    v.tokscope[i + 1] = cur
                    pending = ("fn", d)
                    i += 2
                    attr_from = None
                    continue
                if (t in ("const", "static") and nxt and nxt.k == "id" and i + 2 < n and sig[i + 2].t == ":" and pt != "*") or (
                    t == "type" and nxt and nxt.k == "id"
                ):
                    own = cur.kind in ("impl", "trait")
                    d = Def({"type": "type"}.get(t, "const") if not own else "assoc", nxt.t, cur.mod, f, i + 1, scope=cur)
                    d.vis = self.vis(sig, i)
                    if own:
                        v.deftok[i + 1] = d
                        self.defs.append(d)
                        cur.items.setdefault(nxt.t, []).append(d)
                    else:
                        self.add(cur, nxt.t, d, v, i + 1)
                    v.tokscope[i + 1] = cur
                    i += 2
                    attr_from = None
                    continue
                if t == "macro_rules" and nxt and nxt.t == "!" and i + 2 < n:
                    d = Def("macro", sig[i + 2].t, cur.mod, f, i + 2)
                    self.add(cur, sig[i + 2].t, d, v, i + 2)
                    v.tokscope[i + 1] = v.tokscope[i + 2] = cur
                    i += 3
                    attr_from = None
                    continue
                if t == "use" and nxt and nxt.t != "<":
                    j = self.use_tree(v, cur, i + 1, [], [])
                    for q in range(i, min(j + 1, n)):
                        v.tokscope[q] = cur
                    i = j
                    attr_from = None
                    continue
                if cur.kind == "enum" and not paren and t not in KEYWORDS and (pt in ("{", ",") or v.inattr[i - 1]):
                    d = Def("variant", t, cur.mod, f, i, owner=cur.owner)
                    v.deftok[i] = d
                    self.defs.append(d)
                    cur.owner.members.setdefault(t, []).append(d)
                elif cur.kind == "struct" and not paren and nxt and nxt.t == ":" and t not in KEYWORDS:
                    d = Def("field", t, cur.mod, f, i, owner=cur.owner)
                    v.deftok[i] = d
                    self.defs.append(d)
                    d.attrs = self.attrs(f, sig, attr_from, i)
                    cur.owner.members.setdefault("." + t, []).append(d)
            if t == "{":
                kind, payload = pending if pending and paren == 0 or pending and pending[0] == "fn" else ("block", None)
                if kind == "block" and pending:
                    kind = "block"
                else:
                    pending = None
                s = Scope(kind if kind != "union" else "struct", cur, i, cur.mod)
                if kind == "mod":
                    s.mod = payload
                    payload.scope, payload.file = s, f
                    payload.dir = None
                elif kind in ("struct", "enum", "trait", "union"):
                    s.owner = payload
                elif kind == "impl":
                    s.selfpath, s.trait = payload
                elif kind == "fn":
                    s.fn = payload
                stack.append((cur, paren))
                cur, paren = s, 0
                v.scopes.append(s)
                attr_from = None
            elif t == "}":
                cur.end = i
                if stack:
                    cur, paren = stack.pop()
                attr_from = None
            elif t in ("(", "["):
                paren += 1
            elif t in (")", "]"):
                paren -= 1
            elif t == ";":
                pending = None
                attr_from = None
            elif t == ",":
                attr_from = None
            i += 1

    def vis(self, sig, i):
        j = i - 1
        while j >= 0 and sig[j].t in ("const", "async", "unsafe", "extern", "default"):
            j -= 1
        if j >= 0 and sig[j].t == "pub":
            return "pub"
        if j >= 0 and sig[j].t == ")":
            k = j
            while k and sig[k].t != "(":
                k -= 1
            if k and sig[k - 1].t == "pub":
                return "pub" + "".join(x.t for x in sig[k : j + 1])
        return ""

    def attrs(self, f, sig, a, i):
        return "" if a is None else f.text[sig[a].s : sig[i].s]

    def add(self, scope, name, d, v, i):
        scope.items.setdefault(name, []).append(d)
        v.deftok[i] = d
        self.defs.append(d)

    def child_file(self, v, child, scope, path):
        f = v.file
        base = os.path.dirname(f.path)
        stem = os.path.basename(f.path)[:-3]
        # the folder in which a file module looks for its children
        inline = []
        m = child.parent
        while m.file is f and m.parent is not None and m.scope is not None and m.scope.start >= 0:
            inline.insert(0, m.name)
            m = m.parent
        is_root = m.parent is None or stem == "mod" or (m.pathattr is not None)
        if path is not None:
            b = base if not inline else os.path.join(base, *([] if is_root else [stem]), *inline)
            p = os.path.normpath(os.path.join(b, path))
            if self.exists(p):
                child.pathattr = path
                self.parse_file(child, p, os.path.dirname(p))
            else:
                self.problems.append(f"{f.path}: no file for #[path] mod {child.name}: {p}")
            return
        d = os.path.join(base if is_root else os.path.join(base, stem), *inline)
        for p in (f"{d}/{child.name}.rs", f"{d}/{child.name}/mod.rs"):
            if self.exists(p):
                self.parse_file(child, p, d)
                return
        self.problems.append(f"{f.path}: no file for mod {child.name}")

    def use_tree(self, v, scope, i, segs, toks):
        """Parses from token i; returns the index of the token that ends the tree."""
        sig = v.file.sig
        segs, toks = list(segs), list(toks)
        if sig[i].t == "::":
            i += 1
        while True:
            t = sig[i]
            if t.t == "{":
                i += 1
                while sig[i].t != "}":
                    i = self.use_tree(v, scope, i, segs, toks)
                    if sig[i].t == ",":
                        i += 1
                return i + 1
            if t.t == "*":
                scope.uses.append(Use(None, segs, True, toks, scope, False))
                return i + 1
            if t.t == "$":
                i += 1
                continue
            name = t.t
            if name == "self" and segs:
                v.usepaths[i] = list(segs)
                full = segs
                last = segs[-1]
                i += 1
            else:
                segs.append(name)
                toks.append(i)
                v.usepaths[i] = list(segs)
                full, last = list(segs), name
                i += 1
            if sig[i].t == "::":
                i += 1
                continue
            alias = False
            if sig[i].t == "as":
                last = sig[i + 1].t
                alias = True
                i += 2
            scope.uses.append(Use(last, full, False, toks, scope, alias))
            return i

    # ---- resolving -------------------------------------------------------
    def in_scope_items(self, scope, name):
        return scope.items.get(name, [])

    def lookup_module(self, mod, name, seen=None):
        """Everything `name` means as an item of module `mod`."""
        key = (id(mod), name)
        if key in self.cache:
            return self.cache[key]
        seen = seen or set()
        if key in seen:
            return []
        seen = seen | {key}
        out = self.lookup_scope(mod.scope, name, seen) if mod.scope else []
        if len(seen) == 1:
            self.cache[key] = out
        return out

    def lookup_scope(self, scope, name, seen):
        out = list(scope.items.get(name, []))
        for u in scope.uses:
            if not u.glob and u.name == name:
                for d in self.resolve(scope, u.segs, seen, use=True):
                    if d not in out:
                        out.append(d)
        if not out:
            for u in scope.uses:
                if u.glob:
                    for b in self.resolve(scope, u.segs, seen, use=True):
                        for d in self.member(b, name, seen, outside=False):
                            if d not in out:
                                out.append(d)
        return out

    def member(self, d, name, seen=None, outside=True):
        seen = seen or set()
        if d.kind in ("mod", "crate"):
            return self.lookup_module(d.mod, name, seen)
        if d.kind == "type":
            return []
        return d.members.get(name, [])

    def first(self, scope, name, seen, use=False):
        if name in ("crate", "$crate"):
            return [self.crates[scope.mod.crate].d]
        if name == "self":
            return [scope.mod.d]
        if name == "super":
            return [scope.mod.parent.d] if scope.mod.parent else []
        if name == "Self":
            s = scope
            while s:
                if s.kind in ("impl",):
                    return [s.owner] if s.owner else []
                if s.kind in ("trait", "enum", "struct"):
                    return [s.owner]
                s = s.parent
            return []
        s = scope
        while s is not None:
            if s.kind not in ("impl", "trait", "enum", "struct"):
                if s.kind == "mod":
                    key = (id(s.mod), name)
                    out = self.lookup_module(s.mod, name, seen) if key not in seen else [
                        d for d in s.items.get(name, [])
                    ]
                    if out:
                        return out
                    break
                out = self.lookup_scope(s, name, seen) if (id(s), name) not in seen else list(s.items.get(name, []))
                if out:
                    return out
            s = s.parent
        if name in self.crates:
            return [self.crates[name].d]
        return []

    def resolve(self, scope, segs, seen=None, use=False):
        seen = set(seen or ())
        if use:
            seen.add((id(scope), segs[0]))
        cur = self.first(scope, segs[0], seen, use)
        for i, s in enumerate(segs[1:], 1):
            nxt = []
            for d in cur:
                if s == "super" and d.kind in ("mod", "crate"):
                    found = [d.mod.parent.d] if d.mod.parent else []
                else:
                    found = self.member(d, s, seen)
                for x in found:
                    if x not in nxt:
                        nxt.append(x)
            cur = nxt
            if not cur:
                return []
        return cur

    def link_members(self):
        for v in self.views:
            for s in v.scopes:
                if s.kind == "impl" and s.selfpath is not None:
                    path = self.type_path(v.file.sig, s.selfpath)
                    if path:
                        for d in self.resolve(s.parent, path):
                            if d.kind in ("struct", "enum", "trait", "union"):
                                s.owner = d
                                break
        for v in self.views:
            for s in v.scopes:
                if s.kind in ("impl", "trait") and s.owner is not None:
                    for name, ds in s.items.items():
                        for d in ds:
                            d.owner = s.owner
                            s.owner.members.setdefault(name, []).append(d)
        self.cache.clear()

    @staticmethod
    def type_path(sig, i):
        while sig[i].t in ("&", "mut", "dyn", "(", "[", "*", "const") or sig[i].k == "life":
            i += 1
        out = []
        while sig[i].k == "id":
            out.append(sig[i].t)
            if sig[i + 1].t == "::":
                i += 2
            else:
                break
        return out

    @staticmethod
    def prefix(sig, i):
        """The segments of the path that ends at token i, or None if its start is unknown."""
        segs = [sig[i].t]
        while i >= 2 and sig[i - 1].t == "::":
            j = i - 2
            if sig[j].t == ">":
                depth = 0
                while j >= 0:
                    if sig[j].t == ">":
                        depth += 1
                    elif sig[j].t == "<":
                        depth -= 1
                        if depth == 0:
                            break
                    j -= 1
                if j >= 1 and sig[j - 1].t == "::":
                    j -= 2
                elif j >= 1 and sig[j - 1].k == "id" and sig[j-1].t not in KEYWORDS:
                    j -= 1
                else:
                    return None
            if sig[j].k != "id":
                return segs if sig[j].t != ">" and sig[i-1].t == "::" and False else None
            if j and sig[j - 1].t == "$":
                segs.insert(0, "$crate" if sig[j].t == "crate" else "?")
                return segs
            segs.insert(0, sig[j].t)
            i = j
        return segs
