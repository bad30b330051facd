//! Samples of the node as a whole, and its metadata, which is recorded once.

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::Options;
use crate::clock::ClockReading;
use crate::energy::EnergySampler;
use crate::gpu::{DeviceSampler, GpuSampler};
use crate::host::HostSampler;
use crate::node;
use crate::writer::SampleWriter;

/// How long the end waits for metadata that is still being gathered.
const METADATA_WAIT: Duration = Duration::from_millis(200);

type Fields = serde_json::Map<String, serde_json::Value>;

/// Samplers of the machine and its devices.
#[derive(Debug)]
pub(super) struct Node {
    machine: HostSampler,
    energy: EnergySampler,
    devices: Vec<Box<dyn DeviceSampler>>,
    last: ClockReading,
    metadata: Option<Receiver<Fields>>,
}

impl Node {
    pub(super) fn open(options: &Options, now: ClockReading) -> Node {
        let roots = &options.roots;
        Node {
            machine: HostSampler::new(roots),
            energy: EnergySampler::new(roots),
            devices: GpuSampler::detect(roots),
            last: now,
            metadata: Some(gather_metadata(options)),
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

    /// Writes the metadata once it is there.
    pub(super) fn write_metadata(&mut self, at: &ClockReading, writer: &mut SampleWriter) {
        if let Some(metadata) = self.metadata.as_ref().and_then(|metadata| metadata.try_recv().ok()) {
            writer.host_metadata("node", at.real_ns, &metadata);
            self.metadata = None;
        }
    }

    /// Writes it at the end, if it comes in time.
    pub(super) fn write_last_metadata(&mut self, now: ClockReading, writer: &mut SampleWriter) {
        if let Some(metadata) = self.metadata.take().and_then(|metadata| metadata.recv_timeout(METADATA_WAIT).ok()) {
            writer.host_metadata("node", now.real_ns, &metadata);
        }
    }
}

fn gather_metadata(options: &Options) -> Receiver<Fields> {
    let (send, receive) = channel();
    let (roots, peer) = (options.roots.clone(), options.peer.clone());
    let (node, stage) = (options.node.clone(), options.stage.clone());
    let has_peer = peer.is_some();
    let gather = move || {
        let Ok(serde_json::Value::Object(mut metadata)) = serde_json::to_value(node::info(&roots, peer.as_deref()))
        else {
            return;
        };
        metadata.insert("node".into(), node.into());
        if let Some(stage) = stage {
            metadata.insert("stage".into(), stage.into());
        }
        // A collector that has ended wants no metadata.
        let _ = send.send(metadata);
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
