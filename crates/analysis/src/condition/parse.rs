//! Text → tree.

use weftline_index::schema::{EVENTS, Source};

use super::{Comparison, ConditionError, END, Node, NumberTest, Operand, TextTest, columns, operand};

/// Deeper brackets are refused before they use up the stack.
const MAX_DEPTH: usize = 100;

pub(super) fn parse(text: &str) -> Result<Node, ConditionError> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let node = parser.either()?;
    parser.space();
    if parser.at < text.len() {
        return Err(parser.error("the condition should end here"));
    }
    Ok(node)
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn error(&self, why: impl Into<String>) -> ConditionError {
        let at = self.text[..self.at].chars().count() + 1;
        ConditionError { text: self.text.to_owned(), at, why: why.into() }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Takes a sign, after space.
    fn sign(&mut self, sign: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(sign);
        self.at += if found { sign.len() } else { 0 };
        found
    }

    /// The word that stands here, after space; it is not taken.
    fn word(&mut self) -> &'t str {
        self.space();
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        &rest[..end]
    }

    fn keyword(&mut self, keyword: &str) -> bool {
        let found = self.word().eq_ignore_ascii_case(keyword);
        self.at += if found { keyword.len() } else { 0 };
        found
    }

    fn either(&mut self) -> Result<Node, ConditionError> {
        let mut parts = vec![self.both()?];
        while self.keyword("OR") {
            parts.push(self.both()?);
        }
        Ok(one_or(parts, Node::Or))
    }

    fn both(&mut self) -> Result<Node, ConditionError> {
        let mut parts = vec![self.single()?];
        while self.keyword("AND") {
            parts.push(self.single()?);
        }
        Ok(one_or(parts, Node::And))
    }

    fn single(&mut self) -> Result<Node, ConditionError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("too many brackets"));
        }
        let node = if self.keyword("NOT") {
            Node::Not(Box::new(self.single()?))
        } else if self.sign("(") {
            let node = self.either()?;
            if !self.sign(")") {
                return Err(self.error("a closing bracket was expected"));
            }
            node
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn column(&mut self) -> Result<Operand, ConditionError> {
        let word = self.word();
        if word.is_empty() {
            return Err(self.error("a column was expected"));
        }
        let name = word.to_ascii_lowercase();
        let operand = EVENTS.iter().chain([&END]).find(|column| column.name == name).and_then(operand);
        let Some(operand) = operand else {
            let known = columns().join(", ");
            return Err(self.error(format!("there is no column {word}; there are {known}")));
        };
        self.at += word.len();
        Ok(operand)
    }

    fn test(&mut self) -> Result<Node, ConditionError> {
        let column = self.column()?;
        if self.keyword("IS") {
            let negated = self.keyword("NOT");
            if !self.keyword("NULL") {
                return Err(self.error("NULL was expected"));
            }
            let node = match column {
                Operand::Text(column) => Node::Text(column, TextTest::IsNull),
                Operand::Number(column) => Node::Number(column, NumberTest::IsNull),
            };
            return Ok(negate(node, negated));
        }
        let negated = self.keyword("NOT");
        let node = if self.keyword("IN") {
            self.list(&column)?
        } else if self.keyword("LIKE") {
            match column {
                Operand::Text(column) => Node::Text(column, TextTest::Like(self.text_of(column)?)),
                Operand::Number(_) => return Err(self.error("LIKE compares texts")),
            }
        } else if self.keyword("BETWEEN") {
            match column {
                Operand::Number(column) => {
                    let from = self.number()?;
                    if !self.keyword("AND") {
                        return Err(self.error("AND was expected"));
                    }
                    Node::Number(column, NumberTest::Between(from, self.number()?))
                }
                Operand::Text(_) => return Err(self.error("BETWEEN compares numbers")),
            }
        } else if negated {
            return Err(self.error("IN, LIKE or BETWEEN was expected"));
        } else {
            let comparison = self.comparison()?;
            match column {
                Operand::Text(column) => Node::Text(column, TextTest::Compare(comparison, self.text_of(column)?)),
                Operand::Number(column) => Node::Number(column, NumberTest::Compare(comparison, self.number()?)),
            }
        };
        Ok(negate(node, negated))
    }

    fn list(&mut self, column: &Operand) -> Result<Node, ConditionError> {
        if !self.sign("(") {
            return Err(self.error("an opening bracket was expected"));
        }
        let node = match column {
            Operand::Text(column) => {
                let mut texts = vec![self.text_of(*column)?];
                while self.sign(",") {
                    texts.push(self.text_of(*column)?);
                }
                Node::Text(*column, TextTest::In(texts))
            }
            Operand::Number(column) => {
                let mut numbers = vec![self.number()?];
                while self.sign(",") {
                    numbers.push(self.number()?);
                }
                Node::Number(*column, NumberTest::In(numbers))
            }
        };
        if !self.sign(")") {
            return Err(self.error("a closing bracket was expected"));
        }
        Ok(node)
    }

    fn comparison(&mut self) -> Result<Comparison, ConditionError> {
        for (sign, comparison) in [
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<>", Comparison::Unequal),
            ("!=", Comparison::Unequal),
            ("=", Comparison::Equal),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ] {
            if self.sign(sign) {
                // Both spellings of "equal" are common.
                if comparison == Comparison::Equal {
                    self.sign("=");
                }
                return Ok(comparison);
            }
        }
        Err(self.error("a comparison (=, <>, <, <=, >, >=, IN, LIKE, BETWEEN, IS NULL) was expected"))
    }

    /// A text; categories are compared without regard to case.
    fn text_of(&mut self, column: Source) -> Result<String, ConditionError> {
        if !self.sign("'") {
            return Err(self.error("a quoted string was expected"));
        }
        let mut text = String::new();
        loop {
            let Some(end) = self.rest().find('\'') else { return Err(self.error("a string is not closed")) };
            text.push_str(&self.rest()[..end]);
            self.at += end + 1;
            if !self.rest().starts_with('\'') {
                break;
            }
            text.push('\'');
            self.at += 1;
        }
        Ok(if column == Source::Cat { text.to_lowercase() } else { text })
    }

    fn number(&mut self) -> Result<f64, ConditionError> {
        self.space();
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_digit() || "+-.eE_".contains(c);
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        match rest[..end].replace('_', "").parse() {
            Ok(number) => {
                self.at += end;
                Ok(number)
            }
            Err(_) => Err(self.error("a number was expected")),
        }
    }
}

fn one_or(mut parts: Vec<Node>, many: impl FnOnce(Vec<Node>) -> Node) -> Node {
    if parts.len() == 1 { parts.remove(0) } else { many(parts) }
}

fn negate(node: Node, negated: bool) -> Node {
    if negated { Node::Not(Box::new(node)) } else { node }
}
