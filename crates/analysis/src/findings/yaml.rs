//! YAML documents as trees of texts: thresholds and rules are a few keys each.

use saphyr_parser::{Event, Parser};

use super::FindingsError;

/// A value of a document. What a text means is decided by who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    Text(String),
    List(Vec<Node>),
    /// In the order of the document.
    Map(Vec<(String, Node)>),
}

impl Node {
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        match self {
            Node::Map(entries) => entries.iter().find(|(known, _)| known == key).map(|(_, node)| node),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The items of a list; a single text is a list of one.
    pub(crate) fn list(&self) -> &[Node] {
        match self {
            Node::List(nodes) => nodes,
            Node::Text(_) => std::slice::from_ref(self),
            Node::Map(_) => &[],
        }
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.list().iter().filter_map(Node::text).map(str::to_owned).collect()
    }
}

enum Open {
    List(Vec<Node>),
    Map(Vec<(String, Node)>, Option<String>),
}

/// The first document of a text; nothing when there is none. Aliases are refused: nothing here needs to be said twice.
pub(crate) fn parse(text: &str) -> Result<Option<Node>, FindingsError> {
    let wrong = |why: String| FindingsError::Setting { what: "the YAML text".to_owned(), why };
    let mut open: Vec<Open> = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| wrong(error.to_string()))?;
        let node = match event {
            Event::MappingStart(..) => {
                open.push(Open::Map(Vec::new(), None));
                continue;
            }
            Event::SequenceStart(..) => {
                open.push(Open::List(Vec::new()));
                continue;
            }
            Event::MappingEnd | Event::SequenceEnd => match open.pop() {
                Some(Open::Map(entries, _)) => Node::Map(entries),
                Some(Open::List(nodes)) => Node::List(nodes),
                None => continue,
            },
            Event::Scalar(value, ..) => Node::Text(value.into_owned()),
            Event::Alias(_) => return Err(wrong(format!("line {} has an alias", span.start.line()))),
            _ => continue,
        };
        match open.last_mut() {
            None => return Ok(Some(node)),
            Some(Open::List(nodes)) => nodes.push(node),
            Some(Open::Map(entries, key)) => match (key.take(), node) {
                (Some(key), node) => entries.push((key, node)),
                (None, Node::Text(text)) => *key = Some(text),
                (None, _) => return Err(wrong(format!("line {} has a key that is not a string", span.start.line()))),
            },
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_become_trees() {
        let node = parse("a: 1\nb: [x, {c: 'y z'}]\n").expect("read").expect("a document");
        assert_eq!(node.get("a").and_then(Node::text), Some("1"));
        assert_eq!(node.get("b").map(|list| list.list().len()), Some(2));
        assert_eq!(node.get("b").and_then(|list| list.list()[1].get("c")?.text()), Some("y z"));
        assert_eq!(parse("").expect("read"), None);
        for text in ["a: [1", "a: &x 1\nb: *x", "[1]: 2"] {
            parse(text).expect_err(text);
        }
    }
}
