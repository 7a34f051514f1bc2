#[derive(App)]
enum T {}
