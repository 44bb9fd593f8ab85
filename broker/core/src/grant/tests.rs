//! Tests which calls a grant covers, and when a grant does not apply.

use proptest::prelude::*;

use super::*;
use crate::facts::Facts;
use crate::labels::Label;
use crate::testing::{call, grants, tool};

fn given(uses_max: u32) -> Grant {
    Grant {
        id: GrantId("g".into()),
        scope: Scope::Run,
        tool: ToolId::parse("fs.write").unwrap(),
        description: tool("fs.write").description_digest,
        script: Some(Digest::sha256(b"s")),
        policy: Digest::sha256(b"p"),
        condition: Condition::exactly(call(1, "fs.write", r#"{"a":1}"#).args.value()).unwrap(),
        uses_max: NonZeroU32::new(uses_max).unwrap(),
        uses: 0,
        given_at_ms: 0,
        expires_at_ms: 100,
        labels: Labels::worst(),
        shown: Digest::sha256(b"shown"),
        by: "test".into(),
    }
}

fn check(grant: Grant, asked: &[(&str, &str)], expected: &[bool]) {
    let mut grants = grants();
    grants.admit(grant, Some(&tool("fs.write"))).unwrap();
    let used = asked
        .iter()
        .map(|(tool, args)| grants.consume(&call(1, tool, args)).is_some());
    assert_eq!(used.collect::<Vec<_>>(), expected);
}

#[test]
fn used_up_grant_allows_nothing() {
    check(
        given(2),
        &[("fs.write", r#"{"a":1}"#); 3],
        &[true, true, false],
    );
}

#[test]
fn grant_covers_only_its_tool_and_arguments() {
    let others = [
        ("fs.delete", r#"{"a":1}"#),
        ("git.write", r#"{"a":1}"#),
        ("fs.write", r#"{"a":2}"#),
        ("fs.write", r#"{"a":1,"b":1}"#),
    ];
    check(given(9), &others, &[false; 4]);
}

#[test]
fn changed_script_description_policy_or_tool_voids_grant() {
    let mut changed = tool("fs.write");
    changed.description_digest = Digest::sha256(b"another");
    let why = |grant: Grant, tool: Option<&Tool>| grants().admit(grant, tool).err();
    let same = tool("fs.write");
    assert_eq!(why(given(1), Some(&same)), None);
    let script = Grant {
        script: Some(Digest::sha256(b"other")),
        ..given(1)
    };
    let policy = Grant {
        policy: Digest::sha256(b"other"),
        ..given(1)
    };
    for (grant, tool, word) in [
        (script, Some(&same), "script"),
        (policy, Some(&same), "rules"),
        (given(1), Some(&changed), "description"),
        (given(1), None, "not known"),
    ] {
        let why = why(grant, tool).unwrap();
        assert!(why.contains(word), "{why}");
    }
    let any_script = Grant {
        script: None,
        ..given(1)
    };
    assert_eq!(why(any_script, Some(&same)), None);
}

#[test]
fn grant_expires_at_its_exact_time() {
    let mut grants = grants();
    grants.admit(given(9), Some(&tool("fs.write"))).unwrap();
    let asked = call(1, "fs.write", r#"{"a":1}"#);
    grants.tick(99);
    assert!(grants.covers(&asked) && grants.consume(&asked).is_some());
    grants.tick(100);
    assert!(!grants.covers(&asked) && grants.consume(&asked).is_none());
}

#[test]
fn labels_above_ceiling_are_not_covered() {
    let mail: Labels = [Label::parse("private:mail").unwrap()]
        .into_iter()
        .collect();
    let with = |labels: &Labels| {
        let facts = Facts {
            labels: labels.clone(),
            ..Facts::default()
        };
        let mut asked = call(1, "fs.write", r#"{"a":1}"#);
        asked.facts = Some(facts.into());
        asked
    };
    let mut grants = grants();
    let grant = Grant {
        labels: mail.clone(),
        ..given(9)
    };
    grants.admit(grant, Some(&tool("fs.write"))).unwrap();
    assert!(grants.covers(&with(&mail)) && grants.covers(&with(&Labels::default())));
    assert!(!grants.covers(&with(&mail.joined(&Labels::worst()))));
    // A call without computed facts has the worst labels, which the grant does not cover.
    assert!(!grants.covers(&call(1, "fs.write", r#"{"a":1}"#)));
}

#[test]
fn shared_grant_is_claimed_and_not_counted_locally() {
    let mut grants = grants();
    let shared = Grant {
        scope: Scope::Session,
        ..given(1)
    };
    grants.admit(shared, Some(&tool("fs.write"))).unwrap();
    let asked = call(1, "fs.write", r#"{"a":1}"#);
    let found = Some(GrantMatch::Shared(GrantId("g".into())));
    assert_eq!(grants.consume(&asked), found);
    assert_eq!(grants.consume(&asked), found);
    grants.close(&asked.tool, &GrantId("g".into()));
    assert_eq!(grants.consume(&asked), None);
}

proptest! {
    /// For any order of grants and calls: a grant is used at most `uses_max` times, and every use
    /// fits the grant's condition.
    #[test]
    fn no_grant_exceeds_its_uses(
        uses in prop::collection::vec((1_u32..5, 0_u8..3), 1..6),
        asked in prop::collection::vec(0_u8..3, 0..60),
    ) {
        let mut grants = grants();
        let args = |n: u8| format!(r#"{{"n":{n}}}"#);
        for (at, (uses_max, n)) in uses.iter().enumerate() {
            let grant = Grant {
                id: GrantId(at.to_string().into()),
                condition: Condition::exactly(call(1, "fs.write", &args(*n)).args.value()).unwrap(),
                ..given(*uses_max)
            };
            grants.admit(grant, Some(&tool("fs.write"))).unwrap();
        }
        let mut counted: HashMap<GrantId, u32> = HashMap::new();
        for n in &asked {
            if let Some(GrantMatch::Used(used)) = grants.consume(&call(1, "fs.write", &args(*n))) {
                let at: usize = used.grant.0.parse().unwrap();
                prop_assert_eq!(uses[at].1, *n);
                let count = counted.entry(used.grant).or_default();
                *count += 1;
                prop_assert_eq!(used.number, *count);
                prop_assert!(*count <= uses[at].0);
            }
        }
        for n in 0_u8..3 {
            let granted: u32 = uses.iter().filter(|(_, of)| *of == n).map(|(max, _)| max).sum();
            let wanted = asked.iter().filter(|of| **of == n).count();
            let used = grants_used(&counted, &uses, n);
            prop_assert_eq!(used, granted.min(u32::try_from(wanted).unwrap()));
        }
    }
}

fn grants_used(counted: &HashMap<GrantId, u32>, uses: &[(u32, u8)], n: u8) -> u32 {
    counted
        .iter()
        .filter(|(id, _)| uses[id.0.parse::<usize>().unwrap()].1 == n)
        .map(|(_, count)| count)
        .sum()
}
