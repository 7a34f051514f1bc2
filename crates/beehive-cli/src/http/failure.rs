//! Error responses: an HTTP status, a code for programs and a message for people.

use crate::api::{Failed, Failure, FailureCode};
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use beehive_core::{MessageError, RequestError};
use beehive_nom::object::NodeId;
use std::collections::BTreeMap;
use utoipa::IntoResponses;
use utoipa::openapi::{self, Content, Ref, RefOr, ResponseBuilder};

impl Failure {
    pub(super) fn bad_request(message: impl Into<String>) -> Failure {
        Failure { code: FailureCode::BadRequest, message: message.into() }
    }

    pub(super) fn unknown_switch(node: NodeId) -> Failure {
        let message = format!("unknown switch {node}: /api/v1/switches lists the connected switches");
        Failure { code: FailureCode::UnknownSwitch, message }
    }

    pub(super) fn unknown_letter(why: impl std::fmt::Display) -> Failure {
        Failure { code: FailureCode::UnknownLetter, message: why.to_string() }
    }

    /// Converts the failure of a request to an app.
    pub(super) fn of_request<E: MessageError>(error: RequestError<E>) -> Failure {
        let code = match &error {
            RequestError::NoAnswer { .. } | RequestError::NoApp { .. } => FailureCode::AppNotRunning,
            RequestError::Overloaded { .. }
            | RequestError::Limit(_)
            | RequestError::Stale(_)
            | RequestError::Unavailable => FailureCode::Unavailable,
            RequestError::Timeout { .. } => FailureCode::Timeout,
            _ => FailureCode::Internal,
        };
        Failure { code, message: error.to_string() }
    }

    pub(super) fn unavailable(why: impl std::fmt::Display) -> Failure {
        Failure { code: FailureCode::Unavailable, message: why.to_string() }
    }
}

/// The error responses of every endpoint, for the OpenAPI description.
impl IntoResponses for Failure {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        let statuses = [
            ("400", "The parameters are invalid."),
            ("401", "The bearer token is missing or wrong."),
            ("403", "The request comes from a web page (it has an Origin header)."),
            ("404", "The path or the switch is unknown, or the app that answers the query is not running."),
            ("405", "The path does not support this method."),
            ("409", "The controller was started without a configuration file."),
            ("413", "The request has a body; no endpoint accepts one."),
            ("421", "The Host header is not one of the names that are served."),
            ("422", "The configuration file has an error."),
            ("500", "An app failed to handle the request; the log and the dead letters have the details."),
            ("503", "The controller is stopping or overloaded, or too many requests are in flight."),
            ("504", "An app did not answer in time; it is unknown whether the app has handled the request."),
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
            FailureCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            FailureCode::Unavailable | FailureCode::Busy => StatusCode::SERVICE_UNAVAILABLE,
            FailureCode::Timeout => StatusCode::GATEWAY_TIMEOUT,
        };

        (status, Json(Failed { error: self })).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use beehive_core::Error;
    use std::time::Duration;

    #[test]
    fn each_failure_of_a_request_to_an_app_has_its_status() {
        let after = Duration::from_secs(5);
        let failures: [(RequestError, u16); 10] = [
            (RequestError::NoAnswer { message: "m" }, 404),
            (RequestError::NoApp { message: "m" }, 404),
            (RequestError::Handler(Error::new("no")), 500),
            (RequestError::Panicked, 500),
            (RequestError::Aborted, 500),
            (RequestError::Unmapped, 500),
            (RequestError::Limit(Error::new("full")), 503),
            (RequestError::Overloaded { after }, 503),
            (RequestError::Unavailable, 503),
            (RequestError::Timeout { after }, 504),
        ];

        for (error, status) in failures {
            let name = format!("{error:?}");
            assert_eq!(Failure::of_request(error).into_response().status().as_u16(), status, "{name}");
        }
    }
}
