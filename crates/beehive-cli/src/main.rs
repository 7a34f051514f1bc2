//! The `beehive` program, implemented by the library `beehive_cli`.

// When a buffer as large as a batch of packets is freed, glibc's allocator returns it to the kernel, and the next read
// faults its pages in again. mimalloc keeps such buffers.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    beehive_cli::run()
}
