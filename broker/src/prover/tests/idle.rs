//! Rules that are proved to have no effect, removed and compared with the engine.

use airlock_policy_analysis::RuleAblation;

use super::*;

/// Two thousand calls are decided the same with and without a rule that is proved to have no
/// effect. A rule that decides a call is not reported.
#[test]
fn rules_proved_idle_decide_none_of_2000_calls() {
    let Some(mut prover) = prover() else { return };
    let texts = [
        "permit@ when { context.args.count < 10 } --- permit@ when { context.args.count >= 10 } \
         --- permit@ when { context.args.count == context.args.serial }",
        "permit@ --- forbid@ when { context.args.count > 900 } --- \
         forbid@ when { context.args.count * 2 > 1900 } --- \
         permit@ when { context.args.count > 950 }",
        "permit@ --- forbid@ unless { context.approval >= 1 } --- \
         forbid@ when { context.args.count > 5 } unless { context.approval >= 2 } --- \
         permit@ when { context.args.count < 3 && context.approval >= 2 }",
        "permit@ when { context.args.count < 10 } --- \
         forbid@ when { context.args.count > 10 } --- \
         forbid@ when { context.args.serial > 5 } --- permit@ when { context.args.count > 1000 }",
    ];
    let texts = texts.iter().map(|it| it.replace('@', ALL));
    let labelled = |text: String| [Labelling::default(), mailing()].map(|it| set(&text, it));
    let all: Vec<Set> = texts
        .flat_map(labelled)
        .chain(sets().into_iter().step_by(3))
        .collect();
    let (mut idle, mut counting) = (0, 0);
    for (at, set) in all.iter().enumerate() {
        let policies = set.rules.policies().unwrap();
        let known = std::collections::BTreeSet::new();
        let reviewed = run(prover.review(Review {
            policies,
            subjects: std::slice::from_ref(&set.subject),
            own: &[],
            seeds: &[],
            known: &known,
            until: std::time::Instant::now() + Duration::from_secs(600),
        }));
        assert!(reviewed.open.is_empty(), "set {at}: {:?}", reviewed.open);
        let found: Vec<_> = reviewed.idle.iter().map(|(it, _)| &it.rule).collect();
        let waiting: Vec<_> = reviewed.waiting.iter().map(|(rule, ..)| rule).collect();
        for rule in policies.rules() {
            if !found.contains(&&rule.id) && !waiting.contains(&&rule.id) {
                counting += 1;
                continue;
            }
            let without = RuleAblation::new(policies, rule, &set.subject.tool).unwrap();
            let tried =
                airlock_policy_analysis::tried_without(&without, &set.subject, &[], CALLS / 5);
            assert!(!tried.differs, "set {at}: {:?}", rule.id);
            idle += 1;
        }
    }
    assert!(idle > 10 && counting > 10, "{idle} {counting}");
}
