//! Tests the formats of numbers and dates and the order of strings in `en-US`. The expected values
//! come from an engine with full Unicode data.

use serde_json::Value;

use crate::harness::{by_engine, run};

#[track_caller]
fn gives(script: &str, expected: &str) {
    let value = run(&format!("return {script}")).value();
    assert_eq!(value, Value::from(expected).to_string(), "{script}");
}

#[test]
fn number_format_follows_options() {
    for (script, expected) in [
        ("(1234567.891).toLocaleString()", "1,234,567.891"),
        (
            "(1.005).toLocaleString('en-US', { maximumFractionDigits: 2 })",
            "1.01",
        ),
        (
            "(0.256).toLocaleString('en-US', { style: 'percent', maximumFractionDigits: 1 })",
            "25.6%",
        ),
        (
            "(-1234.5).toLocaleString('en-US', { style: 'currency', currency: 'USD' })",
            "-$1,234.50",
        ),
        (
            "(1234.5).toLocaleString('en-US', { style: 'currency', currency: 'JPY' })",
            "¥1,235",
        ),
        (
            "(5).toLocaleString('en-US', { style: 'currency', currency: 'CHF' })",
            "CHF\u{a0}5.00",
        ),
        (
            "(12).toLocaleString('en-US', { style: 'currency', currency: 'EUR', currencyDisplay: 'name' })",
            "12.00 euros",
        ),
        (
            "(-5).toLocaleString('en-US', { style: 'currency', currency: 'USD', currencySign: 'accounting' })",
            "($5.00)",
        ),
        (
            "(999999).toLocaleString('en-US', { notation: 'compact' })",
            "1M",
        ),
        (
            "(1234).toLocaleString('en-US', { notation: 'compact', compactDisplay: 'long' })",
            "1.2 thousand",
        ),
        (
            "(16).toLocaleString('en-US', { style: 'unit', unit: 'megabyte-per-second' })",
            "16 MB/s",
        ),
        (
            "(123456789012345678901234567890n).toLocaleString()",
            "123,456,789,012,345,678,901,234,567,890",
        ),
        (
            "new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 }).format('0.00012345')",
            "0.000123",
        ),
        (
            "[1, 2.5].map(Intl.NumberFormat('en', { minimumFractionDigits: 2 }).format).join(' ')",
            "1.00 2.50",
        ),
        (
            "new Intl.NumberFormat('en-US', { style: 'percent' }).formatToParts(0.5).map((part) => part.type).join()",
            "integer,percentSign",
        ),
        (
            "[1234.5, null, [0.5]].toLocaleString('en-US', { style: 'percent' })",
            "123,450%,,50%",
        ),
        (
            "((list) => { list.push(list); return list.toLocaleString(); })([1])",
            "1,",
        ),
        (
            "new Intl.PluralRules('en-US', { type: 'ordinal' }).select(22)",
            "two",
        ),
    ] {
        gives(script, expected);
    }
}

/// `format` has a fast path; its result must equal the joined parts.
#[test]
fn number_format_to_parts_matches_format() {
    gives(
        "(() => { const forms = [{}, { maximumFractionDigits: 0 }, { maximumFractionDigits: 5 }, { minimumFractionDigits: 2, maximumFractionDigits: 2 }].map((o) => new Intl.NumberFormat('en-US', o));
         const numbers = [0, -0, 0.5, 1.5, 1.005, 0.0005, 0.00049, -0.0004, 999.9995, 1e21, 1e-7, 5e-324, 153982114791870.12, Number.MAX_VALUE, Infinity, -Infinity, NaN, 9007199254740993];
         for (let i = 1; i < 300; i += 1) numbers.push(i * 7919.12345 / 10 ** (i % 9), -i / 8 - 0.0005, i * 1e5 + 0.5);
         const wrong = [];
         for (const number of numbers) for (const form of forms) {
           const parts = form.formatToParts(number).map((part) => part.value).join('');
           if (form.format(number) !== parts) wrong.push([number, form.format(number), parts]);
         }
         return JSON.stringify([wrong, numbers[9].toLocaleString(), [1234.5, -0].toLocaleString()]) })()",
        r#"[[],"1,000,000,000,000,000,000,000","1,234.5,-0"]"#,
    );
}

#[test]
fn date_format_follows_options() {
    const AT: &str = "new Date(Date.UTC(2026, 10, 3, 15, 4, 5, 67))";
    for (call, expected) in [
        ("toLocaleString()", "11/3/2026, 3:04:05 PM"),
        ("toLocaleDateString()", "11/3/2026"),
        ("toLocaleTimeString()", "3:04:05 PM"),
        (
            "toLocaleDateString('en-US', { weekday: 'long', year: 'numeric', month: 'long', day: 'numeric' })",
            "Tuesday, November 3, 2026",
        ),
        (
            "toLocaleDateString('en-US', { month: 'short', day: '2-digit' })",
            "Nov 03",
        ),
        (
            "toLocaleDateString('en-US', { month: '2-digit', day: '2-digit', year: 'numeric' })",
            "11/03/2026",
        ),
        (
            "toLocaleTimeString('en-US', { hour: '2-digit', minute: '2-digit', hour12: false })",
            "15:04",
        ),
        (
            "toLocaleString('en-US', { dateStyle: 'full', timeStyle: 'long' })",
            "Tuesday, November 3, 2026 at 3:04:05 PM UTC",
        ),
        (
            "toLocaleString('en-US', { timeZone: '+05:30', timeZoneName: 'short', hour: 'numeric', minute: 'numeric' })",
            "8:34 PM GMT+5:30",
        ),
    ] {
        gives(&format!("{AT}.{call}"), expected);
    }
    gives("new Date(NaN).toLocaleString()", "Invalid Date");
    gives(
        "new Intl.DateTimeFormat('en-US', { timeZone: 'UTC', month: 'long', year: 'numeric' }).formatToParts(0).map((part) => part.value).join('|')",
        "January| |1970",
    );
    // Only Boa has `Temporal`, whose table named zones need.
    let script = "try { return new Date(0).toLocaleTimeString('en-US', { timeZone: 'America/New_York', timeZoneName: 'short' }); } catch (error) { return error.message; }";
    let absent = "the time zone 'America/New_York' is not available here; UTC is, and offsets such as \"+02:00\"";
    assert_eq!(
        run(script).value(),
        Value::from(by_engine("7:00:00 PM EST", absent)).to_string()
    );
}

#[test]
fn collator_sorts_naturally() {
    for (script, expected) in [
        (
            "['b', 'A', 'é', 'a', 'f', 'Z', '10', '9', '_'].sort((x, y) => x.localeCompare(y)).join(' ')",
            "_ 10 9 a A b é f Z",
        ),
        (
            "['a10', 'a2'].sort((x, y) => x.localeCompare(y, undefined, { numeric: true })).join(' ')",
            "a2 a10",
        ),
        (
            "['a10', 'a2'].sort(new Intl.Collator('en-u-kn').compare).join(' ')",
            "a2 a10",
        ),
        (
            "`${'É'.localeCompare('e', 'en', { sensitivity: 'base' })}`",
            "0",
        ),
        (
            "`${'a'.localeCompare('á', 'en', { sensitivity: 'accent' })}`",
            "-1",
        ),
        (
            "['résumé', 'Resume', 'resume'].sort(Intl.Collator().compare).join(' ')",
            "resume Resume résumé",
        ),
    ] {
        gives(script, expected);
    }
}

#[test]
fn list_and_relative_time_formats_work() {
    for (script, expected) in [
        (
            "new Intl.ListFormat('en', { type: 'disjunction' }).format(['a', 'b', 'c'])",
            "a, b, or c",
        ),
        (
            "new Intl.RelativeTimeFormat('en', { numeric: 'auto' }).format(-1, 'day')",
            "yesterday",
        ),
        (
            "new Intl.RelativeTimeFormat('en').format(3, 'hours')",
            "in 3 hours",
        ),
        (
            "Intl.getCanonicalLocales('EN-latn-us').join()",
            "en-Latn-US",
        ),
        (
            "Intl.NumberFormat.supportedLocalesOf(['de', 'en-GB']).join()",
            "en-GB",
        ),
    ] {
        gives(script, expected);
    }
}

#[test]
fn invalid_intl_options_throw_with_valid_values() {
    for (script, expected) in [
        (
            "(1).toLocaleString('en_US')",
            "'en_US' is not a language tag; one is \"en-US\"",
        ),
        (
            "(1).toLocaleString('en', { style: 'money' })",
            "'money' is no value of the option style; these are: decimal, percent, currency, unit",
        ),
        (
            "(1).toLocaleString('en', { style: 'currency' })",
            "the style \"currency\" needs the option currency, such as \"USD\"",
        ),
        (
            "(1).toLocaleString('en', { minimumFractionDigits: -1 })",
            "the option minimumFractionDigits is a number from 0 to 100",
        ),
        (
            "new Intl.DateTimeFormat('en', { timeZone: 'Mars/Base!' })",
            "there is no time zone 'Mars/Base!'",
        ),
        (
            "new Intl.DateTimeFormat('en', { dateStyle: 'long', day: 'numeric' })",
            "the option day does not go with dateStyle or timeStyle",
        ),
        ("new Intl.DateTimeFormat().format(NaN)", "invalid date"),
    ] {
        gives(
            &format!(
                "(() => {{ try {{ {script}; }} catch (error) {{ return error.message; }} }})()"
            ),
            expected,
        );
    }
}

#[test]
fn date_parse_accepts_common_formats() {
    let texts = [
        "Nov 22, 2026 10:00",
        "2026-11-22 10:00",
        "2026/11/22 10:00",
        "11/22/2026 10:00 AM",
        "11/22/26, 10:00",
        "22 November 2026 10:00",
        "22-Nov-2026 10:00",
        "Sunday, November 22nd, 2026 at 10:00 AM",
        "Sun, 22 Nov 2026 10:00:00 GMT",
        "Sun, 22 Nov 2026 12:00:00 +0200",
        "Sun Nov 22 2026 10:00:00 GMT+0000 (Coordinated Universal Time)",
        "Nov 22 2026 5:00 EST",
        "2026-11-22 12:00+02",
    ];
    for text in texts {
        gives(
            &format!("new Date({text:?}).toISOString()"),
            "2026-11-22T10:00:00.000Z",
        );
        gives(&format!("`${{Date.parse({text:?})}}`"), "1795341600000");
    }
    gives(
        "(() => { const day = new Date(Date.UTC(-20, 1, 3)); return [day.toString(), day.toUTCString(), day.toISOString()].map((text) => Date.parse(text) - day).join(); })()",
        "0,0,0",
    );
    for text in [
        "soon",
        "Nov 32 2026",
        "13/13/2026",
        "2026-11-22 25:00",
        "22.11.2026",
        "",
    ] {
        gives(&format!("`${{Date.parse({text:?})}}`"), "NaN");
    }
}

#[test]
fn patched_builtins_do_not_affect_intl() {
    gives(
        "(() => { String.prototype.slice = Array.prototype.push = RegExp.prototype.exec = Math.floor = () => 'x'; return (1234.5).toLocaleString() + new Date(0).toLocaleDateString(); })()",
        "1,234.51/1/1970",
    );
}

#[test]
fn capture_stack_trace_works() {
    let script = "class Failed extends Error {}\nfunction fail() {\n  const it = { name: 'It', message: 'broke' };\n  Error.captureStackTrace(it, fail);\n  return it.stack;\n}\nreturn fail()";
    let stack = run(script).value();
    assert!(
        stack.starts_with("\"It: broke\\n    at fail (script.js:4:"),
        "{stack}"
    );
}
