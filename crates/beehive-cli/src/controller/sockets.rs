//! Opens the controller's listening sockets.

use super::Failure;
use super::options::HttpAddress;
use beehive_nom::driver::openflow::ListenError;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use tokio::net::TcpListener;

/// Length of the accept queue of a listening socket. After a restart, all switches connect in one moment. The operating
/// system may allow less (`net.core.somaxconn`, 4096 by default).
const BACKLOG: i32 = 16_384;

/// Opens the sockets for switches. If both `0.0.0.0` and `[::]` are given, missing IPv6 support is not an error.
pub(super) fn for_switches(addresses: &[SocketAddr]) -> Result<Vec<TcpListener>, Failure> {
    let mut sockets = Vec::new();
    for address in addresses {
        match listen(*address) {
            Ok(socket) => sockets.push(socket),
            Err(error) if is_optional(*address, addresses) && is_missing(&error) => {
                tracing::debug!(%address, %error, "IPv6 is not available");
            }
            Err(error) => return Err(ListenError { address: *address, error }.into()),
        }
    }

    Ok(sockets)
}

fn is_optional(address: SocketAddr, all: &[SocketAddr]) -> bool {
    address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) && all.iter().any(SocketAddr::is_ipv4)
}

fn is_missing(error: &std::io::Error) -> bool {
    // 97 is EAFNOSUPPORT on Linux, for which there is no `ErrorKind`
    error.kind() == ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(97)
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        // without this option, `[::]` would also accept IPv4 connections, and binding `0.0.0.0` would fail
        socket.set_only_v6(true)?;
    }

    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Opens the socket for HTTP. If the default port is taken, uses any free port.
pub(super) async fn for_http(wanted: &HttpAddress) -> Result<TcpListener, Failure> {
    let HttpAddress { address, any_port } = *wanted;
    match listen(address) {
        Ok(socket) => Ok(socket),
        Err(error) if any_port && error.kind() == ErrorKind::AddrInUse => {
            let other = SocketAddr::new(address.ip(), 0);
            listen(other).map_err(|error| ListenError { address: other, error }.into())
        }
        Err(error) => Err(ListenError { address, error }.into()),
    }
}
