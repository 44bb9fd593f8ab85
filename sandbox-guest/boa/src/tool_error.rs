//! `ToolError`: the rejection of a call's promise. Its fields come from the host's frame and are
//! own properties of the object, so a script cannot change a failure through prototypes.

use boa_engine::property::{Attribute, PropertyDescriptor};
use boa_engine::{Context, JsData, JsNativeError, JsObject, JsResult, JsValue, js_string};
use boa_gc::{Finalize, Trace};
use guest_common::failure::with_frames;
use guest_common::place::{self, Place};
use sandbox_protocol::{CallTicket, Failure};

use crate::from_json;
use crate::intrinsics::Intrinsics;

/// Marks an object as created here, with the ticket of the failed call.
#[derive(Debug, Trace, Finalize, JsData)]
#[boa_gc(unsafe_empty_trace)]
pub(crate) struct Origin {
    pub(crate) ticket: Option<CallTicket>,
    pub(crate) code: String,
    pub(crate) places: Vec<Place>,
}

pub(crate) fn is(object: &JsObject) -> bool {
    object.is::<Origin>()
}

pub(crate) fn make(
    failure: &Failure,
    ticket: Option<CallTicket>,
    places: Vec<Place>,
    script_name: &str,
    depth_max: u32,
    context: &mut Context,
) -> JsResult<JsObject> {
    let prototype = Intrinsics::of(context)?.tool_error_prototype.clone();
    let frames = place::describe(&places, script_name);
    let stack = with_frames(format!("ToolError: {}", failure.message), &frames);
    let content = json(&failure.content, depth_max, context)?;
    let structured_content = json(&failure.structured_content, depth_max, context)?;
    let origin = Origin {
        ticket,
        code: failure.code.clone(),
        places,
    };
    let error = JsObject::from_proto_and_data(prototype, origin);
    let shown = Attribute::all();
    let hidden = Attribute::WRITABLE | Attribute::CONFIGURABLE;
    let members = [
        (
            "message",
            js_string!(failure.message.as_str()).into(),
            hidden,
        ),
        ("stack", js_string!(stack).into(), hidden),
        ("code", js_string!(failure.code.as_str()).into(), shown),
        ("tool", js_string!(failure.tool.as_str()).into(), shown),
        ("retryable", JsValue::from(failure.retryable), shown),
        ("content", content, shown),
        ("structuredContent", structured_content, shown),
    ];
    for (name, value, attribute) in members {
        error.insert_property(
            js_string!(name),
            PropertyDescriptor::builder()
                .value(value)
                .writable(attribute.writable())
                .enumerable(attribute.enumerable())
                .configurable(attribute.configurable()),
        );
    }
    Ok(error)
}

/// Parses bounded JSON text from the host; an empty text gives `undefined`.
fn json(text: &[u8], depth_max: u32, context: &mut Context) -> JsResult<JsValue> {
    if text.is_empty() {
        return Ok(JsValue::undefined());
    }
    from_json::decode(text, depth_max, context)
        .map_err(|not_json| JsNativeError::typ().with_message(not_json.what).into())
}
