//! A question to the controller over HTTP.

use std::time::Duration;

/// How it is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Method {
    /// What changes nothing.
    Get,
    /// What may.
    Post,
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

    /// Asks; returns the status and the body.
    pub(crate) fn ask(
        &self,
        address: &str,
        limit: Duration,
        bytes_max: u64,
    ) -> Result<(u16, Vec<u8>), String> {
        let settings = ureq::Agent::config_builder().timeout_global(Some(limit)).http_status_as_error(false);
        let agent = ureq::Agent::new_with_config(settings.build());
        let url = format!("http://{address}{}", self.path);
        let parameters = self.parameters.iter().map(|(name, value)| (*name, value.as_str()));
        let answer = match self.method {
            Method::Get => agent.get(url).query_pairs(parameters).call(),
            Method::Post => agent.post(url).query_pairs(parameters).send_empty(),
        };
        let mut answer = answer.map_err(|error| {
            format!("no controller answers at {address}: {error} (is it running? --http says where it serves HTTP)")
        })?;
        let body = answer.body_mut().with_config().limit(bytes_max).read_to_vec();
        let body = body.map_err(|error| format!("{address}: {error}"))?;
        Ok((answer.status().as_u16(), body))
    }
}
