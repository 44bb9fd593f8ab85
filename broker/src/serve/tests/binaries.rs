//! Binary data in a script's value is kept at an address.

use super::*;
use base64::prelude::{BASE64_STANDARD, Engine as _};

async fn host(way: HostKind) -> Host {
    let settings = ServeSettings {
        disclosure: Disclosure::Full,
        ..ServeSettings::default()
    };
    Host::connect(way, settings).await
}

/// A picture of 30,000 bytes, beside some text.
const PICTURE: &str = "
const data = 'QUJD'.repeat(10000);
return [{type: 'text', text: 'the plan'}, {type: 'image', data, mimeType: 'image/png'}]";

#[tokio::test]
async fn image_is_stored_and_readable_with_its_type() {
    for way in WAYS {
        let mut host = host(way).await;
        let result = host.run(PICTURE).await;
        let said = text(&result);
        assert!(
            said.contains("the plan") && said.contains("image/png"),
            "{said}"
        );
        assert!(said.len() < 1_000 && !said.contains("QUJD"), "{said}");
        let value = &result["_meta"]["dev.airlock/report"]["value"];
        assert!(value[1].get("data").is_none(), "{value}");
        let at = &value[1]["data_at"];
        assert_eq!(
            (&at["bytes"], &at["mimeType"]),
            (&json!(30_000), &json!("image/png"))
        );
        let uri = at["uri"].as_str().unwrap().to_owned();
        assert!(said.contains(&uri), "{said}");

        let whole = host.request("resources/read", json!({"uri": uri})).await;
        let whole = whole.unwrap()["contents"].clone();
        assert_eq!(whole.as_array().unwrap().len(), 1);
        assert_eq!(whole[0]["mimeType"], "image/png");
        assert_eq!(whole[0]["blob"], "QUJD".repeat(10_000));
    }
}

#[tokio::test]
async fn image_is_readable_in_byte_ranges() {
    for way in WAYS {
        let mut host = host(way).await;
        let result = host.run(PICTURE).await;
        let at = &result["_meta"]["dev.airlock/report"]["value"][1]["data_at"];
        let mut read = Vec::new();
        let mut next = format!("{}?length=7001", at["uri"].as_str().unwrap());
        loop {
            let page = host.request("resources/read", json!({"uri": next})).await;
            let page = page.unwrap()["contents"].clone();
            read.extend(
                BASE64_STANDARD
                    .decode(page[0]["blob"].as_str().unwrap())
                    .unwrap(),
            );
            let told = &page[0]["_meta"]["dev.airlock/page"];
            assert_eq!(told["bytes"], 30_000, "{told}");
            let Some(following) = page[1]["uri"].as_str() else {
                break;
            };
            assert_eq!(told["next"], read.len(), "{told}");
            next = following.to_owned();
        }
        assert!(read == b"ABC".repeat(10_000));
        let beyond = format!("{}?from=30001", at["uri"].as_str().unwrap());
        let refused = host.request("resources/read", json!({"uri": beyond})).await;
        let refused = refused.unwrap_err();
        assert!(
            refused["message"].to_string().contains("only 30000 bytes"),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn non_image_text_stays_text() {
    for way in WAYS {
        let mut host = host(way).await;
        let result = host
            .run("return {type: 'text', data: 'QUJD', mimeType: 'image/png'}")
            .await;
        assert_eq!(result["structuredContent"]["value"]["data"], "QUJD");
        assert!(text(&result).contains("QUJD"));
    }
}
