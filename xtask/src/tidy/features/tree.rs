//! What `cargo tree --prefix depth --format '{p} [{f}]'` lists, as a graph.

use std::collections::{BTreeMap, BTreeSet};

/// One package as one build has it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// Name and version.
    pub(super) package: String,
    /// Names, sorted by cargo and separated by commas.
    pub(super) features: String,
    /// Of this workspace: it has a path.
    pub(super) is_ours: bool,
}

/// Nodes and what depends on what. A node's children are listed at its first mention only, so equal lines are one node.
#[derive(Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    children: Vec<BTreeSet<usize>>,
    roots: Vec<usize>,
}

impl Tree {
    pub(super) fn parse(listing: &str) -> Self {
        let mut tree = Self::default();
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        let mut above: Vec<usize> = Vec::new();
        for line in listing.lines() {
            let line = line.strip_suffix(" (*)").unwrap_or(line);
            let text = line.trim_start_matches(|character: char| character.is_ascii_digit());
            let (Ok(depth), Some(node)) = (line[..line.len() - text.len()].parse::<usize>(), Node::parse(text)) else {
                continue;
            };
            let index = *known.entry(text).or_insert_with(|| {
                tree.nodes.push(node);
                tree.children.push(BTreeSet::new());
                tree.nodes.len() - 1
            });
            above.truncate(depth);
            match above.last() {
                Some(parent) => {
                    tree.children[*parent].insert(index);
                }
                None => tree.roots.push(index),
            }
            above.push(index);
        }
        tree
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    /// Packages that the package `name` depends on.
    pub(super) fn children_of(&self, name: &str) -> impl Iterator<Item = &str> {
        let children: BTreeSet<&str> = (0..self.nodes.len())
            .filter(|index| self.nodes[*index].is(name))
            .flat_map(|index| &self.children[index])
            .map(|child| self.nodes[*child].package.as_str())
            .collect();
        children.into_iter()
    }

    /// Packages that are reached from the roots by ways that do not lead through the package `name`.
    pub(super) fn reached_without(&self, name: &str) -> BTreeSet<&str> {
        let mut pending = self.roots.clone();
        let mut seen = BTreeSet::new();
        while let Some(index) = pending.pop() {
            if !self.nodes[index].is(name) && seen.insert(index) {
                pending.extend(&self.children[index]);
            }
        }
        seen.into_iter().map(|index| self.nodes[index].package.as_str()).collect()
    }
}

impl Node {
    /// `syn v2.0.1 (proc-macro) [full,visit]`; nothing for an empty line between two roots.
    fn parse(text: &str) -> Option<Self> {
        let (package, features) = text.strip_suffix(']')?.rsplit_once(" [")?;
        let mut words = package.split(' ');
        Some(Self {
            package: format!("{} {}", words.next()?, words.next()?),
            features: features.to_owned(),
            is_ours: package.contains(" (/"),
        })
    }

    fn is(&self, name: &str) -> bool {
        self.package.split(' ').next() == Some(name)
    }
}
