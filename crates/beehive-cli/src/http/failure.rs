//! Error responses: an HTTP status, a code for programs and a message for people.

use crate::api::{Failed, Failure, FailureCode};
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use beehive_nom::object::NodeId;
use std::collections::BTreeMap;
use utoipa::IntoResponses;
use utoipa::openapi::{self, Content, Ref, RefOr, ResponseBuilder};

impl Failure {
    pub(super) fn bad_request(message: impl Into<String>) -> Failure {
        Failure { code: FailureCode::BadRequest, message: message.into() }
    }

    pub(super) fn unknown_switch(node: NodeId) -> Failure {
        let message = format!("there is no switch {node}; /api/v1/switches lists those that are connected");
        Failure { code: FailureCode::UnknownSwitch, message }
    }

    pub(super) fn unknown_letter(why: impl std::fmt::Display) -> Failure {
        Failure { code: FailureCode::UnknownLetter, message: why.to_string() }
    }

    pub(super) fn unavailable(why: impl std::fmt::Display) -> Failure {
        Failure { code: FailureCode::Unavailable, message: why.to_string() }
    }
}

/// The error responses of every endpoint, for the OpenAPI description.
impl IntoResponses for Failure {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        let statuses = [
            ("400", "The request is wrong."),
            ("401", "The request does not show the token that this controller asks for."),
            ("403", "The request came from a page on the web, and is not for one."),
            ("404", "There is no such switch or path, or the app that knows does not run."),
            ("405", "The path is asked in another way."),
            ("409", "The controller runs without what this is about."),
            ("413", "The request has a body, and none has one here."),
            ("421", "The host name is not served."),
            ("422", "What the configuration file says is wrong."),
            ("503", "The controller stops, or is asked or has to do too much."),
        ];
        let content = || Content::new(Some(Ref::from_schema_name("Failed")));
        let response =
            |words| ResponseBuilder::new().description(words).content("application/json", content());

        statuses.into_iter().map(|(status, words)| (status.into(), response(words).build().into())).collect()
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = match self.code {
            FailureCode::BadRequest => StatusCode::BAD_REQUEST,
            FailureCode::UnknownSwitch
            | FailureCode::UnknownLetter
            | FailureCode::AppNotRunning
            | FailureCode::UnknownPath => StatusCode::NOT_FOUND,
            FailureCode::ForeignOrigin => StatusCode::FORBIDDEN,
            FailureCode::Unauthorized => StatusCode::UNAUTHORIZED,
            FailureCode::UnexpectedBody => StatusCode::PAYLOAD_TOO_LARGE,
            FailureCode::BadConfiguration => StatusCode::UNPROCESSABLE_ENTITY,
            FailureCode::NoConfiguration => StatusCode::CONFLICT,
            FailureCode::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            FailureCode::UnknownHost => StatusCode::MISDIRECTED_REQUEST,
            FailureCode::Unavailable | FailureCode::Busy => StatusCode::SERVICE_UNAVAILABLE,
        };

        (status, Json(Failed { error: self })).into_response()
    }
}
