//! Checks our encoding with Wireshark's dissector, in the versions that it supports: 1.0, 1.3, 1.4 and 1.5.

use std::ops::RangeInclusive;
use std::process::Command;

use beehive_of::message::{Message, Multipart, ReplyBody};
use beehive_of::oxm::{FIELDS, Known, class};
use beehive_of::{Frame, Version};

use crate::corpus::hex;
use crate::temporary;

/// Returns a capture file of the messages. Each message is in a TCP segment of a separate connection, without
/// an Ethernet header (LINKTYPE_RAW).
fn capture(messages: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(0xa1b2_c3d4u32.to_le_bytes());
    file.extend([2, 0, 4, 0]);
    file.extend([0; 8]);
    file.extend(65_535u32.to_le_bytes());
    file.extend(101u32.to_le_bytes());
    for (index, message) in messages.iter().enumerate() {
        let length = 40 + message.len();
        let mut packet = vec![0x45, 0];
        packet.extend((length as u16).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend((10_000 + index as u16).to_be_bytes());
        packet.extend(6653u16.to_be_bytes());
        packet.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend(message);
        for word in [index as u32, 0, length as u32, length as u32] {
            file.extend(word.to_le_bytes());
        }

        file.extend(packet);
    }

    file
}

/// The dissector's output for a message: the values of fields, and whether it is malformed.
struct Verdict {
    /// The type, the transaction identifier and the length; for a flow-mod also the priority, the idle
    /// timeout and the cookie.
    numbers: Vec<String>,
    malformed: bool,
    line: String,
}

/// Returns the names of the fields to request in a version. The first one is the type.
fn names(version: Version) -> [String; 6] {
    if version == Version::V1_0 {
        let of = |name: &str| format!("openflow.{name}");
        let fields = ["xid", "length", "priority", "idle_timeout", "cookie"].map(of);
        let [xid, length, priority, idle_timeout, cookie] = fields;
        return ["openflow_1_0.type".to_owned(), xid, length, priority, idle_timeout, cookie];
    }
    let of = |name: &str| format!("openflow_v{}.{name}", version.wire());
    ["type", "xid", "length", "flowmod.priority", "flowmod.idle_timeout", "flowmod.cookie"].map(of)
}

/// Returns the dissector's verdict for each message. Prints a note and returns `None` if the dissector is not
/// installed.
fn dissect(version: Version, messages: &[Vec<u8>]) -> Option<Vec<Verdict>> {
    let path = temporary::path(".pcap");
    std::fs::write(&path, capture(messages)).unwrap();
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&path).args(["-T", "fields", "-E", "occurrence=f", "-e", "_ws.malformed"]);
    command.args(["-e", "_ws.expert.group"]);
    names(version).iter().for_each(|name| {
        command.args(["-e", name]);
    });

    let output = command.output();
    let _ = std::fs::remove_file(&path);
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            let required = std::env::var_os("BEEHIVE_REQUIRE_OVS").is_some_and(|value| value == "1");
            assert!(!required, "BEEHIVE_REQUIRE_OVS=1, but tshark: {error}");
            eprintln!("SKIPPED: the dissector did not check our messages: tshark: {error}");
            return None;
        }
    };

    assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));

    let verdicts = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| {
            let mut values = line.split('\t').map(str::to_owned);
            let malformed = values.next().is_some_and(|value| !value.is_empty());
            // 0x07000000 is the expert info group "malformed".
            let malformed =
                malformed | values.next().is_some_and(|group| matches!(&*group, "117440512" | "0x07000000"));
            Verdict { numbers: values.collect(), malformed, line: line.to_owned() }
        })
        .collect();

    Some(verdicts)
}

/// Returns whether the dissector is of the release for which [`DEFECTS`] lists the defects. Other releases
/// may have fixed some of these defects, but must not have others.
fn is_counted_release() -> bool {
    let output = Command::new("tshark").arg("--version").output();
    let told = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    told.lines().next().is_some_and(|line| line.contains(&format!("(Wireshark) {COUNTED_RELEASE}.")))
}

/// The release of the dissector for which [`DEFECTS`] lists the defects.
const COUNTED_RELEASE: &str = "4.0";

/// A defect of the dissector, which makes it report valid messages as malformed.
struct Defect {
    what: &'static str,
    /// The minor numbers of the affected versions.
    versions: RangeInclusive<u8>,
    /// Number of our messages that the counted release reports as malformed. These are exactly the messages
    /// for which `spoils` returns true.
    count: usize,
    spoils: fn(&Message<'_>) -> bool,
}

const DEFECTS: &[Defect] = &[
    Defect {
        what: "parses the data of an error as a message, even if it is not a message",
        versions: 3..=5,
        count: 3,
        spoils: |message| matches!(message, Message::Error(error) if error.data.first().is_some_and(|version| *version > 6)),
    },
    Defect {
        what: "expects at least one action",
        versions: 0..=0,
        count: 1,
        spoils: |message| matches!(message, Message::FlowMod(flow) if flow.actions.is_empty()),
    },
    Defect {
        what: "does not find the end of an action that it does not support",
        versions: 0..=0,
        count: 1,
        spoils: |message| {
            matches!(message, Message::PacketOut(_)) && format!("{message:?}").contains("Enqueue(")
        },
    },
    Defect {
        what: "parses data that is shorter than an Ethernet header as an Ethernet packet",
        versions: 0..=5,
        count: 4,
        spoils: |message| matches!(message, Message::PacketOut(packet) if (1..14).contains(&packet.data.len())),
    },
    Defect {
        what: "reads past the end of experimenter statistics",
        versions: 3..=5,
        count: 4,
        spoils: |message| matches!(body(message), Some(ReplyBody::Experimenter(_))),
    },
    Defect {
        what: "reads the properties of a queue at the offset of its port",
        versions: 4..=5,
        count: 4,
        spoils: |message| matches!(body(message), Some(ReplyBody::Queue(_) | ReplyBody::QueueDescription(_))),
    },
    Defect {
        what: "parses a bucket of 1.5 as a bucket of 1.3",
        versions: 5..=5,
        count: 1,
        spoils: |message| matches!(message, Message::GroupMod(group) if !group.buckets.is_empty()),
    },
    Defect {
        what: "reads past the end of a property of a controller status",
        versions: 5..=5,
        count: 2,
        spoils: |message| {
            matches!(message, Message::ControllerStatus(_))
                || matches!(body(message), Some(ReplyBody::ControllerStatus(_)))
        },
    },
    Defect {
        what: "parses the field identifiers of copy_field as fields with values",
        versions: 5..=5,
        count: 1,
        spoils: |message| format!("{message:?}").contains("CopyField("),
    },
    Defect {
        what: "supports neither the flow statistics of 1.5 nor the bundle features",
        versions: 5..=5,
        count: 2,
        spoils: |message| {
            matches!(body(message), Some(ReplyBody::FlowStatistics(_) | ReplyBody::BundleFeatures(_)))
        },
    },
];

fn body<'m, 'a>(message: &'m Message<'a>) -> Option<&'m ReplyBody<'a>> {
    match message {
        Message::MultipartReply(Multipart { body, .. }) => Some(body),
        _ => None,
    }
}

/// Replaces the standard class of fields by another class. In 1.5, the dissector fails at the name of the
/// standard class, but skips fields of other classes by their length. Returns `None` if no field has the
/// standard class.
fn with_another_class(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut changed = bytes.to_vec();
    for at in 8..bytes.len().saturating_sub(3) {
        let &[0x80, 0, number, length] = &bytes[at..at + 4] else { continue };
        let is_field = |known: &&Known| {
            let value = known.kind.length() << (number & 1);
            // Lists of fields without values contain the length of the value.
            (known.class, known.number) == (class::BASIC, number >> 1) && value == length
        };
        if FIELDS.iter().any(|known| is_field(&known)) {
            changed[at..at + 2].copy_from_slice(&[0, 1]);
        }
    }

    (changed != bytes).then_some(changed)
}

/// Returns whether the dissector reports every message of 1.5 that has a standard field as malformed; `None`
/// if the dissector is not installed.
fn fails_at_the_class() -> Option<bool> {
    let messages = crate::corpus::ours(Version::V1_5).into_iter().map(|(_, bytes)| bytes);
    let messages: Vec<Vec<u8>> = messages.filter(|bytes| with_another_class(bytes).is_some()).collect();
    let verdicts = dissect(Version::V1_5, &messages)?;
    assert!(!verdicts.is_empty());
    Some(verdicts.iter().all(|verdict| verdict.malformed))
}

#[test]
fn a_dissector_makes_the_same_of_our_messages() {
    let mut disagreements = String::new();
    let (mut judged, mut spoilt) = (0, 0);
    let mut counts = vec![0; DEFECTS.len()];
    let exact = is_counted_release();
    let Some(class_fails) = fails_at_the_class() else { return };
    for version in [Version::V1_0, Version::V1_3, Version::V1_4, Version::V1_5] {
        let ours = crate::corpus::ours(version).into_iter().map(|(_, bytes)| bytes);
        let complete = crate::message_samples::complete(version).into_iter().map(|(bytes, _)| bytes);

        // Some samples are invalid on purpose.
        let whole = |bytes: &Vec<u8>| Message::parse_strict(Frame::whole(bytes).unwrap()).is_ok();
        let messages: Vec<Vec<u8>> = ours.chain(complete).filter(whole).collect();
        let told: Vec<Vec<u8>> = messages
            .iter()
            .map(|bytes| match version {
                Version::V1_5 if class_fails => with_another_class(bytes).unwrap_or_else(|| bytes.clone()),
                _ => bytes.clone(),
            })
            .collect();
        let Some(verdicts) = dissect(version, &told) else { return };
        assert_eq!(verdicts.len(), messages.len());
        for (bytes, verdict) in messages.iter().zip(verdicts) {
            let frame = Frame::whole(bytes).unwrap();
            let message = Message::parse(frame).unwrap();
            let mut expected = vec![u64::from(bytes[1]), u64::from(frame.xid()), bytes.len() as u64];
            if let Message::FlowMod(flow) = message {
                expected.extend([flow.priority.into(), flow.idle_timeout.into(), flow.cookie]);
            }

            let numbers = verdict.numbers.iter().map(|text| {
                let digits = text.strip_prefix("0x");
                digits.map_or_else(|| text.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok())
            });
            let agrees = expected.iter().zip(numbers).all(|(expected, number)| number == Some(*expected));
            let defect = DEFECTS
                .iter()
                .position(|defect| defect.versions.contains(&version.minor()) && (defect.spoils)(&message));
            judged += 1;
            if let Some(defect) = defect.filter(|_| verdict.malformed) {
                counts[defect] += 1;
                spoilt += 1;
            }

            // In the counted release, a listed defect that does not occur must be removed from the list,
            // because it could hide a defect of this crate.
            let excused = defect.is_some() == verdict.malformed || (!exact && !verdict.malformed);
            if !agrees || !excused {
                let told = message.display(frame.header());
                let defect = defect.map_or("no known defect", |defect| DEFECTS[defect].what);
                disagreements +=
                    &format!("{version} {} | {defect} | {told}\n    {}\n", verdict.line, hex(bytes));
            }
        }
    }

    assert!(disagreements.is_empty(), "\n{disagreements}");
    for (defect, count) in DEFECTS.iter().zip(counts).filter(|_| exact) {
        assert_eq!(count, defect.count, "{}: unexpected number of messages", defect.what);
    }

    println!(
        "the dissector agreed on {} of {judged} messages, and its defects affected {spoilt}",
        judged - spoilt
    );
}

#[test]
fn the_dissector_fails_at_the_class_of_every_field_of_1_5() {
    let Some(fails) = fails_at_the_class() else { return };
    assert!(fails || !is_counted_release(), "the dissector supports the class: check the messages unchanged");
}
