// Everything that the bodies use in addition to the app and the message. Both the stand-in for the runtime and the test
// module that runs bodies on the real runtime contain this file.

pub static COUNT: AtomicU64 = AtomicU64::new(0);
pub static SENT: Mutex<Vec<u64>> = Mutex::new(vec![]);
pub static LIMITS: [u64; 3] = [1, 3, 5];
thread_local! {
    pub static LAST: Cell<u64> = const { Cell::new(0) };
}

/// A type of which only its author knows that reading it changes it.
pub struct Numbers(AtomicU64);
impl Numbers {
    pub fn number(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}
pub static NUMBERS: Numbers = Numbers(AtomicU64::new(0));

macro_rules! debug {
    ($($text:literal,)? $x:ident) => {
        $x ^= 5
    };
}
macro_rules! show {
    ($x:expr) => {
        $x ^ COUNT.fetch_add(1, Ordering::Relaxed)
    };
}
macro_rules! swap_with {
    ($x:ident, $y:expr) => {
        $x = $y.wrapping_add(3)
    };
}
macro_rules! again {
    ($x:ident) => {
        let $x = $x ^ 16;
    };
}
macro_rules! another {
    ($m:ident . $x:ident) => {
        let mut other = $m.clone();
        other.$x ^= 16;
        let $m = &other;
    };
}
pub fn outside(x: u64, y: u64) -> u64 {
    x.rotate_left(1) ^ y
}
pub fn spread(x: u64) -> Vec<u64> {
    vec![x, x ^ 1, x ^ 16]
}
