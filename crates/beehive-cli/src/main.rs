//! The `beehive` program. All of it is in the library beside it.

// batches of packets are larger than what the system's allocator keeps at hand: it would give their pages back and take
// new ones for every read
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    beehive_cli::run()
}
