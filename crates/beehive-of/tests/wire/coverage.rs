//! Generates the coverage table from the declarations and compares it with the table in the documentation.

use beehive_of::Version;
use beehive_of::message::{
    Action, Instruction, Message, NiciraAction, NiciraMessage, NiciraReply, NiciraRequest, OnfAction,
    OnfMessage, OnfReply, OnfRequest, ReplyBody, RequestBody,
};

use crate::arbitrary::{Place, is_covered};

type Number = fn(&str, Version) -> Option<u16>;

/// Returns a table with the number of each name in each version. Marks the numbers whose round trips work.
fn table(title: &str, names: &[&str], number: Number, place: &Place) -> String {
    let mut table =
        format!("| {title} | 1.0 | 1.1 | 1.2 | 1.3 | 1.4 | 1.5 |\n|---|---|---|---|---|---|---|\n");
    for name in names {
        table += &format!("| {name} |");
        for version in Version::ALL {
            table += &match number(name, version) {
                Some(number) if is_covered(place, name, version) => format!(" {number} det |"),
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
    let mut document = "# Coverage\n\n\
        The tables list the number of each message, action and instruction in each version; a dash means that the\n\
        specification of the version does not have it. The letters after the number mean that a test decodes it (d), encodes it\n\
        unchanged (e), and displays it as text and composes it again (t). Elements without a number are preserved as bytes.\n\n"
        .to_owned();
    document += &table("message", Message::NAMES, Message::number, &Place::Message);
    document += &table(
        "statistics or multipart request",
        RequestBody::NAMES,
        RequestBody::number,
        &Place::Multipart("multipart_request"),
    );
    document += &table(
        "statistics or multipart reply",
        ReplyBody::NAMES,
        ReplyBody::number,
        &Place::Multipart("multipart_reply"),
    );
    document += &table("action", Action::NAMES, Action::number, &Place::Action);
    document += &table("instruction", Instruction::NAMES, Instruction::number, &Place::Instruction);
    document += "# Extensions\n\n";
    document += &table(
        "Open vSwitch's message",
        NiciraMessage::NAMES,
        NiciraMessage::number,
        &Place::Extension("nicira"),
    );
    document += &table(
        "Open vSwitch's statistics request",
        NiciraRequest::NAMES,
        NiciraRequest::number,
        &Place::MultipartExtension("multipart_request", "nicira"),
    );
    document += &table(
        "Open vSwitch's statistics reply",
        NiciraReply::NAMES,
        NiciraReply::number,
        &Place::MultipartExtension("multipart_reply", "nicira"),
    );
    document += &table(
        "Open vSwitch's action",
        NiciraAction::NAMES,
        NiciraAction::number,
        &Place::ActionExtension("nicira"),
    );
    document += &table("the ONF's message", OnfMessage::NAMES, OnfMessage::number, &Place::Extension("onf"));
    document += &table(
        "the ONF's multipart request",
        OnfRequest::NAMES,
        OnfRequest::number,
        &Place::MultipartExtension("multipart_request", "onf"),
    );
    document += &table(
        "the ONF's multipart reply",
        OnfReply::NAMES,
        OnfReply::number,
        &Place::MultipartExtension("multipart_reply", "onf"),
    );
    document +=
        &table("the ONF's action", OnfAction::NAMES, OnfAction::number, &Place::ActionExtension("onf"));
    let document = document.trim_end().to_owned() + "\n";
    let empty: Vec<&str> = document
        .lines()
        .filter(|line| line.split('|').skip(2).any(|cell| cell.trim().parse::<u32>().is_ok()))
        .collect();
    assert!(empty.is_empty(), "not covered: {empty:#?}");

    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/COVERAGE.md");
    if std::env::var_os("BEEHIVE_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(path, &document).unwrap();
    }

    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(written, document, "COVERAGE.md is out of date: run this test with BEEHIVE_BLESS=1");
}
