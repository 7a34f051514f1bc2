//! The associated functions and methods that bodies call.

/// Returns a handler with this body, and the helpers that it calls.
pub(super) fn with_helpers(n: usize, body: &str) -> String {
    let body = body.replace("{i}", &n.to_string());
    let mut text =
        format!("#[rcv] fn g{n}(&mut self, m: &M<{n}>, ctx: &mut Ctx) -> Result {{ {body} Ok(()) }}\n");
    for helper in helpers(n) {
        let name = helper.split_once("fn ").and_then(|(_, rest)| rest.split(['(', '<']).next());
        if name.is_some_and(|name| body.contains(&format!("{name}(")) || body.contains(&format!("{name}::")))
        {
            text += &helper;
        }
    }
    text
}

/// Returns the helpers of a handler.
fn helpers(n: usize) -> [String; 13] {
    [
        format!("fn mix{n}(x: u64, y: u64) -> u64 {{ if x > y {{ x ^ 1 }} else {{ y }} }}\n"),
        format!("fn bump{n}(v: &mut u64, x: u64) {{ *v ^= x; }}\n"),
        format!("fn grow{n}(v: &mut Vec<u64>, x: u64) {{ if v.len() < 9 {{ v.push(x); }} }}\n"),
        format!("fn pick{n}(v: &[u64], x: u64) -> Option<u64> {{ v.iter().copied().find(|q| *q > x) }}\n"),
        format!("fn same{n}<T: Clone>(v: &T) -> T {{ v.clone() }}\n"),
        format!("fn view{n}<T>(v: &mut T) -> &mut T {{ v }}\n"),
        format!("fn twice{n}(mut run: impl FnMut()) {{ run(); run(); }}\n"),
        format!("fn touch{n}(&mut self, x: u64) {{ self.e.put(x, 1); }}\n"),
        format!("fn raise{n}(&mut self, x: &mut u64) {{ *x ^= self.e.get(&3).copied().unwrap_or(16); }}\n"),
        format!(
            "#[cfg(any())] fn either{n}(&mut self, x: u64) {{ self.d.put(x, 1); }} \
             #[cfg(not(any()))] fn either{n}(&mut self, x: u64) {{ self.e.put(x, 1); }}\n"
        ),
        format!(
            "#[cfg(not(any()))] fn which{n}(x: u64) -> u64 {{ x ^ 16 }} \
             #[cfg(any())] fn which{n}(x: u64) -> u64 {{ x ^ 8 }}\n"
        ),
        format!(
            "#[cfg(any())] fn fill{n}(v: &mut Vec<u64>, x: u64) {{ v.push(x); }} \
             #[cfg(not(any()))] fn fill{n}(v: &mut Vec<u64>, x: u64) {{ v.push(x ^ 16); v.reverse(); }}\n"
        ),
        format!("fn first{n}<T: Copy, const N: usize>(v: [T; N]) -> Option<T> {{ v.first().copied() }}\n"),
    ]
}
