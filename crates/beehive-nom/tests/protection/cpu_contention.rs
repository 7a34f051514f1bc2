//! Measures the processor time of other programs during a measurement.

/// Processor times at a moment, in clock ticks.
pub(crate) struct Spent {
    /// Time of all programs, and of other virtual machines on the same processors.
    all: u64,
    /// Time of this program.
    own: u64,
    /// Idle time.
    idle: u64,
}

impl Spent {
    /// Returns the times so far; zero if there is no `/proc`.
    pub(crate) fn now() -> Spent {
        let numbers = |text: &str| -> Vec<u64> {
            text.split_whitespace().map(|word| word.parse().unwrap_or_default()).collect()
        };
        let machine = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let machine = numbers(machine.lines().next().unwrap_or_default().trim_start_matches("cpu"));
        let own = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();

        // skip the name, which is in brackets and may contain spaces
        let own = numbers(own.rsplit(')').next().unwrap_or_default());
        let of = |numbers: &[u64], places: &[usize]| -> u64 {
            places.iter().filter_map(|place| numbers.get(*place)).sum()
        };

        // user, nice, system, idle, iowait, irq, softirq, steal (proc_stat(5))
        let (all, idle) = (of(&machine, &[0, 1, 2, 7]), of(&machine, &[3, 4]));
        Spent { all, own: of(&own, &[11, 12]), idle }
    }

    /// Returns the fraction of processor time since `earlier` that other programs used.
    pub(crate) fn by_others_since(&self, earlier: &Spent) -> f64 {
        let since = |now: u64, earlier: u64| now.saturating_sub(earlier);
        let (all, own) = (since(self.all, earlier.all), since(self.own, earlier.own));
        let whole = all + since(self.idle, earlier.idle);
        all.saturating_sub(own) as f64 / whole.max(1) as f64
    }
}

#[test]
fn a_program_that_is_busy_is_seen_and_this_one_is_not() {
    let _alone = crate::ALONE.blocking_lock();
    let spin = |duration| {
        let begun = std::time::Instant::now();
        while begun.elapsed() < duration {}
    };
    let (mut least, while_measured) = (f64::MAX, std::time::Duration::from_millis(500));

    for _ in 0..5 {
        let before = Spent::now();
        spin(while_measured);
        least = least.min(Spent::now().by_others_since(&before));
    }

    let mut other = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh");
    let before = Spent::now();
    std::thread::sleep(while_measured);
    let busy = Spent::now().by_others_since(&before);
    let _ = (other.kill(), other.wait());
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;

    assert!(busy > 0.4 / cores, "{busy}");
    assert!(
        least < busy,
        "{least} of what this program does itself is taken for others', {busy} with another one"
    );
}
