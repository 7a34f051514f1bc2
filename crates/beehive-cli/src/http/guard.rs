//! Decides which requests to admit: checks the host name, origin, token, body and number of requests in flight before
//! any endpoint runs.

use super::token::Token;
use super::{failed, host_header};
use crate::api::{Failure, FailureCode};
use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Maximum number of requests in flight; further ones are refused with status 503.
const REQUESTS_MAX: usize = 32;

/// The rules for admitting requests.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    hosts: Arc<[String]>,
    token: Option<Token>,
    requests: Arc<Semaphore>,
}

impl Guard {
    /// Returns a guard that admits requests to localhost, to an IP address or to one of `hosts`. If there is a
    /// `token`, requests must carry it as a bearer token.
    pub(crate) fn new(hosts: Vec<String>, token: Option<Token>) -> Guard {
        Guard { hosts: hosts.into(), token, requests: Arc::new(Semaphore::new(REQUESTS_MAX)) }
    }

    /// Returns the reason for refusing a request, or `None` if the request is admitted.
    fn rejection(&self, request: &Request) -> Option<Failure> {
        let headers = request.headers();
        // requires exactly one `Host` header: with several, a proxy and this server might each use a different one
        // (request smuggling)
        let mut names = headers.get_all(header::HOST).iter().map(|host| host.to_str().ok());

        let is_allowed = |host: &str| host_header::is_allowed(host, &self.hosts);
        if !names.next().flatten().is_some_and(is_allowed) || names.next().is_some() {
            let why = "this host name is not served: use localhost or an IP address, or start the controller with --http-host NAME";
            return Some(failed(FailureCode::UnknownHost, why));
        }

        // a web page can make a browser send a request with side effects; browsers add an `Origin` header to such
        // requests
        if !request.method().is_safe() && headers.contains_key(header::ORIGIN) {
            return Some(failed(
                FailureCode::ForeignOrigin,
                "requests from web pages (with an Origin header) are refused",
            ));
        }

        // process supervisors query /health without a token
        let is_open = request.uri().path() == "/health";
        if !is_open && self.token.is_some_and(|token| !token.authorizes(headers)) {
            let why = "this controller requires a token: use --http-token-file FILE, or send the header \
                `Authorization: Bearer ..`";
            return Some(failed(FailureCode::Unauthorized, why));
        }

        if !request.body().is_end_stream() {
            return Some(failed(FailureCode::UnexpectedBody, "requests must not have a body"));
        }

        None
    }
}

/// Middleware that runs admitted requests and answers others with an error.
pub(super) async fn admit(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let mut response = if let Some(failure) = guard.rejection(&request) {
        let asks_for_token = failure.code == FailureCode::Unauthorized;
        let mut response = failure.into_response();
        if asks_for_token {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    } else if let Ok(_permit) = guard.requests.try_acquire() {
        next.run(request).await
    } else {
        failed(FailureCode::Busy, "too many requests in flight; try again later").into_response()
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff"));
    response
}
