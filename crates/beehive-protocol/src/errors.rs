//! Shows an error as a sentence where a program prints it without being asked to.

/// Gives error types a `Debug` that is their `Display`.
///
/// A `main` that returns `Result<(), Box<dyn Error>>` prints the `Debug` of its error, and so does `unwrap`. Who reads it needs the
/// sentence with the remedy, which is in `Display`, and not the fields of a variant.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_is_display {
    ($($error:ty),+ $(,)?) => {$(
        /// The same as `Display`: a `main` that returns the error prints this one.
        impl ::std::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(self, f)
            }
        }
    )+};
}
