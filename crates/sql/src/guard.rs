//! Admits only read-only statements: one query over the run's tables, its explanation, or a description of the tables.
//!
//! There are two checks. This one admits a short list of parsed statements. The other is DataFusion's own check of the plan, for what is
//! inside a query. Also, the session has no table factories, file formats or functions that open files.

use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SQLOptions;
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;
use datafusion::sql::sqlparser::dialect::GenericDialect;

use crate::complaint::Refusal;

/// Parses the text and lets one harmless statement through.
pub(crate) fn parse(sql: &str) -> anyhow::Result<Statement> {
    let mut parser = DFParserBuilder::new(sql).with_dialect(&GenericDialect {}).build()?;
    let mut statements = parser.parse_statements()?;
    let (Some(statement), true) = (statements.pop_front(), statements.is_empty()) else {
        return Err(Refusal::NotOne.into());
    };
    check(&statement)?;
    Ok(statement)
}

fn check(statement: &Statement) -> Result<(), Refusal> {
    match statement {
        Statement::Statement(inner) => match inner.as_ref() {
            SqlStatement::Query(_)
            | SqlStatement::ExplainTable { .. }
            | SqlStatement::ShowTables { .. }
            | SqlStatement::ShowColumns { .. } => Ok(()),
            SqlStatement::Explain { statement, .. } => match statement.as_ref() {
                SqlStatement::Query(_) => Ok(()),
                other => Err(refused(other)),
            },
            other => Err(refused(other)),
        },
        Statement::Explain(explained) => check(&explained.statement),
        other => Err(refused(other)),
    }
}

/// Names a statement by its first words.
fn refused(statement: &impl ToString) -> Refusal {
    let text = statement.to_string();
    let first: Vec<&str> =
        text.split_whitespace().take_while(|word| word.chars().all(|c| c.is_ascii_uppercase())).take(3).collect();
    Refusal::Statement(if first.is_empty() { text.chars().take(20).collect() } else { first.join(" ") })
}

/// Whether the statement asks for a plan.
pub(crate) fn explains(statement: &Statement) -> bool {
    match statement {
        Statement::Explain(_) => true,
        Statement::Statement(inner) => matches!(inner.as_ref(), SqlStatement::Explain { .. }),
        _ => false,
    }
}

/// Checks what a plan would do.
pub(crate) fn verify(plan: &LogicalPlan) -> anyhow::Result<()> {
    let options = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    options.verify_plan(plan).map_err(|error| Refusal::Plan(error.strip_backtrace()).into())
}
