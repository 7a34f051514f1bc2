//! Runs the IO bee of one switch, which passes messages from the driver to the hive and from the hive to the driver.

use crate::driver::ingress::{Admission, Ingress};
use crate::driver::standing::{Standing, Suspects};
use crate::driver::{Capacity, Close, Driver};
use crate::object::{
    BecomeMaster, InstallFlow, PacketIn, ReadFlows, SayConnected, SendPacket, StandBy, WithdrawFlows,
};
use beehive::{Io, Mail};
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Drives a switch until its connection ends or the hive stops. Returns the reason.
///
/// Each round processes the switch's input, hands the resulting messages to the hive, gives the driver all answers and
/// commands that have arrived by then, and writes once. The hive handles the messages as soon as this task waits. Their
/// answers wake the task for the next round.
pub async fn drive<D: Driver>(io: Io, driver: D, admission: Admission) -> Close {
    drive_sharing(io, driver, admission, Arc::default()).await
}

/// Like [`drive`], for a switch that shares the hive's capacity with others.
pub async fn drive_sharing<D: Driver>(
    io: Io,
    driver: D,
    admission: Admission,
    capacity: Arc<Capacity>,
) -> Close {
    run(io, driver, admission, capacity, None).await
}

/// Like [`drive_sharing`], for a switch that may be connected to other hives of a cluster, too. The hives must run
/// [`Mastership`](crate::apps::Mastership), which decides whether this driver controls the switch.
pub async fn drive_among<D: Driver>(
    io: Io,
    driver: D,
    admission: Admission,
    capacity: Arc<Capacity>,
    suspects: Suspects,
) -> Close {
    run(io, driver, admission, capacity, Some(Standing::new(suspects))).await
}

async fn run<D: Driver>(
    io: Io,
    mut driver: D,
    admission: Admission,
    capacity: Arc<Capacity>,
    standing: Option<Standing>,
) -> Close {
    let stopping = io.hive().clone();
    let stopping = stopping.stopping();
    tokio::pin!(stopping);
    let mut io = io;

    // runs the handlers of this switch's messages on this worker thread, so that no other thread has to be woken
    io.run_here();
    let mut ingress = Ingress::new(io, driver.counters().clone(), admission, capacity, D::HOLDS_INPUT);
    ingress.stand(standing);
    let mut pending = PendingCommands::default();
    let close = loop {
        // while the driver's output is full, commands stay in this IO bee's bounded inbox
        let accepts_commands = !driver.is_full();
        driver.set_room(ingress.room());
        if !accepts_commands {
            ingress.pass_turn()
        }
        tokio::select! {
            biased;
            () = &mut stopping => break Close::Stopping,
            () = driver.wait() => {}
            one = ingress.next_mail(), if accepts_commands => pending.queue.extend(one),
        }

        if let Err(close) = round(&mut ingress, &mut driver, &mut pending) {
            break close;
        }
        if ingress.is_flooded() {
            break Close::Flood;
        }
    };

    ingress.node_left();
    // tries to send the pending output, such as an error message
    let now = ingress.io().now();
    let _ = driver.flush(now);
    driver.end(&close).await;

    close
}

/// Mail received but not yet given to the driver.
#[derive(Default)]
struct PendingCommands {
    queue: VecDeque<Mail>,
    /// Number of commands in the first mail already taken by the driver.
    done: usize,
}

#[inline]
fn round<D: Driver>(
    ingress: &mut Ingress,
    driver: &mut D,
    pending: &mut PendingCommands,
) -> Result<(), Close> {
    let now = ingress.io().now();
    ingress.begin(now);
    let taken = driver.take(now, ingress);
    ingress.look_at_standing(driver);
    ingress.finish();

    if !driver.is_full() {
        ingress.io().receive_into(&mut pending.queue);
        ingress.check_lost_commands()
    }

    loop {
        let delivered = pending.deliver(driver, ingress);
        let flushed = driver.flush(now);
        // reports an error in the input rather than the resulting write error, because the former better explains why
        // the connection ends
        taken.as_ref().map_err(Close::clone)?;
        flushed?;
        if delivered.is_continue() || driver.is_full() {
            return Ok(());
        }
    }
}

impl PendingCommands {
    /// Gives answers and commands to the driver, in order, until it is full.
    #[inline]
    fn deliver<D: Driver>(&mut self, driver: &mut D, ingress: &mut Ingress) -> ControlFlow<()> {
        while let Some(mail) = self.queue.pop_front() {
            let mail = match mail.into_answers::<PacketIn>() {
                Ok(answers) => {
                    // If a handler returned an error, its statistics count the error, and the packet stays unanswered.
                    // A driver whose output is full drops packet-outs.
                    if ingress.is_heard() {
                        answers.into_iter().flatten().for_each(|packet| driver.send(&packet))
                    }
                    continue;
                }
                Err(mail) => mail,
            };

            if apply(driver, ingress, &mail, &mut self.done).is_break() {
                self.queue.push_front(mail);
                return ControlFlow::Break(());
            }

            self.done = 0
        }

        ControlFlow::Continue(())
    }
}

/// Gives the commands of one mail to the driver until it is full, skipping the first `done`.
#[inline]
fn apply<D: Driver>(driver: &mut D, ingress: &mut Ingress, mail: &Mail, done: &mut usize) -> ControlFlow<()> {
    // commands to a driver that stands by are late. A switch reports its flows whatever the role, and operators may ask any hive
    let is_heard = ingress.is_heard();
    if let Some(flows) = mail.messages::<InstallFlow>().filter(|_| is_heard) {
        apply_each(driver, flows, done, |driver, InstallFlow(flow)| driver.install(flow))
    } else if let Some(packets) = mail.messages::<SendPacket>().filter(|_| is_heard) {
        packets.iter().for_each(|SendPacket(packet)| driver.send(packet));
        ControlFlow::Continue(())
    } else if let Some(withdrawals) = mail.messages::<WithdrawFlows>().filter(|_| is_heard) {
        apply_each(driver, withdrawals, done, |driver, flows| driver.withdraw(flows))
    } else if let Some(readings) = mail.messages::<ReadFlows>() {
        apply_each(driver, readings, done, |driver, wanted| driver.read_flows(wanted))
    } else {
        apply_rare(driver, ingress, mail);
        ControlFlow::Continue(())
    }
}

/// Applies mail about the driver's role.
#[cold]
fn apply_rare<D: Driver>(driver: &mut D, ingress: &mut Ingress, mail: &Mail) {
    if let Some([.., BecomeMaster { generation }]) = mail.messages() {
        ingress.become_master(driver, *generation)
    } else if let Some([.., StandBy { master, generation }]) = mail.messages() {
        ingress.stand_by(driver, *master, *generation)
    } else if mail.messages::<SayConnected>().is_some() {
        ingress.say_connected()
    } else if ingress.is_heard() {
        let name = mail.name();
        tracing::warn!(message = name, "driver ignored a message of a type that it does not handle");
    }
}

#[inline]
fn apply_each<D: Driver, M>(
    driver: &mut D,
    commands: &[M],
    done: &mut usize,
    command: impl Fn(&mut D, &M),
) -> ControlFlow<()> {
    for one in commands.iter().skip(*done) {
        if driver.is_full() {
            return ControlFlow::Break(());
        }
        command(driver, one);
        *done += 1
    }
    ControlFlow::Continue(())
}
