//! The name of the running program, with which its error messages start. A program built with
//! [`Controller`](crate::Controller) reports errors under its own name.

use std::path::Path;

/// Returns the file name of the program without its extension, or `beehive` if it is unknown.
pub(crate) fn name() -> String {
    name_of(std::env::args_os().next().as_ref().map(Path::new))
}

fn name_of(path: Option<&Path>) -> String {
    let stem = path.and_then(Path::file_stem).map(|stem| stem.to_string_lossy().into_owned());
    stem.filter(|name| !name.is_empty()).unwrap_or_else(|| "beehive".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_named_by_its_file() {
        let name = |path: &str| name_of(Some(Path::new(path)));
        assert_eq!(name("/opt/my-controller"), "my-controller");
        assert_eq!(name("beehive"), "beehive");
        assert_eq!((name(""), name_of(None)), ("beehive".to_string(), "beehive".to_string()));
    }
}
