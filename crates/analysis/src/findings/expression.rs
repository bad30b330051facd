//! Expressions of users' rules: numbers and named metrics, arithmetic, comparisons, `and`, `or`, `not`, and five functions.
//!
//! `max(a, b, …)`, `min`, `abs`, `clip01(x)` (limited to 0…1), `fillna0(x)` (0 where the metric has no value). A metric without a value makes
//! everything that it enters have none, and a comparison with it false: as in DFAnalyzer, where such rows do not match.

use std::collections::BTreeSet;

/// An expression, ready to be evaluated.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    Number(f64),
    Metric(String),
    Call(Function, Vec<Expression>),
    Negative(Box<Expression>),
    Not(Box<Expression>),
    Both(Operator, Box<Expression>, Box<Expression>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Max,
    Min,
    Abs,
    Clip01,
    FillNa0,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Or,
    And,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
}

impl Operator {
    fn of(token: &str) -> Option<Operator> {
        Some(match token {
            "or" | "|" => Operator::Or,
            "and" | "&" => Operator::And,
            "<" => Operator::Less,
            "<=" => Operator::LessEqual,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterEqual,
            "==" => Operator::Equal,
            "!=" => Operator::NotEqual,
            "+" => Operator::Add,
            "-" => Operator::Subtract,
            "*" => Operator::Multiply,
            "/" => Operator::Divide,
            "**" => Operator::Power,
            _ => return None,
        })
    }

    /// How tightly it binds.
    fn strength(self) -> u8 {
        match self {
            Operator::Or => 1,
            Operator::And => 2,
            Operator::Less
            | Operator::LessEqual
            | Operator::Greater
            | Operator::GreaterEqual
            | Operator::Equal
            | Operator::NotEqual => 4,
            Operator::Add | Operator::Subtract => 5,
            Operator::Multiply | Operator::Divide => 6,
            Operator::Power => 8,
        }
    }
}

/// `not` binds less than a comparison, a minus more than a product.
const NOT: u8 = 3;
const MINUS: u8 = 7;
/// Brackets and signs within each other; deeper ones are refused rather than followed.
const DEEPEST: usize = 100;

/// Reads an expression; the error says what is wrong and where.
pub(crate) fn parse(text: &str) -> Result<Expression, String> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0 };
    let expression = parser.expression(0)?;
    match parser.peek() {
        None => Ok(expression),
        Some(token) => Err(format!("{token:?} was not expected in {text:?}")),
    }
}

fn tokens(text: &str) -> Result<Vec<String>, String> {
    let chars: Vec<char> = text.chars().collect();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < chars.len() {
        let c = chars[at];
        let from = at;
        if c.is_whitespace() {
            at += 1;
            continue;
        } else if c.is_ascii_digit() || c == '.' {
            while at < chars.len() {
                let exponent = matches!(chars[at], '+' | '-') && matches!(chars[at - 1], 'e' | 'E');
                if !(chars[at].is_ascii_alphanumeric() || matches!(chars[at], '.' | '_') || at > from && exponent) {
                    break;
                }
                at += 1;
            }
        } else if c.is_alphabetic() || c == '_' {
            while at < chars.len() && (chars[at].is_alphanumeric() || chars[at] == '_') {
                at += 1;
            }
        } else {
            let two: String = chars[at..chars.len().min(at + 2)].iter().collect();
            at += if ["<=", ">=", "==", "!=", "**"].contains(&two.as_str()) { 2 } else { 1 };
            if at == from + 1 && !"<>+-*/(),&|".contains(c) {
                return Err(format!("{c:?} is invalid in {text:?}"));
            }
        }
        out.push(chars[from..at].iter().collect());
    }
    Ok(out)
}

struct Parser {
    tokens: Vec<String>,
    next: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.next).map(String::as_str)
    }

    fn take(&mut self) -> Option<String> {
        let token = self.tokens.get(self.next).cloned();
        self.next += 1;
        token
    }

    /// Everything that binds at least as tightly as `least`.
    fn expression(&mut self, least: u8) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("the expression is nested too deeply".to_owned());
        }
        let mut left = self.operand()?;
        while let Some(operator) = self.peek().and_then(Operator::of).filter(|it| it.strength() >= least) {
            self.next += 1;
            let right = self.expression(operator.strength() + u8::from(operator != Operator::Power))?;
            left = Expression::Both(operator, Box::new(left), Box::new(right));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn operand(&mut self) -> Result<Expression, String> {
        let token = self.take().ok_or("the expression ends too early")?;
        match token.as_str() {
            "(" => {
                let inner = self.expression(0)?;
                self.expect(")")?;
                Ok(inner)
            }
            "-" => Ok(Expression::Negative(Box::new(self.expression(MINUS)?))),
            "+" => self.expression(MINUS),
            "not" => Ok(Expression::Not(Box::new(self.expression(NOT)?))),
            "True" | "true" => Ok(Expression::Number(1.0)),
            "False" | "false" => Ok(Expression::Number(0.0)),
            word if word.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
                let number = word.replace('_', "").parse().map_err(|_| format!("{word:?} is not a number"))?;
                Ok(Expression::Number(number))
            }
            word if word.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                if self.peek() == Some("(") {
                    self.next += 1;
                    return self.call(word);
                }
                Ok(Expression::Metric(word.to_owned()))
            }
            other => Err(format!("{other:?} was not expected")),
        }
    }

    fn call(&mut self, name: &str) -> Result<Expression, String> {
        let (function, fewest, most) = match name {
            "max" => (Function::Max, 2, usize::MAX),
            "min" => (Function::Min, 2, usize::MAX),
            "abs" => (Function::Abs, 1, 1),
            "clip01" => (Function::Clip01, 1, 1),
            "fillna0" => (Function::FillNa0, 1, 1),
            _ => return Err(format!("there is no function {name}; use max, min, abs, clip01 or fillna0")),
        };
        let mut arguments = vec![self.expression(0)?];
        while self.peek() == Some(",") {
            self.next += 1;
            arguments.push(self.expression(0)?);
        }
        self.expect(")")?;
        if !(fewest..=most).contains(&arguments.len()) {
            return Err(format!("{name} takes {fewest} arguments{}", if most > fewest { " or more" } else { "" }));
        }
        Ok(Expression::Call(function, arguments))
    }

    fn expect(&mut self, wanted: &str) -> Result<(), String> {
        match self.take() {
            Some(token) if token == wanted => Ok(()),
            Some(token) => Err(format!("{wanted:?} was expected, not {token:?}")),
            None => Err(format!("{wanted:?} is missing at the end")),
        }
    }
}

impl Expression {
    /// Its value, where `metric` gives those of names. Truth is 1, untruth 0.
    pub(crate) fn value(&self, metric: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
        let truth = |value: bool| Some(f64::from(u8::from(value)));
        match self {
            Expression::Number(number) => Some(*number),
            Expression::Metric(name) => metric(name).filter(|value| !value.is_nan()),
            Expression::Negative(inner) => Some(-inner.value(metric)?),
            Expression::Not(inner) => truth(!inner.is_true(metric)),
            Expression::Call(Function::FillNa0, inner) => Some(inner[0].value(metric).unwrap_or(0.0)),
            Expression::Call(function, inner) => {
                let values = inner.iter().map(|one| one.value(metric)).collect::<Option<Vec<f64>>>()?;
                Some(match function {
                    Function::Max => values.into_iter().fold(f64::NEG_INFINITY, f64::max),
                    Function::Min => values.into_iter().fold(f64::INFINITY, f64::min),
                    Function::Abs => values[0].abs(),
                    Function::Clip01 | Function::FillNa0 => values[0].clamp(0.0, 1.0),
                })
            }
            Expression::Both(Operator::And, left, right) => truth(left.is_true(metric) && right.is_true(metric)),
            Expression::Both(Operator::Or, left, right) => truth(left.is_true(metric) || right.is_true(metric)),
            Expression::Both(operator, left, right) => {
                let (left, right) = (left.value(metric)?, right.value(metric)?);
                let number = match operator {
                    Operator::Less => return truth(left < right),
                    Operator::LessEqual => return truth(left <= right),
                    Operator::Greater => return truth(left > right),
                    Operator::GreaterEqual => return truth(left >= right),
                    Operator::Equal => return truth(left == right),
                    Operator::NotEqual => return truth(left != right),
                    Operator::Add => left + right,
                    Operator::Subtract => left - right,
                    Operator::Multiply => left * right,
                    Operator::Power => left.powf(right),
                    // A ratio to nothing has no value.
                    Operator::Divide if right == 0.0 => return None,
                    Operator::Divide => left / right,
                    Operator::And | Operator::Or => return None,
                };
                (!number.is_nan()).then_some(number)
            }
        }
    }

    /// Whether it has a value other than 0.
    pub(crate) fn is_true(&self, metric: &dyn Fn(&str) -> Option<f64>) -> bool {
        self.value(metric).is_some_and(|value| value != 0.0)
    }

    /// The metrics that it names.
    pub(crate) fn metrics(&self, into: &mut BTreeSet<String>) {
        match self {
            Expression::Number(_) => {}
            Expression::Metric(name) => {
                into.insert(name.clone());
            }
            Expression::Call(_, inner) => inner.iter().for_each(|one| one.metrics(into)),
            Expression::Negative(inner) | Expression::Not(inner) => inner.metrics(into),
            Expression::Both(_, left, right) => {
                left.metrics(into);
                right.metrics(into);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<f64>) {
        let metric = |name: &str| match name {
            "a" => Some(2.0),
            "b" => Some(0.5),
            _ => None,
        };
        let value = parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).value(&metric);
        assert_eq!(value, expected, "{text}");
    }

    #[test]
    fn expressions_have_values() {
        check("1 + 2 * 3", Some(7.0));
        check("(1 + 2) * 3", Some(9.0));
        check("-a ** 2", Some(-4.0));
        check("2 ** 3 ** 2", Some(512.0));
        check("10 - 2 - 3", Some(5.0));
        check("1.5e-1 + 1_000", Some(1000.15));
        check("a >= 2 and not b > 0.5", Some(1.0));
        check("not a and b or 1", Some(1.0));
        check("max(a, b, 7) - min(a, b)", Some(6.5));
        check("clip01((a - 0.1) / 0.25)", Some(1.0));
        check("abs(b - a) / min(a, b) > 0.1", Some(1.0));
        check("missing > 1", None);
        check("missing > 1 or a > 1", Some(1.0));
        check("fillna0(missing) + 1", Some(1.0));
        check("a / 0", None);
        check("(a > 1) & (b < 1)", Some(1.0));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "1 +", "(1", "max(1)", "eval(1)", "a ; b", "1 2", "a.b", "import os", "1..2"] {
            parse(text).expect_err(text);
        }
        parse(&"(".repeat(100_000)).expect_err("deep");
        parse(&"-".repeat(100_000)).expect_err("deep");
    }
}
