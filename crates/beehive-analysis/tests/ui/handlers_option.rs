#[handlers(trust(f))]
impl T {}
