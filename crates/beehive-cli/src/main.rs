//! The `beehive` program; the library `beehive_cli` implements it.

// glibc's allocator returns buffers as large as a batch of packets to the kernel on every free, and faults their pages in
// again on every read; mimalloc keeps them
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    beehive_cli::run()
}
