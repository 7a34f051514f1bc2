//! The IO bee of one switch: from the driver into the hive, and from the hive to the driver.

use crate::driver::inlet::{Admission, Inlet};
use crate::driver::{Close, Driver};
use crate::object::{InstallFlow, PacketIn, ReadFlows, SendPacket, WithdrawFlows};
use beehive::{Io, Mail};
use std::collections::VecDeque;

/// Drives a switch until its connection ends or the hive stops. Returns why it ended.
///
/// One round: take what the switch said, hand it over, give the driver all answers and commands that have come by
/// then, write once. What is handed over runs as soon as this task waits; its answers wake the next round.
pub async fn drive<D: Driver>(io: Io, mut driver: D, admission: Admission) -> Close {
    let stopping = io.hive().clone();
    let stopping = stopping.stopping();
    tokio::pin!(stopping);
    let mut io = io;
    // what a switch brings in belongs to one place: it is done on this worker, without waking another thread
    io.run_here();
    let mut inlet = Inlet::new(io, driver.counters().clone(), admission);
    let mut mail = VecDeque::new();
    let close = loop {
        tokio::select! {
            biased;
            () = &mut stopping => break Close::Stopping,
            () = driver.wait() => {}
            one = inlet.stirred() => mail.extend(one),
        }
        if let Err(close) = round(&mut inlet, &mut driver, &mut mail) {
            break close;
        }
        if inlet.is_flooded() {
            break Close::Flood;
        }
    };
    inlet.left();
    // what has been put together may still go out: an error message, say
    let now = inlet.io().now();
    let _ = driver.flush(now);
    driver.end(&close).await;
    close
}

#[inline]
fn round<D: Driver>(inlet: &mut Inlet, driver: &mut D, mail: &mut VecDeque<Mail>) -> Result<(), Close> {
    let now = inlet.io().now();
    inlet.begin(now);
    let taken = driver.take(now, inlet);
    inlet.finish();
    inlet.io().receive_into(mail);
    for one in mail.drain(..) {
        obey(driver, one)
    }
    driver.flush(now)?;
    taken
}

/// Gives answers and commands to the driver, in order.
#[inline]
fn obey<D: Driver>(driver: &mut D, mail: Mail) {
    let mail = match mail.into_answers::<PacketIn>() {
        Ok(answers) => {
            // an error is counted where it happened, and leaves the packet to its fate
            answers.into_iter().flatten().for_each(|packet| driver.send(&packet));
            return;
        }
        Err(mail) => mail,
    };
    if let Some(flows) = mail.messages::<InstallFlow>() {
        flows.iter().for_each(|InstallFlow(flow)| driver.install(flow))
    } else if let Some(packets) = mail.messages::<SendPacket>() {
        packets.iter().for_each(|SendPacket(packet)| driver.send(packet))
    } else if let Some(withdrawals) = mail.messages::<WithdrawFlows>() {
        withdrawals.iter().for_each(|flows| driver.withdraw(flows))
    } else if let Some(readings) = mail.messages::<ReadFlows>() {
        readings.iter().for_each(|wanted| driver.read_flows(wanted))
    } else if let Some(name) = mail.name() {
        tracing::warn!(message = name, "a driver was sent a message that it does not take");
    }
}
