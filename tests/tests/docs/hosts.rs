//! Compares the pages of `docs/hosts` with the hosts that `airlock init` knows. The commands on each
//! page are run like those of all pages.

use tests::command::Home;

use crate::pages;

const LINES_MAX: usize = 30;

#[test]
fn each_host_of_init_has_a_short_page() {
    let known = known_hosts();
    assert!(known.len() >= 7, "{known:?}");
    let pages = pages::in_folder("docs/hosts");
    let mut expected: Vec<String> = known
        .iter()
        .map(|host| format!("docs/hosts/{host}.md"))
        .collect();
    expected.sort();
    assert_eq!(pages, expected);
    let overview = pages::read("docs/hosts.md").text;
    for host in &known {
        let page = pages::read(format!("docs/hosts/{host}.md")).text;
        let lines = page.lines().count();
        assert!(lines <= LINES_MAX, "{host}: {lines} lines");
        for command in ["--write", "airlock doctor", "--undo"] {
            assert!(page.contains(command), "{host}: no `{command}`");
        }
        assert!(page.contains(&format!("--host {host} ")), "{host}");
        assert!(overview.contains(&format!("(hosts/{host}.md)")), "{host}");
    }
}

/// Returns the values of `--host`, from the error about another value.
fn known_hosts() -> Vec<String> {
    let ended = Home::new().run(["init", "--host", "no-such-host"]);
    let (_, list) = ended.stderr.split_once("; expected ").unwrap_or_else(|| {
        panic!("no list of hosts\n{ended}");
    });
    let list = list.lines().next().unwrap_or_default();
    let words = list.split(", ").flat_map(|it| it.split(" or "));
    words.map(|it| it.trim().to_owned()).collect()
}
