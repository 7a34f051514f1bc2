//! `beehive decode`: decodes OpenFlow messages (from hexadecimal digits or a packet capture) to text or JSON, and
//! encodes JSON as hexadecimal digits.

mod capture;
mod hex;
mod ofctl;
mod streams;

use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use beehive_of::limits::MESSAGE_LENGTH_MAX;
use beehive_of::message::Message;
use beehive_of::tree::Node;
use beehive_of::{Frame, Frames};
use bytes::BytesMut;
use clap::Args;

use capture::{CaptureError, Packets};
use streams::{Event, Streams, segment};

/// Maximum length of a line of digits, in bytes: the longest message, with a prefix and a separator for each byte.
const LINE_LENGTH_MAX: usize = 5 * MESSAGE_LENGTH_MAX;

/// Maximum length of a line of JSON, in bytes. The smallest element of a message has 8 bytes and takes about 300 bytes
/// in JSON.
const JSON_LENGTH_MAX: usize = 64 * MESSAGE_LENGTH_MAX;

/// Decodes OpenFlow messages
///
/// Reads hexadecimal digits from standard input, one or more messages per line, and prints each message as a line
/// of text. White space between digits, a leading 0x, empty lines and lines that start with # are ignored. All
/// messages of OpenFlow 1.0 to 1.5 are decoded, with the extensions of Open vSwitch and the ONF; hello, error and
/// echo messages are decoded in any version.
///
/// With --encode it reads one JSON object per line, as --json prints them, and prints hexadecimal digits. Missing
/// fields get their default values, lengths are computed, and unknown fields are refused.
///
/// With --pcap it decodes the TCP connections to or from --port in a packet capture (pcap or pcapng).
///
/// The exit status is 0 if every message was valid, and 1 otherwise.
///
/// Examples:
///
///   echo 0100000800000001 | beehive decode
///
///   echo 0x0600 0008 0000 0001 | beehive decode --json
///
///   echo '{"version":"1.3","type":"flow_mod","match":{"in_port":1}}' | beehive decode --encode
///
///   tcpdump -i lo -w openflow.pcap port 6653; beehive decode --pcap openflow.pcap
#[derive(Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct DecodeArgs {
    /// Print one JSON object per line: {"version":..,"type":..,..}, or {"error":..,"line":..} for invalid input
    #[arg(long)]
    json: bool,

    /// Write flows, matches and actions in the syntax of ovs-ofctl (flow_mod, flow_removed, packet_in, packet_out, flow
    /// statistics)
    #[arg(long, conflicts_with = "encode")]
    ofctl: bool,

    /// Also refuse well-formed messages that a switch would refuse: unknown commands, match fields without their
    /// prerequisites, duplicate instructions
    #[arg(long, conflicts_with = "encode")]
    strict: bool,

    /// Read JSON objects, as --json prints them, and print hexadecimal digits
    #[arg(long, conflicts_with = "json")]
    encode: bool,

    /// Read a packet capture; - stands for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "encode")]
    pcap: Option<PathBuf>,

    /// TCP ports on which the capture has OpenFlow connections
    #[arg(long = "port", value_name = "PORT", value_delimiter = ',', default_values_t = [6653, 6633], requires = "pcap")]
    ports: Vec<u16>,
}

impl DecodeArgs {
    /// Returns the maximum length of an input line, in bytes.
    fn line_length_max(&self) -> usize {
        if self.encode { JSON_LENGTH_MAX } else { LINE_LENGTH_MAX }
    }
}

/// Runs the command. The exit status says whether every message was valid.
pub(crate) fn run(args: DecodeArgs) -> ExitCode {
    let output = io::BufWriter::new(io::stdout().lock());
    let decoded = match &args.pcap {
        Some(path) if path.as_os_str() == "-" => decode_capture(io::stdin().lock(), output, &args),
        Some(path) => File::open(path)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
            .and_then(|file| decode_capture(io::BufReader::new(file), output, &args)),
        None => decode(io::stdin().lock(), output, &args),
    };
    match decoded {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        // the reader has closed the pipe (`| head`)
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("beehive decode: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Decodes or encodes every line of `input`. Returns whether all lines were valid.
fn decode(mut input: impl BufRead, mut output: impl Write, args: &DecodeArgs) -> io::Result<bool> {
    let line_length_max = args.line_length_max();
    let mut line = Vec::new();
    let mut valid = true;
    for number in 1u64.. {
        line.clear();
        // reads one byte more than allowed, so that lines that are too long are detected
        if input.by_ref().take(line_length_max as u64 + 1).read_until(b'\n', &mut line)? == 0 {
            break;
        }

        if line.len() > line_length_max && line.last() != Some(&b'\n') {
            skip_line(&mut input)?;
            let error = format!("line too long (at most {line_length_max} characters)");
            write_error(error, number, &mut output, args)?;
            valid = false;
        } else if line.trim_ascii().is_empty() || line.trim_ascii_start().starts_with(b"#") {
            continue;
        } else if args.encode {
            match encode_line(&line) {
                Ok(node) => write_node(&node, &mut output, args)?,
                Err(error) => {
                    write_error(error, number, &mut output, args)?;
                    valid = false;
                }
            }
        } else {
            valid &= decode_line(&line, number, &mut output, args)?;
        }

        // flush after each line, because the input may be a terminal
        output.flush()?;
    }

    Ok(valid)
}

/// Discards the rest of a line, including its end.
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

fn write_node(node: &Node, output: &mut impl Write, args: &DecodeArgs) -> io::Result<()> {
    if args.json {
        serde_json::to_writer(&mut *output, node)?;
        writeln!(output)
    } else {
        writeln!(output, "{node}")
    }
}

fn write_error(error: String, line: u64, output: &mut impl Write, args: &DecodeArgs) -> io::Result<()> {
    let record = vec![("error".to_owned(), Node::Text(error)), ("line".to_owned(), Node::Number(line))];
    write_node(&Node::Record(record), output, args)
}

/// Decodes the messages of one line. Returns whether all of them were valid.
fn decode_line(line: &[u8], number: u64, output: &mut impl Write, args: &DecodeArgs) -> io::Result<bool> {
    let bytes = match hex::parse(line) {
        Ok(bytes) => bytes,
        Err(error) => {
            write_error(error.to_string(), number, output, args)?;
            return Ok(false);
        }
    };

    let mut valid = true;
    let mut frames = Frames::new(&bytes);
    for frame in frames.by_ref().map_while(Result::ok) {
        match message_tree(frame, args) {
            Ok(node) => write_node(&node, output, args)?,
            Err(error) => {
                write_error(error, number, output, args)?;
                valid = false;
            }
        }
    }

    // report why the remaining bytes are not a message
    let rest = bytes.get(frames.consumed()..).unwrap_or(&[]);
    if (!rest.is_empty() || bytes.is_empty())
        && let Err(error) = Frame::whole(rest)
    {
        write_error(error.to_string(), number, output, args)?;
        valid = false;
    }

    Ok(valid)
}

/// Decodes one message, or returns the reason why that is impossible.
fn message_tree(frame: Frame<'_>, args: &DecodeArgs) -> Result<Node, String> {
    let parsed = || {
        let message = Message::parse(frame)?;
        // hello, error and echo are decoded even in unknown versions
        let Some(version) = frame.version() else { return message.tree(frame.header()) };

        if args.strict {
            message.check_meaning(version)?;
        }
        let tree = message.tree(frame.header())?;
        Ok(if args.ofctl { ofctl::abbreviate(&message, version, tree) } else { tree })
    };

    parsed().map_err(|error: beehive_of::Error| error.to_string())
}

/// Decodes the OpenFlow connections of a capture. Returns whether all messages were valid.
fn decode_capture(input: impl Read, mut output: impl Write, args: &DecodeArgs) -> io::Result<bool> {
    let failed = |error: CaptureError| match error {
        CaptureError::Io(error) => error,
        error => io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
    };

    let mut packets = Packets::new(input).map_err(failed)?;
    let mut streams = Streams::default();
    let mut valid = true;
    while let Some((link, packet)) = packets.next().map_err(failed)? {
        let Some(part) = segment(link, packet) else { continue };
        if ![part.from.port(), part.to.port()].iter().any(|port| args.ports.contains(port)) {
            continue;
        }

        streams.take(&part, |event| {
            let (from, to, described) = match event {
                Event::Message(from, to, bytes) => (
                    from,
                    to,
                    Frame::whole(bytes)
                        .map_err(|error| error.to_string())
                        .and_then(|frame| message_tree(frame, args)),
                ),
                Event::Failed(from, to, error) => (from, to, Err(error)),
            };

            let mut record = vec![
                ("from".to_owned(), Node::Text(from.to_string())),
                ("to".to_owned(), Node::Text(to.to_string())),
            ];

            match described {
                Ok(Node::Record(values)) => record.extend(values),
                Ok(other) => record.push(("message".to_owned(), other)),
                Err(error) => {
                    record.push(("error".to_owned(), Node::Text(error)));
                    valid = false;
                }
            }

            write_node(&Node::Record(record), &mut output, args)
        })?;
    }

    output.flush()?;
    Ok(valid)
}

/// Encodes a message, given as a line of JSON, as hexadecimal digits, or returns the reason why that is impossible.
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
        run_on(input, arguments(json, false))
    }

    fn arguments(json: bool, encode: bool) -> DecodeArgs {
        DecodeArgs { json, encode, ofctl: false, strict: false, pcap: None, ports: vec![6653, 6633] }
    }

    fn run_on(input: &str, args: DecodeArgs) -> (bool, Vec<String>) {
        let mut output = Vec::new();
        let valid = decode(input.as_bytes(), &mut output, &args).unwrap();
        (valid, String::from_utf8(output).unwrap().lines().map(str::to_owned).collect())
    }

    /// An OpenFlow 1.0 flow-mod that forwards packets from host 1 at port 3 to host 2 at port 4.
    const FLOW_MOD: &str = "010e005000000007003820f200030200000000010200000000020000000000000000000000000000\
        000000000000000000000000000012340000003c00000064ffffffffffff0001000000080004ffff";

    fn digits_of_open_vswitch() -> Vec<&'static str> {
        let corpus = include_str!("../../../beehive-of/tests/wire/open_vswitch.hex");
        let lines = corpus.lines().filter(|line| !line.starts_with('#'));
        lines.filter_map(|line| line.rsplit(' ').next()).collect()
    }

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

    fn abbreviated(input: &str, json: bool) -> Vec<String> {
        let (valid, lines) = run_on(input, DecodeArgs { ofctl: true, ..arguments(json, false) });
        assert!(valid, "{lines:?}");
        lines
    }

    #[test]
    fn flows_are_written_as_ovs_ofctl_does() {
        assert_eq!(
            abbreviated(FLOW_MOD, false),
            [
                "version=1.0 type=flow_mod xid=7 command=add flow=cookie=0x1234,idle_timeout=60,send_flow_rem,priority=100,\
                in_port=3,eth_dst=02:00:00:00:00:02,eth_src=02:00:00:00:00:01 actions=output:4"
            ]
        );
        let json: serde_json::Value = serde_json::from_str(&abbreviated(FLOW_MOD, true)[0]).unwrap();
        assert_eq!((&json["type"], &json["actions"]), (&"flow_mod".into(), &serde_json::Value::Null));

        let flow = json["flow"].as_str().unwrap();
        assert!(beehive_of::text::Flow::parse(flow, beehive_of::Version::V1_0).is_ok(), "{flow}");
    }

    #[test]
    fn what_a_real_switch_says_of_flows_is_written_as_ovs_ofctl_does() {
        let lines = abbreviated(&digits_of_open_vswitch().join("\n"), false);
        for part in [
            "multipart=flow flags=[] flows=[duration=0.007s,n_packets=0,n_bytes=0,",
            "type=flow_removed xid=0 match=in_port=3,tcp,dl_vlan=10,nw_src=10.0.0.0/8,tcp_dst=80 cookie=0x1234",
            "type=packet_in xid=0 buffer_id=none total_len=60 reason=no_match table_id=0 cookie=0 match=in_port=3 data=",
        ] {
            assert!(
                lines.iter().any(|line| line.contains(part)),
                "{part} is in none of\n{}",
                lines.join("\n")
            );
        }
    }

    #[test]
    fn messages_that_make_no_sense_are_refused_if_asked_to() {
        // the same flow-mod with the unknown command 9
        let unknown = FLOW_MOD.replacen("000012340000003c", "000012340009003c", 1);
        assert_ne!(unknown, FLOW_MOD);
        assert!(decoded(&unknown, false).0);
        let strict = || DecodeArgs { strict: true, ..arguments(false, false) };
        let (valid, lines) = run_on(&unknown, strict());
        assert!(!valid && lines[0].starts_with("error=flow-mod command"), "{lines:?}");
        assert!(run_on(FLOW_MOD, strict()).0);
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
                "odd number of hexadecimal digits (15)",
                "'z' at column 15 is not a hexadecimal digit",
                "valid",
                "message is truncated at byte 1",
                "message is truncated at byte 8",
                "message is truncated at byte 8",
                "version is not supported at byte 0",
                "hello element length is too small for its structure at byte 10",
                "message is truncated at byte 0",
                "valid",
            ]
        );

        let (_, lines) = decoded("zz", false);
        assert_eq!(lines, ["error='z' at column 1 is not a hexadecimal digit line=1"]);
    }

    #[test]
    fn a_line_without_end_takes_no_memory_and_the_next_one_is_read() {
        let mut input = "00".repeat(LINE_LENGTH_MAX);
        input.push_str("\n0100000800000001");
        let (valid, lines) = decoded(&input, false);
        assert!(!valid);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].contains("line too long (at most 327675 characters)"), "{}", lines[0]);
        assert!(lines[1].contains("type=hello"));

        let longest = format!("0402ffff00000001{}", "00".repeat(65_535 - 8));
        assert!(decoded(&longest, true).0);
    }

    #[test]
    fn what_a_real_switch_sends_is_told_in_full() {
        let digits = digits_of_open_vswitch();
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
        let digits = digits_of_open_vswitch();
        let (valid, json) = decoded(&digits.join("\n"), true);
        assert!(valid);
        let (valid, again) = run_on(&json.join("\n"), arguments(false, true));
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
        let (valid, lines) = run_on(input, arguments(false, true));
        assert!(!valid);
        for (line, words) in lines.iter().zip([
            "version",
            "type",
            "type",
            "priority",
            "did you mean `in_port`?",
            "EOF",
            "version",
        ]) {
            assert!(line.starts_with("error=") && line.contains(words), "{line} lacks {words}");
        }

        assert!(lines[7].starts_with("040e0040"), "{}", lines[7]);
    }

    #[test]
    fn a_line_may_have_several_messages() {
        let (valid, lines) = decoded("0400000800000001 0405000800000002 04060008", false);
        assert!(!valid);
        assert_eq!(lines.len(), 3);
        assert!(lines[0].contains("type=hello xid=1") && lines[1].contains("type=features_request xid=2"));
        assert_eq!(lines[2], "error=message is truncated at byte 4 line=1");
        let (valid, lines) = decoded("04000008000000010405000800000002", true);
        assert!(valid && lines.len() == 2, "{lines:?}");
    }

    #[test]
    fn fields_that_a_message_does_not_have_are_refused() {
        for (line, field, nearest) in [
            (r#"{"version":"1.3","type":"flow_mod","prioirty":5}"#, "prioirty", "priority"),
            (r#"{"version":"1.0","type":"flow_mod","cookie_mask":5}"#, "cookie_mask", "cookie"),
            (
                r#"{"version":"1.3","type":"flow_mod","instructions":[{"type":"goto_table","table_id":1},{"type":"goto_table","table":2}]}"#,
                "instructions[1].table",
                "table_id",
            ),
        ] {
            let (valid, lines) = run_on(line, arguments(false, true));
            assert!(!valid);
            let words = format!("unknown key `{field}` (did you mean `{nearest}`?)");
            assert_eq!(lines, [format!("error={words} line=1")]);
        }
    }

    /// Builds a pcap file of VLAN-tagged TCP packets from (source port, destination port, sequence number, payload).
    fn captured(parts: &[(u16, u16, u32, &[u8])]) -> Vec<u8> {
        let mut capture = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
        capture.extend([0; 8]);
        capture.extend([0, 0, 4, 0, 1, 0, 0, 0]);
        for (from, to, sequence, data) in parts {
            let mut packet = vec![0; 12];
            packet.extend([0x81, 0, 0, 5, 8, 0]);
            packet.extend([0x45, 0]);
            packet.extend((40 + data.len() as u16).to_be_bytes());
            packet.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            packet.extend([from.to_be_bytes(), to.to_be_bytes()].concat());
            packet.extend(sequence.to_be_bytes());
            packet.extend([0, 0, 0, 0, 0x50, 0x18, 0, 0, 0, 0, 0, 0]);
            packet.extend(*data);
            capture.extend([0; 8]);
            capture.extend((packet.len() as u32).to_le_bytes());
            capture.extend((packet.len() as u32).to_le_bytes());

            capture.extend(packet);
        }

        capture
    }

    #[test]
    fn the_messages_of_a_capture_are_told_with_their_ends() {
        let hello = [4, 0, 0, 8, 0, 0, 0, 7];
        let request = [4, 5, 0, 8, 0, 0, 0, 9];
        let capture = captured(&[
            (40_000, 6653, 100, &hello[..5]),
            (6653, 40_000, 900, &request),
            (80, 50_000, 1, b"not OpenFlow at all"),
            (40_000, 6653, 105, &hello[5..]),
            (40_000, 6653, 105, &hello[5..]),
            (6633, 40_001, 1, &[9, 9, 0, 8, 0, 0, 0, 1]),
        ]);
        let mut output = Vec::new();
        let valid = decode_capture(&capture[..], &mut output, &arguments(true, false)).unwrap();

        let lines: Vec<serde_json::Value> = String::from_utf8(output)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(!valid);
        assert_eq!(lines.len(), 3);
        assert_eq!(
            (&lines[0]["from"], &lines[0]["type"]),
            (&"10.0.0.1:6653".into(), &"features_request".into())
        );
        assert_eq!((&lines[1]["to"], &lines[1]["type"]), (&"10.0.0.2:6653".into(), &"hello".into()));
        assert_eq!(lines[2]["error"], "version is not supported at byte 0");

        assert!(decode_capture(&b"nothing"[..], Vec::new(), &arguments(true, false)).is_err());
    }

    #[test]
    fn nothing_is_valid() {
        assert_eq!(decoded("", false), (true, vec![]));
    }
}
