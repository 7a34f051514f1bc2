//! A question to the controller over HTTP.

use super::whereabouts::Whereabouts;
use crate::api::Failed;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// Bytes that are shown of what is not understood.
const SHOWN_MAX: usize = 100;

/// How it is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Method {
    /// What changes nothing.
    Get,
    /// What may.
    Post,
    /// What takes something away.
    Delete,
}

/// A question.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    method: Method,
    path: &'static str,
    parameters: Vec<(&'static str, String)>,
}

impl Question {
    pub(crate) fn new(method: Method, path: &'static str) -> Question {
        Question { method, path, parameters: Vec::new() }
    }

    /// With a parameter, if there is one.
    pub(crate) fn with(mut self, name: &'static str, value: Option<&str>) -> Question {
        self.parameters.extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// Asks; returns what the controller says, or in words why it does not.
    pub(crate) fn answer<T: DeserializeOwned>(
        &self,
        controller: &Whereabouts,
        limit: Duration,
        bytes_max: u64,
    ) -> Result<T, String> {
        let address = &controller.http;
        let (status, body) = self.ask(controller, limit, bytes_max)?;
        if status == 200 {
            return serde_json::from_slice(&body).map_err(|error| {
                format!("what serves HTTP at {address} is not this version of Beehive: {error}")
            });
        }
        Err(match serde_json::from_slice::<Failed>(&body) {
            Ok(failed) => failed.error.message,
            Err(_) => {
                let start = body.trim_ascii().get(..SHOWN_MAX).unwrap_or(body.trim_ascii()).escape_ascii();
                format!(
                    "what serves HTTP at {address} is not Beehive: it answers with status {status} and `{start}`"
                )
            }
        })
    }

    /// Asks; returns the status and the body.
    pub(crate) fn ask(
        &self,
        controller: &Whereabouts,
        limit: Duration,
        bytes_max: u64,
    ) -> Result<(u16, Vec<u8>), String> {
        let settings = ureq::Agent::config_builder().timeout_global(Some(limit)).http_status_as_error(false);
        // a proxy of the environment is for the web, knows no way to this machine, and should see no token
        let agent = ureq::Agent::new_with_config(settings.proxy(None).build());
        let address = &controller.http;
        let url = format!("http://{address}{}", self.path);
        let shown = controller.token()?.map(|token| format!("Bearer {token}"));
        let parameters = self.parameters.iter().map(|(name, value)| (*name, value.as_str()));
        let answer = match self.method {
            Method::Get => with(agent.get(url), shown).query_pairs(parameters).call(),
            Method::Post => with(agent.post(url), shown).query_pairs(parameters).send_empty(),
            Method::Delete => with(agent.delete(url), shown).query_pairs(parameters).call(),
        };
        let mut answer = answer.map_err(|error| {
            format!("no controller answers at {address}: {error} (is it running? --http says where it serves HTTP)")
        })?;
        let body = answer.body_mut().with_config().limit(bytes_max).read_to_vec();
        let body = body.map_err(|error| format!("{address}: {error}"))?;
        Ok((answer.status().as_u16(), body))
    }
}

/// With a token, if there is one.
fn with<B>(request: ureq::RequestBuilder<B>, shown: Option<String>) -> ureq::RequestBuilder<B> {
    match shown {
        Some(shown) => request.header("authorization", shown),
        None => request,
    }
}
