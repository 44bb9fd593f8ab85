//! Generates hostile scripts from the grammar of JavaScript and TypeScript: every production nested
//! in every other, deep, long, wide, ambiguous, unfinished or damaged. The same number always gives
//! the same script.

/// The kind of code that a production makes, or that fits into its gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Expression,
    Statement,
    Type,
    Pattern,
    Member,
}

/// One production with one gap. A production with several gaps is listed once for each.
struct Production {
    makes: Kind,
    before: &'static str,
    gap: Kind,
    after: &'static str,
}

/// How a pair of productions is combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The productions are nested alternately, and closed.
    Deep,
    /// The productions are nested alternately, and not closed.
    Unfinished,
    /// The productions follow each other.
    Long,
    /// The productions are items of one list.
    Wide,
    /// Repeated beginnings that a parser can read in several ways until it reaches the end.
    Ambiguous,
    /// The productions are nested, with bytes replaced, removed and repeated.
    Damaged,
}

pub(crate) const SHAPES: [Shape; 6] = [
    Shape::Deep,
    Shape::Unfinished,
    Shape::Long,
    Shape::Wide,
    Shape::Ambiguous,
    Shape::Damaged,
];

pub(crate) const BYTES_MIN: usize = 2 * 1024;
pub(crate) const BYTES_MAX: usize = 1024 * 1024;

const fn expression(before: &'static str, gap: Kind, after: &'static str) -> Production {
    Production {
        makes: Kind::Expression,
        before,
        gap,
        after,
    }
}

const fn statement(before: &'static str, gap: Kind, after: &'static str) -> Production {
    Production {
        makes: Kind::Statement,
        before,
        gap,
        after,
    }
}

const fn type_(before: &'static str, gap: Kind, after: &'static str) -> Production {
    Production {
        makes: Kind::Type,
        before,
        gap,
        after,
    }
}

const fn pattern(before: &'static str, gap: Kind, after: &'static str) -> Production {
    Production {
        makes: Kind::Pattern,
        before,
        gap,
        after,
    }
}

const fn member(before: &'static str, gap: Kind, after: &'static str) -> Production {
    Production {
        makes: Kind::Member,
        before,
        gap,
        after,
    }
}

use Kind::{Expression, Member, Pattern, Statement, Type};

const PRODUCTIONS: &[Production] = &[
    expression("(", Expression, ")"),
    expression("[", Expression, "]"),
    expression("[...", Expression, "]"),
    expression("({a:", Expression, "})"),
    expression("({[", Expression, "]:1})"),
    expression("({...", Expression, "})"),
    expression("({a(){", Statement, "}})"),
    expression("({get a(){", Statement, "}})"),
    expression("`${", Expression, "}`"),
    expression("a`${", Expression, "}`"),
    expression("!", Expression, ""),
    expression("- ", Expression, ""),
    expression("+ ", Expression, ""),
    expression("~", Expression, ""),
    expression("typeof ", Expression, ""),
    expression("void ", Expression, ""),
    expression("delete ", Expression, ""),
    expression("await ", Expression, ""),
    expression("++", Expression, ""),
    expression("1+", Expression, ""),
    expression("", Expression, "+1"),
    expression("a*", Expression, ""),
    expression("a**", Expression, ""),
    expression("a<", Expression, ""),
    expression("a>>>", Expression, ""),
    expression("a in ", Expression, ""),
    expression("a instanceof ", Expression, ""),
    expression("a&&", Expression, ""),
    expression("a||", Expression, ""),
    expression("a??", Expression, ""),
    expression("a,", Expression, ""),
    expression("a=", Expression, ""),
    expression("a+=", Expression, ""),
    expression("a??=", Expression, ""),
    expression("[a]=", Expression, ""),
    expression("({a}=", Expression, ")"),
    expression("a?", Expression, ":1"),
    expression("a?1:", Expression, ""),
    expression("(", Expression, "?1:2)"),
    expression("", Expression, ".a"),
    expression("", Expression, "?.a"),
    expression("", Expression, "[a]"),
    expression("a[", Expression, "]"),
    expression("", Expression, "()"),
    expression("a(", Expression, ")"),
    expression("a?.(", Expression, ")"),
    expression("a(...", Expression, ")"),
    expression("new ", Expression, ""),
    expression("new a(", Expression, ")"),
    expression("import(", Expression, ")"),
    expression("()=>", Expression, ""),
    expression("a=>", Expression, ""),
    expression("async a=>", Expression, ""),
    expression("(a=", Expression, ")=>0"),
    expression("(", Pattern, ")=>0"),
    expression("()=>{", Statement, "}"),
    expression("(function(){", Statement, "})"),
    expression("(function*(){", Statement, "})"),
    expression("(async function(){", Statement, "})"),
    expression("(function(a=", Expression, "){})"),
    expression("(class{", Member, "})"),
    expression("(class extends ", Expression, "{})"),
    expression("(", Expression, " as a)"),
    expression("(a as ", Type, ")"),
    expression("(a satisfies ", Type, ")"),
    expression("<", Type, ">a"),
    expression("<a>", Expression, ""),
    expression("a<", Type, ">()"),
    expression("", Expression, "!"),
    expression("(a:", Type, ")=>0"),
    expression("():", Type, "=>0"),
    expression("<A extends ", Type, ">(a)=>0"),
    statement("", Expression, ";"),
    statement("{", Statement, "}"),
    statement("if(", Expression, ");"),
    statement("if(a)", Statement, ""),
    statement("if(a);else ", Statement, ""),
    statement("for(;", Expression, ";)break;"),
    statement("for(let a=", Expression, ";;)break;"),
    statement("for(;;){", Statement, "break}"),
    statement("for(const ", Pattern, " of [])break;"),
    statement("for(const a of ", Expression, ")break;"),
    statement("for(const a in ", Expression, ")break;"),
    statement("for(const a of [])", Statement, ""),
    statement("while(", Expression, ")break;"),
    statement("while(0)", Statement, ""),
    statement("do{", Statement, "}while(0);"),
    statement("do;while(0&&", Expression, ");"),
    statement("switch(", Expression, "){}"),
    statement("switch(a){case ", Expression, ":}"),
    statement("switch(a){default:", Statement, "}"),
    statement("try{", Statement, "}catch{}"),
    statement("try{}catch{", Statement, "}"),
    statement("try{}catch(", Pattern, "){}"),
    statement("try{}finally{", Statement, "}"),
    statement("a:", Statement, ""),
    statement("let a=", Expression, ";"),
    statement("const ", Pattern, "=[];"),
    statement("var a:", Type, ";"),
    statement("using a=", Expression, ";"),
    statement("throw ", Expression, ";"),
    statement("return ", Expression, ";"),
    statement("function a(){", Statement, "}"),
    statement("async function a(){", Statement, "}"),
    statement("function a(", Pattern, "){}"),
    statement("function a<A extends ", Type, ">(){}"),
    statement("class A{", Member, "}"),
    statement("class A extends ", Expression, "{}"),
    statement("type A=", Type, ";"),
    statement("interface A{a:", Type, "}"),
    statement("interface A extends B<", Type, ">{}"),
    statement("enum A{a=", Expression, "}"),
    statement("namespace A{", Statement, "}"),
    statement("declare function a(b:", Type, "):void;"),
    statement("export default ", Expression, ";"),
    type_("(", Type, ")"),
    type_("", Type, "[]"),
    type_("[", Type, "]"),
    type_("[...", Type, "]"),
    type_("a|", Type, ""),
    type_("a&", Type, ""),
    type_("A<", Type, ">"),
    type_("keyof ", Type, ""),
    type_("readonly ", Type, ""),
    type_("{a:", Type, "}"),
    type_("{[a:string]:", Type, "}"),
    type_("{[A in ", Type, "]:a}"),
    type_("{a(b:", Type, "):a}"),
    type_("{[", Expression, "]:a}"),
    type_("(a:", Type, ")=>a"),
    type_("()=>", Type, ""),
    type_("(", Pattern, ":a)=>a"),
    type_("new()=>", Type, ""),
    type_("a extends ", Type, "?a:b"),
    type_("a extends b?", Type, ":b"),
    type_("a extends b?a:", Type, ""),
    type_("a extends(infer A extends ", Type, ")?a:b"),
    type_("a[", Type, "]"),
    type_("`${", Type, "}`"),
    type_("typeof a<", Type, ">"),
    type_("(a:a)=>a is ", Type, ""),
    pattern("[", Pattern, "]"),
    pattern("[,", Pattern, "]"),
    pattern("[...", Pattern, "]"),
    pattern("{a:", Pattern, "}"),
    pattern("{[", Expression, "]:a}"),
    pattern("[a=", Expression, "]"),
    pattern("{a=", Expression, "}"),
    member("a=", Expression, ";"),
    member("static a=", Expression, ";"),
    member("[", Expression, "]=1;"),
    member("#a=", Expression, ";"),
    member("a(){", Statement, "}"),
    member("get a(){", Statement, "}"),
    member("async*a(){", Statement, "}"),
    member("static{", Statement, "}"),
    member("a(", Pattern, "){}"),
    member("a:", Type, ";"),
    member("a<A extends ", Type, ">(){}"),
    member("constructor(private a=", Expression, "){}"),
    member("@(", Expression, ") a;"),
];

/// Beginnings of code whose meaning depends on much later code.
const AMBIGUOUS: &[&str] = &[
    "a<",
    "a=",
    "(a=(",
    "()=>",
    "!",
    "1+",
    "class A extends ",
    "(a,",
    "async(",
    "async<a>(",
    "<a>(",
    "<a,>(",
    "({a:",
    "({a=",
    "[a=",
    "({[",
    "a?(",
    "a?b:(",
    "a?(b):(",
    "new a<",
    "a<b<",
    "a<b>>",
    "a as b<",
    "(a:",
    "(a?:",
    "`${",
    "a`${",
    "for(let[",
    "for(async of ",
    "for(let of ",
    "a=>(",
    "async a=>{",
    "yield*",
    "import(",
    "@a(",
    "a?.[",
    "a!<",
    "/[",
    "a/",
    "</",
    "{a:",
    "{[",
    "let[",
    "type A=",
    "type A=(a:",
    "type A=a extends infer B extends ",
    "abstract class A<",
    "function<",
    "enum A{a=",
    "\\u{61}",
    "/*",
    "<!--",
    "#a in ",
    "...",
];

/// Returns the number of pairs of productions. As many consecutive numbers use each pair once.
pub(crate) fn pairs() -> usize {
    PRODUCTIONS.len() * PRODUCTIONS.len()
}

/// A script, with a description of its production.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) shape: Shape,
    pub(crate) text: String,
}

/// Returns the script with this number.
pub(crate) fn script(number: u64) -> Script {
    let mut random = Random(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let (pair, shape) = pair_and_shape(number);
    let outer = &PRODUCTIONS[pair / PRODUCTIONS.len()];
    let inner = &PRODUCTIONS[pair % PRODUCTIONS.len()];
    let bytes = size(&mut random);
    let text = match shape {
        Shape::Deep => nest(outer, inner, bytes, true),
        Shape::Unfinished => nest(outer, inner, bytes, false),
        Shape::Long => long(outer, inner, bytes),
        Shape::Wide => wide(outer, inner, bytes, &mut random),
        Shape::Ambiguous => ambiguous(bytes, &mut random),
        Shape::Damaged => damaged(nest(outer, inner, bytes, true), &mut random),
    };
    Script { shape, text }
}

/// Returns the pair and shape of a number. Each pair occurs once before the pairs repeat in another
/// shape.
fn pair_and_shape(number: u64) -> (usize, Shape) {
    let number = number as usize;
    // Uses all pairs in an order that mixes the kinds.
    let pair = number.wrapping_mul(7_919) % pairs();
    (pair, SHAPES[(number / pairs() + pair) % SHAPES.len()])
}

/// Returns a size in bytes. Most sizes are small, and a few reach the maximum: the logarithm is the
/// product of two uniform random numbers.
fn size(random: &mut Random) -> usize {
    let spread = (BYTES_MAX / BYTES_MIN) as f64;
    let exponent = random.fraction() * random.fraction();
    (BYTES_MIN as f64 * spread.powf(exponent)) as usize
}

/// Returns the text around a production of another kind that makes it fit into a gap.
fn bridge(gap: Kind, made: Kind) -> (&'static str, &'static str) {
    match (gap, made) {
        (Expression, Statement) => ("(()=>{", "})"),
        (Expression, Type) => ("(a as ", ")"),
        (Expression, Pattern) => ("((", ")=>0)"),
        (Expression, Member) => ("(class{", "})"),
        (Statement, Expression) => ("", ";"),
        (Statement, Type) => ("let a:", ";"),
        (Statement, Pattern) => ("const ", "=a;"),
        (Statement, Member) => ("class A{", "}"),
        (Type, Expression) => ("{[", "]:a}"),
        (Type, Statement) => ("{[(()=>{", "})]:a}"),
        (Type, Pattern) => ("(", ":a)=>a"),
        (Type, Member) => ("{[class{", "}]:a}"),
        (Pattern, Expression) => ("{a=", "}"),
        (Pattern, Statement) => ("{a=()=>{", "}}"),
        (Pattern, Type) => ("{a=b as ", "}"),
        (Pattern, Member) => ("{a=class{", "}}"),
        (Member, Expression) => ("a=", ";"),
        (Member, Statement) => ("static{", "}"),
        (Member, Type) => ("a:", ";"),
        (Member, Pattern) => ("m(", "){}"),
        _ => ("", ""),
    }
}

fn smallest(kind: Kind) -> &'static str {
    match kind {
        Statement => ";",
        Member => "a;",
        Expression | Type | Pattern => "a",
    }
}

/// Nests the two productions in each other repeatedly.
fn nest(outer: &Production, inner: &Production, bytes: usize, closes: bool) -> String {
    let (open_first, close_first) = bridge(Statement, outer.makes);
    let (open_inner, close_inner) = bridge(outer.gap, inner.makes);
    let (open_outer, close_outer) = bridge(inner.gap, outer.makes);
    let open = [outer.before, open_inner, inner.before, open_outer].concat();
    let close = [close_outer, inner.after, close_inner, outer.after].concat();
    let level = open.len() + if closes { close.len() } else { 0 };
    let levels = bytes / level.max(1);
    let mut text = open_first.to_owned() + &open.repeat(levels);
    if closes {
        text.push_str(smallest(outer.makes));
        text.push_str(&close.repeat(levels));
        text.push_str(close_first);
    }
    text
}

/// Nests the inner production in the outer one, once.
fn once(outer: &Production, inner: &Production) -> String {
    let (open, close) = bridge(outer.gap, inner.makes);
    let smallest = smallest(inner.gap);
    let Production { before, after, .. } = inner;
    [
        outer.before,
        open,
        before,
        smallest,
        after,
        close,
        outer.after,
    ]
    .concat()
}

/// Joins the productions one after the other, with the separator of their kind.
fn long(outer: &Production, inner: &Production, bytes: usize) -> String {
    let part = once(outer, inner);
    let (start, join, end) = match outer.makes {
        Expression => ("a=", "+", ";"),
        Statement => ("", "\n", ""),
        Type => ("type A=", "|", ";"),
        Pattern => ("let ", "=[],", "=[];"),
        Member => ("class A{", "\n", "}"),
    };
    joined(start, &part, join, end, bytes)
}

/// Puts the productions side by side in one list.
fn wide(outer: &Production, inner: &Production, bytes: usize, random: &mut Random) -> String {
    let part = once(outer, inner);
    let lists: &[(&str, &str, &str)] = match outer.makes {
        Expression => &[
            ("[", ",", "];"),
            ("a(", ",", ");"),
            ("({a:", ",a:", "});"),
            ("switch(a){case ", ":case ", ":}"),
            ("`${", "}${", "}`;"),
            ("let a=", ",a=", ";"),
        ],
        Statement => &[
            ("function a(){", "", "}"),
            ("switch(a){case 1:", "case 1:", "}"),
        ],
        Type => &[
            ("type A=[", ",", "];"),
            ("type A<B=", ",B=", "> =a;"),
            ("type A={a:", ";a:", "};"),
        ],
        Pattern => &[("const [", ",", "]=[];"), ("function a(", ",", "){}")],
        Member => &[("class A{", "", "}"), ("(class{", ";", "});")],
    };
    let (start, join, end) = lists[random.below(lists.len())];
    joined(start, &part, join, end, bytes)
}

fn joined(start: &str, part: &str, join: &str, end: &str, bytes: usize) -> String {
    let count = bytes / (part.len() + join.len()).max(1);
    let more = [join, part].concat().repeat(count.saturating_sub(1));
    [start, part, &more, end].concat()
}

/// Repeats a sequence of one to three beginnings.
fn ambiguous(bytes: usize, random: &mut Random) -> String {
    let unit: String = (0..=random.below(3))
        .map(|_| AMBIGUOUS[random.below(AMBIGUOUS.len())])
        .collect();
    unit.repeat(bytes / unit.len())
}

/// Returns the text with a few places replaced, removed or repeated.
fn damaged(text: String, random: &mut Random) -> String {
    const PIECES: &[&str] = &[
        "",
        "(",
        ")",
        "{",
        "}",
        "`",
        "'",
        "\"",
        "/*",
        "//",
        "\u{2028}",
        "\\u",
        "<",
        ">",
        "=>",
        "\0",
        "\u{feff}",
        "#",
        "@",
        "0x",
        "1n",
        "..",
        "\u{1f600}",
        "await",
        "let",
    ];
    let mut bytes = text.into_bytes();
    for _ in 0..=random.below(16) {
        let at = random.below(bytes.len());
        let end = (at + random.below(64)).min(bytes.len());
        let piece = match random.below(3) {
            0 => bytes[at..end].repeat(1 + random.below(8)),
            _ => PIECES[random.below(PIECES.len())].as_bytes().to_vec(),
        };
        bytes.splice(at..end, piece);
    }
    bytes.truncate(BYTES_MAX);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A small random number generator (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Returns a number from 0 up to but excluding 1.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Returns the scripts that crashed or blocked the broker before a guest parsed them.
pub(crate) fn bombs() -> Vec<Script> {
    let units = [
        ("a<", 1_344),
        ("a<", 5_900),
        ("a=", 1_344),
        ("()=>", 1_344),
        ("!", 5_000),
        ("1+", 5_000),
        ("class A extends ", 60_000),
        ("(a=(", 200),
        ("[", 100_000),
        ("{a},", 200_000),
        ("x=>x,", 200_000),
    ];
    let text = |(unit, count): (&str, usize)| unit.repeat(count);
    let script = |text| Script {
        shape: Shape::Ambiguous,
        text,
    };
    units.map(text).map(script).into()
}

#[test]
fn every_pair_of_productions_is_made_in_every_shape() {
    let all = pairs() * SHAPES.len();
    let mut seen = std::collections::HashSet::new();
    for number in 0..all as u64 {
        let (pair, shape) = pair_and_shape(number);
        seen.insert((pair, SHAPES.iter().position(|it| *it == shape)));
    }
    assert_eq!(seen.len(), all);
}

#[test]
fn scripts_are_made_again_from_their_number_and_keep_to_their_size() {
    for number in 0..2_000 {
        let made = script(number);
        assert_eq!(made.text, script(number).text);
        assert!(
            made.text.len() <= BYTES_MAX + 16,
            "{number}: {}",
            made.text.len()
        );
    }
}
