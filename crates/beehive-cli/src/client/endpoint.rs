//! The flags for the address of a running controller and the token it requires.

use crate::http::token;
use clap::Args;
use std::path::PathBuf;

/// Address and token of a controller. Every command that queries a controller has the same flags, environment
/// variables and defaults.
#[derive(Args, Debug)]
pub(crate) struct Endpoint {
    /// Address on which the controller serves HTTP; the controller prints it when it starts
    #[arg(long, env = "BEEHIVE_HTTP", value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8653", value_parser = parse_address)]
    pub(crate) http: String,

    /// File that contains the token, if the controller requires one
    #[arg(long, env = "BEEHIVE_HTTP_TOKEN_FILE", value_name = "FILE")]
    pub(crate) http_token_file: Option<PathBuf>,
}

impl Endpoint {
    /// Reads the token from the file. Returns `None` if no file was given.
    pub(super) fn token(&self) -> Result<Option<String>, String> {
        let read = self.http_token_file.as_ref().map(|file| {
            token::read(file).map_err(|why| format!("--http-token-file {}: {why}", file.display()))
        });
        read.transpose()
    }
}

/// Parses an address with a port. Ignores a scheme and a path, so that a URL is accepted too.
fn parse_address(text: &str) -> Result<String, String> {
    let address = text.strip_prefix("http://").unwrap_or(text);
    let address = address.split_once('/').map_or(address, |(address, _)| address);
    let is_address = address.rsplit_once(':').is_some_and(|(host, port)| {
        let is_whole = !host.contains(':') || (host.starts_with('[') && host.ends_with(']'));
        !host.is_empty() && is_whole && port.parse::<u16>().is_ok_and(|port| port > 0)
    });

    if is_address {
        return Ok(address.to_string());
    }

    Err("expected an address with a port, such as 127.0.0.1:8653; the controller prints it when it starts"
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_need_a_port() {
        for (text, read) in [
            ("127.0.0.1:8653", "127.0.0.1:8653"),
            ("sdn.example:80", "sdn.example:80"),
            ("[::1]:8653", "[::1]:8653"),
            ("http://127.0.0.1:8653/api/v1/status", "127.0.0.1:8653"),
        ] {
            assert_eq!(parse_address(text).as_deref(), Ok(read));
        }

        for wrong in
            ["", "off", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "::1:8653", ":8653", "a:65536", "a:b"]
        {
            assert!(parse_address(wrong).is_err(), "{wrong}");
        }
    }
}
