//! Three hives, each a process of its own, keep the values of keys. One is killed. `cargo run --example three_hives`
#![allow(missing_docs)]

use beehive::RequestError;
use beehive::cluster::Cluster;
use beehive::prelude::*;
use std::io::{BufRead, BufReader, Lines, Write};
use std::net::TcpListener;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

#[derive(Message)]
#[message(reply = String)]
pub(crate) struct Get(pub(crate) String);

#[derive(Message)]
#[message(reply = String)]
pub(crate) struct Put(pub(crate) String, pub(crate) String);

#[derive(App)]
pub(crate) struct Values {
    values: Dict<String, String>,
}

#[handlers]
impl Values {
    #[rcv(sharded)]
    fn get(&mut self, Get(key): &Get) -> String {
        self.values.get(key).cloned().unwrap_or_default()
    }

    #[rcv(sharded)]
    fn put(&mut self, Put(key, value): &Put) -> String {
        self.values.put(key.clone(), value.clone());
        value.clone()
    }
}

/// Runs hive number `me`. It answers the questions on its standard input, one a line, and ends with them.
async fn hive(me: u32, addresses: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::new((1..).zip(addresses));
    let member = cluster.start(me, Hive::builder().app::<Values>()).await?;
    println!("runs");
    for line in std::io::stdin().lines() {
        println!("{}", answer(member.hive(), &line?).await?)
    }
    member.stop(Duration::from_secs(1)).await;
    Ok(())
}

async fn answer(hive: &Hive, question: &str) -> Result<String, RequestError> {
    loop {
        let answer = match question.split_once(' ') {
            Some((key, value)) => hive.request(Put(key.into(), value.into())).await,
            None => hive.request(Get(question.into())).await,
        };
        match answer {
            // the outcome is unknown, and both questions may be asked again
            Err(RequestError::Timeout { .. } | RequestError::Unavailable) => {}
            answer => return answer,
        }
    }
}

/// A process that runs a hive, its questions, and its answers.
struct Process(Child, ChildStdin, Lines<BufReader<ChildStdout>>);

impl Process {
    fn start(me: usize, addresses: &[String]) -> std::io::Result<Process> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(me.to_string()).args(addresses).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (questions, answers) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Ok(Process(child, questions, BufReader::new(answers).lines()))
    }

    fn ask(&mut self, question: &str) -> std::io::Result<String> {
        writeln!(self.1, "{question}")?;
        self.2.next().unwrap_or_else(|| Err(std::io::ErrorKind::UnexpectedEof.into()))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((me, addresses)) = arguments.split_first() {
        return hive(me.parse()?, addresses).await;
    }

    let sockets = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    let addresses = sockets.map(|socket| socket.local_addr().expect("an address").to_string());
    let mut hives = [1, 2, 3].map(|me| Process::start(me, &addresses).expect("starts"));
    for Process(_, _, answers) in &mut hives {
        answers.next().ok_or("a hive has not started")??;
    }
    println!("three hives run");

    let keys: Vec<String> = (1..=12).map(|key| format!("key-{key}")).collect();
    for key in &keys {
        hives[0].ask(&format!("{key} red"))?;
    }
    println!("12 values are written through hive 1");

    hives[0].0.kill()?;
    let (killed, mut times) = (Instant::now(), Vec::new());
    println!("hive 1 is killed with SIGKILL");
    for key in &keys {
        assert_eq!(hives[1].ask(key)?, "red");
        times.push(killed.elapsed().as_millis());
    }
    println!("hive 2 answers: the first value {} ms after that, all 12 after {} ms", times[0], times[11]);

    for key in &keys {
        hives[2].ask(&format!("{key} blue"))?;
        assert_eq!(hives[1].ask(key)?, "blue");
    }
    println!("12 values are changed through hive 3, and hive 2 has them");

    for Process(mut child, questions, _) in hives {
        drop(questions);
        child.wait()?;
    }
    Ok(())
}
