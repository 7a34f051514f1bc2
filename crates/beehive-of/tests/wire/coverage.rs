//! The table of what is covered is generated from the declarations, and must be the one in the documentation.

use beehive_of::Version;
use beehive_of::message::{
    Action, Instruction, Message, NiciraAction, NiciraMessage, NiciraReply, NiciraRequest, OnfAction,
    OnfMessage, OnfReply, OnfRequest, ReplyBody, RequestBody,
};

type Number = fn(&str, Version) -> Option<u16>;

fn table(title: &str, names: &[&str], number: Number) -> String {
    let mut table =
        format!("| {title} | 1.0 | 1.1 | 1.2 | 1.3 | 1.4 | 1.5 |\n|---|---|---|---|---|---|---|\n");
    for name in names {
        table += &format!("| {name} |");
        for version in Version::ALL {
            table += &match number(name, version) {
                Some(number) => format!(" {number} |"),
                None => " – |".to_owned(),
            };
        }
        table += "\n";
    }
    table + "\n"
}

#[test]
fn the_documentation_has_the_table_of_what_is_covered() {
    let mut document = "# What is covered\n\nEach number is that of a message, action or instruction in a version; a dash \
        says that the version's specification\ndoes not have it. What has a number is decoded, encoded, told as text and \
        composed from named values: all four come\nfrom one declaration. What has none is kept as it is.\n\n"
        .to_owned();
    document += &table("message", Message::NAMES, Message::number);
    document += &table("statistics or multipart request", RequestBody::NAMES, RequestBody::number);
    document += &table("statistics or multipart reply", ReplyBody::NAMES, ReplyBody::number);
    document += &table("action", Action::NAMES, Action::number);
    document += &table("instruction", Instruction::NAMES, Instruction::number);
    document += "# Extensions\n\n";
    document += &table("Open vSwitch's message", NiciraMessage::NAMES, NiciraMessage::number);
    document += &table("Open vSwitch's statistics request", NiciraRequest::NAMES, NiciraRequest::number);
    document += &table("Open vSwitch's statistics reply", NiciraReply::NAMES, NiciraReply::number);
    document += &table("Open vSwitch's action", NiciraAction::NAMES, NiciraAction::number);
    document += &table("the ONF's message", OnfMessage::NAMES, OnfMessage::number);
    document += &table("the ONF's multipart request", OnfRequest::NAMES, OnfRequest::number);
    document += &table("the ONF's multipart reply", OnfReply::NAMES, OnfReply::number);
    document += &table("the ONF's action", OnfAction::NAMES, OnfAction::number);
    let document = document.trim_end().to_owned() + "\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/COVERAGE.md");
    if std::env::var_os("BEEHIVE_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(path, &document).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(written, document, "COVERAGE.md is out of date: run this test with BEEHIVE_BLESS=1");
}
