#[derive(Key)]
enum Id<'a> {
    Name(Cow<'a, str>),
}
