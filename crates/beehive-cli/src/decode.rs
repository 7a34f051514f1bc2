//! `beehive decode`: hexadecimal digits on standard input, a message a line, to readable text or JSON; and JSON back.

mod digits;
mod node;
mod tree;

use std::io::{self, BufRead, Read, Write};
use std::process::ExitCode;

use beehive_of::Frame;
use beehive_of::limits::MESSAGE_LENGTH_MAX;
use beehive_of::message::Message;
use bytes::BytesMut;
use clap::Args;

use node::Node;
use tree::Tree;

/// Longest line that is read, in bytes: the longest message as digits, each byte of it with a prefix and a separator.
const LINE_LENGTH_MAX: usize = 5 * MESSAGE_LENGTH_MAX;

/// Longest line of JSON that is read, in bytes: eight bytes of a message, its smallest element, tell some 300 of them.
const JSON_LENGTH_MAX: usize = 64 * MESSAGE_LENGTH_MAX;

/// Decodes OpenFlow messages.
///
/// Reads hexadecimal digits from standard input, one message a line, and prints each as a line of text. White space
/// between digits and a leading 0x are ignored, and so are empty lines and lines that start with #. OpenFlow 1.0 to 1.5
/// are decoded in full; hello, error and echo in any version.
///
/// With --encode it goes the other way: a JSON object a line, as --json prints them, becomes hexadecimal digits. What an
/// object leaves out has its usual value, and lengths are worked out.
///
/// The exit status is 0 when every message was valid, and 1 otherwise.
///
/// Examples:
///
///   echo 0100000800000001 | beehive decode
///
///   echo 0x0600 0008 0000 0001 | beehive decode --json
///
///   echo '{"version":"1.3","type":"flow_mod","match":{"in_port":1}}' | beehive decode --encode
#[derive(Args, Clone, Copy, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct DecodeArgs {
    /// Print a JSON object a line: {"version":..,"type":..,..}, or {"error":..,"line":..} for what is not valid
    #[arg(long)]
    json: bool,

    /// Read JSON objects, as --json prints them, and print hexadecimal digits
    #[arg(long, conflicts_with = "json")]
    encode: bool,
}

impl DecodeArgs {
    /// Longest line that is read, in bytes.
    fn line_length_max(self) -> usize {
        if self.encode { JSON_LENGTH_MAX } else { LINE_LENGTH_MAX }
    }
}

/// Decodes standard input; the status says whether every message was valid.
pub(crate) fn run(args: DecodeArgs) -> ExitCode {
    match decode(io::stdin().lock(), io::BufWriter::new(io::stdout().lock()), args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // Whoever reads us has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("beehive decode: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Decodes every line of `input`; returns whether all were valid.
fn decode(mut input: impl BufRead, mut output: impl Write, args: DecodeArgs) -> io::Result<bool> {
    let line_length_max = args.line_length_max();
    let mut line = Vec::new();
    let mut valid = true;
    for number in 1u64.. {
        line.clear();
        // One byte more than allowed, to see that the line is too long.
        if input.by_ref().take(line_length_max as u64 + 1).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let described = if line.len() > line_length_max && line.last() != Some(&b'\n') {
            skip_line(&mut input)?;
            Err(format!("longer than {line_length_max} characters, which no message is"))
        } else if line.trim_ascii().is_empty() || line.trim_ascii_start().starts_with(b"#") {
            continue;
        } else if args.encode {
            encode_line(&line)
        } else {
            decode_line(&line)
        };
        valid &= described.is_ok();
        let node = described.unwrap_or_else(|error| {
            Node::Record(vec![
                ("error".to_owned(), Node::Text(error)),
                ("line".to_owned(), Node::Number(number)),
            ])
        });
        if args.json {
            serde_json::to_writer(&mut output, &node)?;
            writeln!(output)?;
        } else {
            writeln!(output, "{node}")?;
        }
        // A person may be typing: what is known is shown at once.
        output.flush()?;
    }
    Ok(valid)
}

/// Reads up to and with the end of the line, and keeps none of it.
fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let read = input.fill_buf()?;
        if read.is_empty() {
            return Ok(());
        }
        let (length, ends) = match read.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (read.len(), false),
        };
        input.consume(length);
        if ends {
            return Ok(());
        }
    }
}

/// What the message of a line says, or why it is none.
fn decode_line(line: &[u8]) -> Result<Node, String> {
    let bytes = digits::parse(line).map_err(|error| error.to_string())?;
    let frame = Frame::whole(&bytes).map_err(|error| error.to_string())?;
    let message = Message::parse(frame).map_err(|error| error.to_string())?;
    let mut tree = Tree::default();
    message.show(frame.header(), &mut tree);
    tree.finish().map_err(|error| error.to_string())
}

/// The message that a line of JSON tells, as digits; or why there is none.
fn encode_line(line: &[u8]) -> Result<Node, String> {
    let node: Node = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let mut out = BytesMut::new();
    Message::compose(&node, &mut out).map_err(|error| error.to_string())?;
    Ok(Node::bytes(&out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(input: &str, json: bool) -> (bool, Vec<String>) {
        ran(input, DecodeArgs { json, encode: false })
    }

    fn ran(input: &str, args: DecodeArgs) -> (bool, Vec<String>) {
        let mut output = Vec::new();
        let valid = decode(input.as_bytes(), &mut output, args).unwrap();
        (valid, String::from_utf8(output).unwrap().lines().map(str::to_owned).collect())
    }

    /// A 1.0 flow-mod that sends from host 1 to host 2, from port 3 to port 4.
    const FLOW_MOD: &str = "010e005000000007003820f200030200000000010200000000020000000000000000000000000000\
        000000000000000000000000000012340000003c00000064ffffffffffff0001000000080004ffff";

    #[test]
    fn text_says_what_the_message_says() {
        let (valid, lines) = decoded(&format!("# a hello\n\n0x0600 0008\t00000001 \n{FLOW_MOD}\r\n"), false);
        assert!(valid);
        assert_eq!(
            lines,
            [
                "version=1.5 type=hello xid=1 elements=[]",
                "version=1.0 type=flow_mod xid=7 \
                 match=(in_port=3 dl_src=02:00:00:00:00:01 dl_dst=02:00:00:00:00:02) cookie=0x1234 command=add \
                 idle_timeout=60 hard_timeout=0 priority=100 buffer_id=none out_port=any flags=[send_flow_removed] \
                 actions=[(type=output port=4 max_len=no_buffer)]",
            ]
        );
    }

    #[test]
    fn json_is_an_object_a_line() {
        let (valid, lines) = decoded(&format!("{FLOW_MOD}\n04150008000000ff\n"), true);
        assert!(valid);
        let flow: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
        assert!(lines[0].starts_with(r#"{"version":"1.0","type":"flow_mod","xid":7,"#), "{}", lines[0]);
        assert_eq!(flow["match"]["in_port"], 3);
        assert_eq!(flow["actions"][0]["port"], 4);
        assert_eq!(flow["out_port"], "any");
        assert_eq!(flow["buffer_id"], "none");
        assert_eq!(lines[1], r#"{"version":"1.3","type":"barrier_reply","xid":255}"#);
    }

    #[test]
    fn what_is_wrong_is_said_and_the_rest_goes_on() {
        let input = "010000080000000\n01000008000000zz\n0100000800000001ff\n0100000900000001\n0900050800000001\n\
             07050008 00000001\n0400000c0000000100010000\n0x\n0100000800000002\n";
        let (valid, lines) = decoded(input, true);
        assert!(!valid);
        let errors: Vec<String> = lines
            .iter()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .map(|value| value["error"].as_str().unwrap_or("valid").to_owned())
            .collect();
        assert_eq!(
            errors,
            [
                "15 hexadecimal digits are no whole number of bytes",
                "'z' at column 15 is no hexadecimal digit",
                "message length (more bytes follow) is wrong for this structure at byte 8",
                "message is cut off at byte 8",
                "message is cut off at byte 8",
                "version is not a version spoken here at byte 0",
                "hello element length is smaller than what it measures at byte 10",
                "message is cut off at byte 0",
                "valid",
            ]
        );
        let (_, lines) = decoded("zz", false);
        assert_eq!(lines, ["error='z' at column 1 is no hexadecimal digit line=1"]);
    }

    #[test]
    fn a_line_without_end_takes_no_memory_and_the_next_one_is_read() {
        let mut input = "00".repeat(LINE_LENGTH_MAX);
        input.push_str("\n0100000800000001");
        let (valid, lines) = decoded(&input, false);
        assert!(!valid);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].contains("longer than 327675 characters"), "{}", lines[0]);
        assert!(lines[1].contains("type=hello"));
        let longest = format!("0402ffff00000001{}", "00".repeat(65_535 - 8));
        assert!(decoded(&longest, true).0);
    }

    #[test]
    fn what_a_real_switch_sends_is_told_in_full() {
        let corpus = include_str!("../../beehive-of/tests/wire/open_vswitch.hex");
        let digits: Vec<&str> = corpus
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.rsplit(' ').next())
            .collect();
        let (valid, lines) = decoded(&digits.join("\n"), false);
        assert!(valid);
        assert_eq!(lines.len(), digits.len());
        for part in [
            "type=features_reply xid=33 datapath_id=0x1 n_buffers=0 n_tables=254",
            "(port_no=local hw_addr=aa:bb:cc:00:00:01 name=br1 config=[",
            "multipart=description flags=[] mfr_desc=Nicira, Inc.",
            "type=multipart_reply xid=36 multipart=port_description flags=[] ports=[",
            "match=(in_port=3 eth_type=0x0800 vlan_vid=0x100a ipv4_src=10.0.0.0/255.0.0.0 ip_proto=6 tcp_dst=80)",
            "actions=[(type=pop_vlan), (type=set_field field=(eth_src=02:00:00:00:00:09)), \
             (type=output port=local max_len=0)]",
            "(type=goto_table table_id=1)",
            "reason=modify port=(port_no=3",
            "role=master generation_id=0x7",
            "error_type=role_request_failed code=stale",
        ] {
            assert!(
                lines.iter().any(|line| line.contains(part)),
                "{part} is in none of\n{}",
                lines.join("\n")
            );
        }
    }

    #[test]
    fn what_was_decoded_is_encoded_again_byte_by_byte() {
        let corpus = include_str!("../../beehive-of/tests/wire/open_vswitch.hex");
        let digits: Vec<&str> = corpus
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.rsplit(' ').next())
            .collect();
        let (valid, json) = decoded(&digits.join("\n"), true);
        assert!(valid);
        let (valid, again) = ran(&json.join("\n"), DecodeArgs { json: false, encode: true });
        assert!(valid, "{}", again.join("\n"));
        for ((before, told), after) in digits.iter().zip(&json).zip(&again) {
            assert_eq!(before, after, "{told}");
        }
    }

    #[test]
    fn json_that_tells_no_message_is_refused_and_the_rest_goes_on() {
        let input = r#"{"version":"1.7","type":"features_request"}
            {"version":"1.3","type":"nothing"}
            {"version":"1.0","type":"group_mod"}
            {"version":"1.3","type":"flow_mod","priority":65536}
            {"version":"1.3","type":"flow_mod","match":{"in_prot":1}}
            {"version":"1.3","type"
            [1,2]
            {"version":"1.3","type":"flow_mod","match":{"in_port":1}}"#;
        let (valid, lines) = ran(input, DecodeArgs { json: false, encode: true });
        assert!(!valid);
        for (line, words) in
            lines.iter().zip(["version", "type", "type", "priority", "match field", "EOF", "version"])
        {
            assert!(line.starts_with("error=") && line.contains(words), "{line} lacks {words}");
        }
        assert!(lines[7].starts_with("040e0040"), "{}", lines[7]);
    }

    #[test]
    fn nothing_is_valid() {
        assert_eq!(decoded("", false), (true, vec![]));
    }
}
