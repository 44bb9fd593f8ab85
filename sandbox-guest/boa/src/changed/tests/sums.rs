//! Texts that grow by sums and in members.

use super::super::{changed, marks};
use super::{both, end, without_place_where_none_was_known};

/// With what is put in written plainly: `<` for each call that begins, `|` for a sign, `>`.
fn plainly(script: &str) -> Option<String> {
    let made = changed(script)?.text;
    let mark = |text: &str, before| marks::marked("airlock_mark", text, before);
    let mut made = made
        .replace(&mark(",", "+"), "|")
        .replace("/*airlock_append*/)", ">");
    for calls in (1..9).rev() {
        let opening = "airlock_append(".repeat(calls);
        made = made.replace(&mark(&opening, ""), &"<".repeat(calls));
    }
    Some(made)
}

#[test]
fn each_sign_of_a_sum_that_may_grow_is_a_call() {
    for (script, expected) in [
        (
            "let s = ''; s = s + x + ','; s=s+1",
            "let s = ''; s = <<s | x> | ','>; s=<s|1>",
        ),
        (
            "let s; s = s + `${a + b}` + (c + d)",
            "let s; s = <<s | `${a + b}`> | (c + d)>",
        ),
        (
            "o.s = o.s + a.b[0] + f(c) + -d + '\\n'",
            "o.s = <<<<o.s | a.b[0]> | f(c)> | -d> | '\\n'>",
        ),
        (
            "return x.reduce((s, i) => s + i + 'b', start)",
            "return x.reduce((s, i) => <<s | i> | 'b'>, start)",
        ),
        (
            "return x.reduce(function (s, i) { return s + i }, '')",
            "return x.reduce(function (s, i) { return <s | i> }, '')",
        ),
    ] {
        assert_eq!(plainly(script).as_deref(), Some(expected));
        let made = changed(script).unwrap();
        let restored = made.shifts.restored(&made.text);
        assert_eq!(restored.as_deref(), Some(script));
    }
    let script =
        "class A { s = ''; #t = ''; add(x) { this.s += x; this.#t += x }; of = { s: '' } }";
    let made = changed(script).unwrap();
    assert_eq!(made.text.matches("airlock_append(this.").count(), 2);
    assert_eq!(made.shifts.restored(&made.text).as_deref(), Some(script));
}

#[test]
fn sums_of_numbers_and_what_is_not_plain_stay() {
    for script in [
        "let n = 0; n = n + 1; return n",
        "o.n += 1; this.n = this.n + x",
        "return x.reduce((a, b) => a + b, 0)",
        "return x.reduce((a, b) => a + b.n * 2)",
        "f().s += 'a'; a.b.c += 'a'; o[k] += 'a'; o[0] += 'x'",
        "s = t + s + 'a'; o.s = p.s + 'a'",
        "return a + 'x' + b",
        "let s = ''; s = s + a /* + */ + b",
        "let s = ''; s = s + new A()",
    ] {
        assert_eq!(plainly(script), None, "{script}");
    }
}

#[test]
fn they_are_what_they_were() {
    for script in [
        "let s = ''; for (let i = 0; i < 9; i++) s = s + i + ',' + [i] + { a: i } + null + undefined + true; return s",
        "let s = 1; s = s + 2 + 'a' + 3 + 4; return s",
        "let s = 'é'; s = s + '漢' + 10n + '😀'; return s",
        "const o = { s: '' }; for (const x of [1, 'b', null]) { o.s += x; o.s = o.s + x + ';' } return o",
        "const log = []; const of = (n) => ({ valueOf() { log.push(n); return n } }); let s = ''; s = s + of(1) + of(2) + (log.push('between'), of(3)); return [s, log]",
        "const log = []; const o = { get s() { log.push('get'); return 'a' }, set s(v) { log.push(v) } }; o.s += 'b'; o.s = o.s + 'c' + 'd'; return log",
        "const o = { s: 'x' }; o.s += (o.s = 'changed', 'y'); o.s = o.s + (o.s = 'z', 'w') + o.s; return o.s",
        "class A { s = ''; #t = ''; add(x) { this.s += x; this.#t = this.#t + x + ';'; return this } get() { return [this.s, this.#t, String(this.add)] } } return new A().add('a').add(2).get()",
        "class A { static all = ''; static add(x) { A.all += x; this.all = this.all + x + '.' } } A.add('a'); return A.all",
        "return [1, 2, 3].reduce((s, x) => s + x + ',', '') + [1, 2].reduceRight(function (s, x) { return s + x }, '')",
        "return [[1, 2], [3]].reduce((s, r) => s + r.reduce((t, x) => t + x + '.', 'r') + '|', '')",
        "return ['a', 'b'].reduce((s, x) => s + x + 'c')",
        "return [1, 2].reduce((n, x) => n + x, 0) + [3].reduce((n, x) => n + x, 0)",
        "const f = (rows) => rows.reduce((s, r) => s + `${r}\\n`, ''); return [f([1, 2]), String(f)]",
        "const f = async (s) => { s = s + await g() + 'b'; return s }; const g = async () => 'a'; return [await f(''), String(f)]",
        "function* g() { let s = ''; s = s + (yield 1) + 'x'; return s } const i = g(); i.next(); return [i.next('got').value, String(g)]",
        "let s = '';\n  s = s\n    + 'a' // one\n    + 'b'; return s",
        "let s = ''; s = s + Symbol('a') + 'b'",
        "let s = '';\n  s = s + 'x' + f()",
        "let s = '';\n  s = s + 'x' + null.y",
        "const o = null;\n  o.s += 'x'",
        "const o = Object.freeze({ s: '' });\n  o.s += 'x'",
        "const s = ''; s = s + 'x'",
        "t = t + 'x'; let t",
        "undeclared = undeclared + 'x'",
    ] {
        let [mut changed, mut as_written] = both(script).map(|step| end(&step));
        without_place_where_none_was_known(&mut changed, &mut as_written);
        assert_eq!(changed, as_written, "{script}");
    }
}
