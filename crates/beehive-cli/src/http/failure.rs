//! Requests that fail: a status, a code for programs, words for people.

use crate::api::{Failed, Failure, FailureCode};
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use beehive_nom::object::NodeId;

impl Failure {
    pub(super) fn bad_request(message: impl Into<String>) -> Failure {
        Failure { code: FailureCode::BadRequest, message: message.into() }
    }

    pub(super) fn unknown_switch(node: NodeId) -> Failure {
        let message = format!("there is no switch {node}; /api/v1/switches lists those that are connected");
        Failure { code: FailureCode::UnknownSwitch, message }
    }

    pub(super) fn unavailable(why: impl std::fmt::Display) -> Failure {
        Failure { code: FailureCode::Unavailable, message: why.to_string() }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = match self.code {
            FailureCode::BadRequest => StatusCode::BAD_REQUEST,
            FailureCode::UnknownSwitch | FailureCode::AppNotRunning => StatusCode::NOT_FOUND,
            FailureCode::ForeignOrigin => StatusCode::FORBIDDEN,
            FailureCode::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        };
        (status, Json(Failed { error: self })).into_response()
    }
}
