//! Where the controller is that is asked.

use clap::Args;

/// Where the controller is that is asked: the same flag, environment and default for every command that asks one.
#[derive(Args, Debug)]
pub(crate) struct Whereabouts {
    /// Where the controller serves HTTP; it says so when it starts
    #[arg(long, env = "BEEHIVE_HTTP", value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8653")]
    pub(crate) http: String,
}
