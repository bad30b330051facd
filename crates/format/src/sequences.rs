//! Checks by sequence numbers that all members of a process image are present.

use std::collections::BTreeMap;

use crate::damage::{Damage, Place, What};

/// The sequence numbers of members that were seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sequences {
    /// Per process image: number, and where the member is.
    seen: BTreeMap<String, Vec<(u64, u64)>>,
}

impl Sequences {
    /// A member of an image, with its number and where it is in the file.
    pub fn note(&mut self, image: &str, number: u64, at: u64) {
        match self.seen.get_mut(image) {
            Some(seen) => seen.push((number, at)),
            None => {
                self.seen.insert(image.to_owned(), vec![(number, at)]);
            }
        }
    }

    /// Takes up what was seen elsewhere in the same file.
    pub fn absorb(&mut self, other: Sequences) {
        for (image, seen) in other.seen {
            self.seen.entry(image).or_default().extend(seen);
        }
    }

    /// What is missing, and what is there twice. `whole`: the file was read from its start, so that each image begins with 0.
    pub fn judge(self, whole: bool, damage: &mut Damage) {
        for (image, mut seen) in self.seen {
            seen.sort_unstable();
            let mut expected = seen.first().filter(|_| !whole).map_or(0, |(number, _)| *number);
            for (number, at) in seen {
                let place = Place::File(at);
                if number < expected {
                    let note = format!("member {number} of image {image} again");
                    damage.add(place, What::RepeatedSequence, 0, note);
                    continue;
                }
                if number > expected {
                    let note = format!("members {expected} to {} of image {image}", number - 1);
                    damage.add(place, What::MissingSequence, 0, note);
                }
                expected = number.saturating_add(1);
            }
        }
    }
}
