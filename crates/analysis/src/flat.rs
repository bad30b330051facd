//! Flat views: all layers of a job side by side, one row per bucket, process, file …, with shares of wholes, parents and boundaries.
//!
//! `T` of a row is its time over all processes where rows are processes, else that of the process that took longest. The boundary is the
//! first layer. Metrics with `o_` (a layer without the layers below) and `u_` (a layer while nothing computed) are wall times from real
//! time ranges, not differences of sums; see [`crate::summary::wall_times`].

use std::collections::BTreeMap;

use crate::hlm::{RowKey, ViewType, add_keys};
use crate::layers::Layer;
use crate::statistics::{ratio, seconds};
use crate::summary::{Wall, WallTimes};
use crate::table::Table;
use crate::units::Unit;
use crate::views::Views;

type Numbers = Vec<Option<f64>>;

/// Makes the flat view of all layers.
pub fn flat_view(views: &Views<'_>, layers: &[Layer], view: ViewType, wall: Option<&WallTimes>) -> Table {
    let all: Vec<_> = layers.iter().map(|layer| views.of(layer, view)).collect();
    let mut places: BTreeMap<RowKey, usize> =
        all.iter().flat_map(|one| one.rows.iter().cloned()).map(|row| (row, 0)).collect();
    if let Some(wall) = wall {
        // An event that spans several buckets has wall time in all of them, and is counted in the first.
        places.extend(wall.keys().map(|row| (row.clone(), 0)));
    }
    places.values_mut().enumerate().for_each(|(at, place)| *place = at);
    let mut table = Table::with_rows(places.len());
    add_keys(&mut table, view.name(), places.keys().map(Some));
    for (layer, one) in layers.iter().zip(&all) {
        let to: Vec<usize> = one.rows.iter().map(|row| places[row]).collect();
        let mut from = vec![None; places.len()];
        to.iter().enumerate().for_each(|(row, place)| from[*place] = Some(row));
        table.columns.extend(one.table(&format!("{}_", layer.name)).spread(&from).columns.into_iter().skip(1));
    }
    let time = if view.is_process_based() { "time_sum" } else { "time_proc_max" };
    let size = if view.is_process_based() { "size_sum" } else { "size_proc_max" };
    let maker = Maker { layers, time, size };
    for layer in layers {
        maker.shares(&mut table, layer);
    }
    if let Some(wall) = wall {
        // Rows in which a layer has calls of which only totals are known: their wall time is not. Totals may not tell their file, epoch
        // or step, so there any of them leaves open what a layer above did alone.
        let by_process = view == ViewType::TimeRange || view.is_process_based();
        let unknown: Vec<Vec<bool>> = all
            .iter()
            .zip(layers)
            .map(|(one, layer)| {
                let mut rows = vec![!by_process && views.has_totals(layer); places.len()];
                for (key, metric) in one.rows.iter().zip(&one.metrics[0].1) {
                    rows[places[key]] |= metric.as_ref().is_some_and(|metric| metric.stats.totals() > 0);
                }
                rows
            })
            .collect();
        maker.wall(&mut table, wall, &places, &unknown);
    }
    table
}

fn numbers(table: &Table, column: &str) -> Numbers {
    (0..table.rows).map(|row| table.get(row, column).number()).collect()
}

fn share(parts: &Numbers, wholes: &Numbers) -> Numbers {
    parts.iter().zip(wholes).map(|(part, whole)| ratio((*part)?, (*whole)?)).collect()
}

fn share_of_total(parts: &Numbers) -> Numbers {
    let total: f64 = parts.iter().flatten().sum();
    parts.iter().map(|part| ratio((*part)?, total)).collect()
}

/// Ratios of equal numbers may differ in their last digits.
const EQUAL: f64 = 1e-12;

/// The rank of each value as a share of how many there are; equal values have the mean of their ranks.
fn percentile_ranks(values: &Numbers) -> Numbers {
    let mut sorted: Vec<f64> = values.iter().flatten().copied().collect();
    sorted.sort_by(f64::total_cmp);
    let rank = |value: f64| {
        let near = value.abs() * EQUAL;
        let below = sorted.partition_point(|other| *other < value - near);
        let upto = sorted.partition_point(|other| *other <= value + near);
        (below + upto + 1) as f64 / 2.0 / sorted.len() as f64
    };
    values.iter().map(|value| value.map(rank)).collect()
}

struct Maker<'l> {
    layers: &'l [Layer],
    time: &'static str,
    size: &'static str,
}

impl Maker<'_> {
    fn shares(&self, table: &mut Table, layer: &Layer) {
        let boundary = self.layers.first().map(|first| first.name.to_string()).unwrap_or_default();
        let prefixes = std::iter::once(format!("{}_", layer.name))
            .chain(layer.derived.iter().map(|derived| format!("{}_{}_", layer.name, derived.name)));
        for (place, prefix) in prefixes.enumerate() {
            let column = |table: &Table, name: &str| numbers(table, &format!("{prefix}{name}"));
            let [time, size] = [self.time, self.size].map(|name| column(table, name));
            let [count, time_sum, size_sum] = ["count_sum", "time_sum", "size_sum"].map(|name| column(table, name));
            let mut add = |name: &str, unit: Unit, values: Numbers| {
                table.floats(format!("{prefix}{name}"), unit, values.into_iter());
            };
            let counts = share_of_total(&count);
            let times = share_of_total(&time);
            let slope = share(&times, &counts);
            add("count_frac_total", Unit::Share, counts);
            add("time_proc_frac_total", Unit::Share, times);
            add("size_proc_frac_total", Unit::Share, share_of_total(&size));
            add("time_call_frac_total", Unit::Share, share_of_total(&time_sum));
            add("size_call_frac_total", Unit::Share, share_of_total(&size_sum));
            add("ops_percentile", Unit::Share, percentile_ranks(&slope));
            add("ops_slope", Unit::Number, slope);
            // A part of a layer has the layer for its parent.
            let parent = if place == 0 { layer.parent.as_deref() } else { Some(&*layer.name) };
            for (whole, called) in [(Some(boundary.as_str()), boundary.as_str()), (parent, "parent")] {
                let Some(whole) = whole.filter(|whole| place > 0 || *whole != layer.name) else { continue };
                let of = |table: &Table, name: &str| numbers(table, &format!("{whole}_{name}"));
                let (proc, call) = (of(table, self.time), of(table, "time_sum"));
                table.floats(format!("{prefix}time_proc_frac_{called}"), Unit::Share, share(&time, &proc).into_iter());
                table.floats(
                    format!("{prefix}time_call_frac_{called}"),
                    Unit::Share,
                    share(&time_sum, &call).into_iter(),
                );
            }
        }
    }

    fn wall(&self, table: &mut Table, wall: &WallTimes, places: &BTreeMap<RowKey, usize>, unknown: &[Vec<bool>]) {
        // `needed`: the layers whose ranges of time a value follows from.
        let column = |layer: usize, needed: &[usize], of: &dyn Fn(&Wall) -> i128| -> Numbers {
            let rows = places.keys().enumerate().map(|(row, key)| {
                let known = !needed.iter().any(|layer| unknown[*layer][row]);
                wall.get(key).map(|walls| &walls[layer]).filter(|found| known && found.union > 0)
            });
            rows.map(|found| found.map(|found| seconds(of(found)))).collect()
        };
        let place = |name: &str| self.layers.iter().position(|layer| layer.name == name);
        let unions: Vec<Numbers> =
            (0..self.layers.len()).map(|layer| column(layer, &[layer], &|wall| wall.union)).collect();
        let compute = place("compute");
        for (at, layer) in self.layers.iter().enumerate() {
            let name = &layer.name;
            table.floats(format!("{name}_time_union"), Unit::Seconds, unions[at].iter().copied());
            let mut with_shares = |prefix: &str, values: Numbers| {
                let mut add = |suffix: &str, unit: Unit, values: Numbers| {
                    table.floats(format!("{prefix}_{name}_time_union{suffix}"), unit, values.into_iter());
                };
                add("_frac_self", Unit::Share, share(&values, &unions[at]));
                add("_frac_total", Unit::Share, share_of_total(&values));
                if let Some(parent) = layer.parent.as_deref().and_then(place) {
                    add("_frac_parent", Unit::Share, share(&values, &unions[parent]));
                }
                if at > 0 {
                    add(&format!("_frac_{}", self.layers[0].name), Unit::Share, share(&values, &unions[0]));
                }
                add("", Unit::Seconds, values);
            };
            let below = (0..self.layers.len()).filter(|other| self.layers[*other].parent.as_deref() == Some(name));
            let needed: Vec<usize> = below.chain([at]).collect();
            with_shares("o", column(at, &needed, &|wall| wall.own));
            if let Some(compute) = compute.filter(|compute| layer.asynchronous && *compute != at) {
                with_shares("u", column(at, &[at, compute], &|wall| wall.union - wall.beside_compute));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_shares_and_ties_share_theirs() {
        let values = vec![Some(3.0), None, Some(1.0), Some(3.0), Some(7.0)];
        let expected = vec![Some(2.5 / 4.0), None, Some(0.25), Some(2.5 / 4.0), Some(1.0)];
        assert_eq!(percentile_ranks(&values), expected);
        // The same ratio, of other numbers.
        let thirds = vec![Some(0.1 + 0.2), Some(0.3), Some(0.31)];
        assert_eq!(percentile_ranks(&thirds), vec![Some(0.5), Some(0.5), Some(1.0)]);
    }

    #[test]
    fn shares_of_nothing_are_absent() {
        assert_eq!(share_of_total(&vec![Some(0.0), None]), vec![None, None]);
        assert_eq!(
            share(&vec![Some(1.0), Some(1.0), None], &vec![Some(4.0), Some(0.0), Some(1.0)]),
            vec![Some(0.25), None, None]
        );
    }
}
