//! Samples of the node as a whole, and facts about it that are recorded once.

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::Options;
use crate::clock::ClockReading;
use crate::energy::EnergySampler;
use crate::gpu::{DeviceSampler, GpuSampler};
use crate::host::HostSampler;
use crate::node;
use crate::writer::SampleWriter;

/// How long the end waits for facts that are still being gathered.
const LAST_WORD: Duration = Duration::from_millis(200);

type Members = serde_json::Map<String, serde_json::Value>;

/// Samplers of the machine and its devices.
#[derive(Debug)]
pub(super) struct Node {
    machine: HostSampler,
    energy: EnergySampler,
    devices: Vec<Box<dyn DeviceSampler>>,
    last: ClockReading,
    facts: Option<Receiver<Members>>,
}

impl Node {
    pub(super) fn open(options: &Options, now: ClockReading) -> Node {
        let roots = &options.roots;
        Node {
            machine: HostSampler::new(roots),
            energy: EnergySampler::new(roots),
            devices: GpuSampler::detect(roots),
            last: now,
            facts: Some(gather_facts(options)),
        }
    }

    /// Samples everything; `follows` selects the processes that a device reports.
    pub(super) fn sample(&mut self, now: ClockReading, follows: &dyn Fn(u32) -> bool, writer: &mut SampleWriter) {
        let interval = now.since(&self.last);
        self.machine.sample(interval, writer);
        self.energy.sample(interval, writer);
        for device in &mut self.devices {
            device.sample(interval, follows, writer);
        }
        self.last = now;
    }

    /// Writes the facts once they are there.
    pub(super) fn write_metadata(&mut self, at: &ClockReading, writer: &mut SampleWriter) {
        if let Some(facts) = self.facts.as_ref().and_then(|facts| facts.try_recv().ok()) {
            writer.host_fact("node", at.real_ns, &facts);
            self.facts = None;
        }
    }

    /// Writes them at the end, if they come in time.
    pub(super) fn tell_last_facts(&mut self, now: ClockReading, writer: &mut SampleWriter) {
        if let Some(facts) = self.facts.take().and_then(|facts| facts.recv_timeout(LAST_WORD).ok()) {
            writer.host_fact("node", now.real_ns, &facts);
        }
    }
}

fn gather_facts(options: &Options) -> Receiver<Members> {
    let (send, receive) = channel();
    let (roots, peer) = (options.roots.clone(), options.peer.clone());
    let (node, stage) = (options.node.clone(), options.stage.clone());
    let has_peer = peer.is_some();
    let gather = move || {
        let Ok(serde_json::Value::Object(mut facts)) = serde_json::to_value(node::facts(&roots, peer.as_deref()))
        else {
            return;
        };
        facts.insert("node".into(), node.into());
        if let Some(stage) = stage {
            facts.insert("stage".into(), stage.into());
        }
        // A collector that has ended wants no facts.
        let _ = send.send(facts);
    };
    if has_peer {
        // The round trip takes its time, and a name server may take longer.
        std::thread::spawn(gather);
    } else {
        // No thread without need: what one has read when it ends, `weft run` would take for its program's.
        gather();
    }
    receive
}
