#[derive(Key)]
enum Never {}
