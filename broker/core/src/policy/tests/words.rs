//! Tests of what is known about a tool without a call: groups and tags from its tool file, and
//! whether any call of the tool can be allowed.

use super::*;

#[test]
fn tool_file_text_decides_nothing() {
    for word in ["tag:leaves the house", "file-group:post"] {
        let forbid = format!("x: forbid(principal, action in Action::\"{word}\", resource);");
        check(
            &[ALL, &forbid],
            "mail.send",
            ARGS_OPS,
            (Level::Deny, &["x"]),
        );
        check(
            &[ALL, &forbid],
            "ops.read",
            ARGS_OPS,
            (Level::Allow, &["all"]),
        );
        let lifted = format!(
            "forbid(principal, action, resource) unless {{ action in Action::\"{word}\" }};"
        );
        for rule in [forbid.replace("x: forbid", "permit"), lifted] {
            let found = findings(&format!("@id(\"x\") @owner(\"o\") @reason(\"r\")\n{rule}"));
            assert!(found[0].contains("comes from a tool file"), "{found:?}");
        }
    }
    check_found(
        "forbid(principal, action in Action::\"tag:leaves the hous\", resource);",
        "p.cedar:4:37: there is no tool or group `tag:leaves the hous`; \
         did you mean `tag:leaves the house`?",
    );
    let elsewhere = "x: forbid(principal, action in Action::\"tag:of another run\", resource);";
    assert_eq!(load(&[elsewhere]).idle().count(), 1);
}

#[test]
fn tool_is_always_denied_if_no_call_can_be_allowed() {
    let hidden = |rules: &[&str]| -> Vec<String> {
        let policies = load(rules);
        let tools = policies
            .vocabulary
            .tools
            .keys()
            .map(|name| ToolId::parse(name).unwrap());
        let denied = tools.filter(|tool| policies.always_denied(tool).is_some());
        denied.map(|tool| tool.to_string()).collect()
    };
    let all = ["mail.send", "ops.read", "ops.write-all"];
    assert_eq!(hidden(&[]), all);
    assert_eq!(hidden(&[PAGING]), all);
    assert_eq!(hidden(&[READS, ONE]), ["mail.send"]);
    assert_eq!(hidden(&[ASK_RUN, PAGING]), ["ops.write-all"]);
    assert_eq!(hidden(&[ALL, ASK_EACH]), Vec::<String>::new());
    let never = "never: permit(principal, action, resource) when { false };";
    assert_eq!(hidden(&[never]), all);
    let sometimes = "some: forbid(principal, action, resource) when { context.disclosed };";
    assert_eq!(hidden(&[ALL, sometimes]), Vec::<String>::new());
    let written = "written: forbid(principal, action, resource) unless { false || !true };";
    assert_eq!(hidden(&[ALL, written]), all);
    let stranger = ToolId::parse("else.where").unwrap();
    assert!(load(&[ALL]).always_denied(&stranger).is_some());
}

#[test]
fn rules_for_unseen_server_wait_and_misspelt_server_is_named() {
    let unseen = |rule: &str| {
        let mut vocabulary = vocabulary();
        vocabulary.add_unseen("mails");
        Policies::load(&files(&[ALL, rule]), vocabulary, true)
    };
    for rule in [
        "forbid(principal, action == Action::\"mails.send\", resource);",
        "forbid(principal, action in Action::\"server:mails\", resource);",
        "forbid(principal, action in Action::\"tag:leaves the hous\", resource);",
        "forbid(principal, action in [Action::\"mails.send\", Action::\"ops.read\"], resource) \
         when { context.args has subject };",
        "forbid(principal, action, resource) when { context.args has subject };",
    ] {
        let rule = format!("x: {rule}");
        assert!(unseen(&rule).is_ok(), "{rule}: {:?}", unseen(&rule).err());
        let seen = Policies::load(&files(&[ALL, &rule]), vocabulary(), true);
        assert!(seen.is_err() || rule.contains("tag:"), "{rule}");
    }
    for (rule, next) in [
        (
            "forbid(principal, action == Action::\"mials.send\", resource);",
            "mails",
        ),
        (
            "forbid(principal, action == Action::\"ops.raed\", resource);",
            "ops.read",
        ),
        (
            "forbid(principal, action == Action::\"ops.read\", resource) \
             when { context.args has subject };",
            "subject",
        ),
    ] {
        let found = format!(
            "{:?}",
            unseen(&format!("x: {rule}")).unwrap_err().findings()
        );
        assert!(found.contains(next), "{rule}: {found}");
    }
}
