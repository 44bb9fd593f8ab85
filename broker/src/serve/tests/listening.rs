//! Hosts that are told when the list of tools is another one.

use super::host::House;
use super::*;

const KEY: &str = "io.modelcontextprotocol/subscriptionId";

async fn listening(house: &House, way: Way, wanted: Value) -> (Host, u64) {
    let mut host = house.host(way, json!({})).await;
    let params = json!({"notifications": wanted});
    let id = host.begin("subscriptions/listen", params).await;
    let first = host.hear().await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["_meta"][KEY], id, "{first}");
    let tools = wanted.get("toolsListChanged");
    let honoured = &first["params"]["notifications"];
    assert_eq!(honoured.get("toolsListChanged"), tools, "{first}");
    assert!(honoured.get("promptsListChanged").is_none(), "{first}");
    (host, id)
}

#[tokio::test]
async fn a_host_of_the_newer_era_listens_and_is_told_until_serving_ends() {
    for way in [WAYS[1], WAYS[3]] {
        let house = House::open(in_mode(Mode::Progressive)).await;
        let both = json!({"toolsListChanged": true, "promptsListChanged": true});
        let (mut told, id) = listening(&house, way, both).await;
        let prompts = json!({"promptsListChanged": true});
        let (mut other, other_id) = listening(&house, way, prompts).await;
        house.change().await;
        let change = told.hear().await;
        assert_eq!(change["method"], "notifications/tools/list_changed");
        assert_eq!(change["params"]["_meta"][KEY], id, "{change}");
        house.end();
        let last = told.answer_to(id).await.unwrap();
        assert_eq!(
            (&last["resultType"], &last["_meta"][KEY]),
            (&json!("complete"), &json!(id))
        );
        other.answer_to(other_id).await.unwrap();
        assert!(other.told.is_empty(), "it did not ask: {:?}", other.told);
    }
}

#[tokio::test]
async fn whoever_does_not_listen_any_more_is_not_told() {
    let house = House::open(in_mode(Mode::Progressive)).await;
    let (mut host, id) = listening(&house, MODERN, json!({"toolsListChanged": true})).await;
    host.cancel(id).await;
    host.request("prompts/list", json!({})).await.unwrap();
    house.change().await;
    host.request("tools/list", json!({})).await.unwrap();
    assert!(host.told.is_empty(), "{:?}", host.told);
}

#[tokio::test]
async fn changes_are_promised_only_where_they_are_told() {
    for way in WAYS {
        let mut host = Host::connect(way, settings()).await;
        let (method, params) = match way.era {
            Era::Legacy => ("initialize", json!({"protocolVersion": "2025-11-25"})),
            Era::Modern => ("server/discover", json!({})),
        };
        let said = host.request(method, params).await.unwrap();
        let promised = &said["capabilities"]["tools"]["listChanged"];
        assert_eq!(promised, &json!(way != WAYS[2]), "{way}: {said}");
        let listen = host.request("subscriptions/listen", json!({})).await;
        let code = if way.era == Era::Modern {
            -32_602
        } else {
            -32_601
        };
        assert_eq!(listen.unwrap_err()["code"], code, "{way}");
    }
}

#[tokio::test]
async fn a_host_of_the_older_era_is_told_over_stdio() {
    let house = House::open(in_mode(Mode::Progressive)).await;
    let mut host = house.host(LEGACY, json!({})).await;
    host.request("ping", json!({})).await.unwrap();
    house.change().await;
    let change = host.hear().await;
    assert_eq!(change["method"], "notifications/tools/list_changed");
}
