//! Names of block devices by their numbers.

use std::collections::HashMap;
use std::path::PathBuf;

/// Names that were looked up. A device keeps its name while it exists.
#[derive(Debug)]
pub(super) struct Devices {
    /// `/sys/dev/block`: links named `major:minor`.
    links: PathBuf,
    names: HashMap<u32, String>,
}

impl Devices {
    pub(super) fn new(sys: &std::path::Path) -> Devices {
        Devices { links: sys.join("dev/block"), names: HashMap::new() }
    }

    /// The name below `/dev`, or the numbers where there is none.
    pub(super) fn name(&mut self, device: u32) -> &str {
        let links = &self.links;
        self.names.entry(device).or_insert_with(|| {
            let numbers = format!("{}:{}", device >> 20, device & 0xf_ffff);
            let link = std::fs::read_link(links.join(&numbers)).ok();
            link.and_then(|path| Some(path.file_name()?.to_str()?.to_owned())).unwrap_or(numbers)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_names_or_numbers() {
        let sys = tempfile::tempdir().expect("temporary directory");
        let links = sys.path().join("dev/block");
        std::fs::create_dir_all(&links).expect("directory");
        std::os::unix::fs::symlink("../../devices/pci/virtio0/block/vda", links.join("254:0")).expect("link");
        let mut devices = Devices::new(sys.path());
        assert_eq!(devices.name(254 << 20), "vda");
        assert_eq!(devices.name(8 << 20 | 17), "8:17");
    }
}
