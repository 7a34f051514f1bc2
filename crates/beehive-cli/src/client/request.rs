//! Sends the requests of the commands to the controller over HTTP.

use super::endpoint::Endpoint;
use crate::api::Failed;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Maximum number of bytes quoted from an unexpected answer in an error message.
const EXCERPT_BYTES_MAX: usize = 100;

/// The HTTP method of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Method {
    /// Only reads.
    Get,
    /// May change something.
    Post,
    /// Removes something.
    Delete,
}

/// A request without a body.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    method: Method,
    path: &'static str,
    parameters: Vec<(&'static str, String)>,
}

impl Request {
    pub(crate) fn new(method: Method, path: &'static str) -> Request {
        Request { method, path, parameters: Vec::new() }
    }

    /// Adds a query parameter if there is a value.
    pub(crate) fn with(mut self, name: &'static str, value: Option<&str>) -> Request {
        self.parameters.extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// Sends the request and parses the answer.
    ///
    /// # Errors
    ///
    /// Returns an error if the controller cannot be reached, refuses the request, or is a different version of Beehive.
    /// The text states the reason.
    pub(crate) fn fetch<T: DeserializeOwned>(
        &self,
        controller: &Endpoint,
        limit: Duration,
        bytes_max: u64,
    ) -> Result<T, String> {
        let address = &controller.http;
        let (status, body) = self.send(controller, limit, bytes_max)?;
        if status == 200 {
            return serde_json::from_slice(&body).map_err(|error| {
                format!("the HTTP server at {address} does not run this version of Beehive: {error}")
            });
        }

        Err(match serde_json::from_slice::<Failed>(&body) {
            Ok(failed) => failed.error.message,
            Err(_) => {
                let start =
                    body.trim_ascii().get(..EXCERPT_BYTES_MAX).unwrap_or(body.trim_ascii()).escape_ascii();
                format!(
                    "the HTTP server at {address} is not Beehive: it answers with status {status} and `{start}`"
                )
            }
        })
    }

    /// Sends the request. Returns the HTTP status and the body, even if the status is an error.
    ///
    /// # Errors
    /// Returns an error if the token file cannot be read, or if no complete answer arrives in time.
    pub(crate) fn send(
        &self,
        controller: &Endpoint,
        limit: Duration,
        bytes_max: u64,
    ) -> Result<(u16, Vec<u8>), String> {
        let settings = ureq::Agent::config_builder().timeout_global(Some(limit)).http_status_as_error(false);
        // ignore proxies in the environment: a proxy cannot reach loopback addresses, and must not see the token
        let agent = ureq::Agent::new_with_config(settings.proxy(None).build());
        let address = &controller.http;
        let url = format!("http://{address}{}", self.path);
        let authorization = controller.token()?.map(|token| format!("Bearer {token}"));
        let parameters = self.parameters.iter().map(|(name, value)| (*name, value.as_str()));
        let answer = match self.method {
            Method::Get => authorized(agent.get(url), authorization).query_pairs(parameters).call(),
            Method::Post => authorized(agent.post(url), authorization).query_pairs(parameters).send_empty(),
            Method::Delete => authorized(agent.delete(url), authorization).query_pairs(parameters).call(),
        };

        let mut answer = answer.map_err(|error| {
            format!("no controller answers at {address}: {error} (is the controller running? --http sets its HTTP address)")
        })?;

        let body = answer.body_mut().with_config().limit(bytes_max).read_to_vec();
        let body = body.map_err(|error| format!("{address}: {error}"))?;
        Ok((answer.status().as_u16(), body))
    }
}

/// Adds the `Authorization` header, if there is a token.
fn authorized<B>(request: ureq::RequestBuilder<B>, authorization: Option<String>) -> ureq::RequestBuilder<B> {
    match authorization {
        Some(authorization) => request.header("authorization", authorization),
        None => request,
    }
}
