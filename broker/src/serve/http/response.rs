//! HTTP responses that refuse a request, and their bodies.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::serve::rpc::{self, RpcErrorResponse};

const HEADER_MISMATCH: i64 = -32_020;

/// Builds the body of an error that belongs to no request id.
pub(super) fn error_body(why: &str) -> Vec<u8> {
    RpcErrorResponse::new(rpc::INVALID_REQUEST, why).message_to_nobody()
}

/// Builds the error for a header that must repeat a part of the message and differs from it.
pub(super) fn mismatch(header: &str) -> RpcErrorResponse {
    let message = format!("header `{header}` does not match the message");
    RpcErrorResponse::new(HEADER_MISMATCH, message)
}

/// Refuses a body that exceeds the maximum message length. The rest of the body is not read.
pub(super) fn too_long(bytes_max: usize) -> Response {
    let close = [(header::CONNECTION, "close")];
    let message = RpcErrorResponse::too_long(bytes_max).message_to_nobody();
    let refused = json_response(StatusCode::PAYLOAD_TOO_LARGE, message);
    (close, refused).into_response()
}

/// Refuses a body that did not arrive in time. The rest of the body is not read.
pub(super) fn too_slow() -> Response {
    let close = [(header::CONNECTION, "close")];
    let refused = json_response(
        StatusCode::REQUEST_TIMEOUT,
        error_body("the request body did not arrive in time"),
    );
    (close, refused).into_response()
}

pub(super) fn json_response(status: StatusCode, body: Vec<u8>) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}
