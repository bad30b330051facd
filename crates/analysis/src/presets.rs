//! Presets: the layers of known kinds of jobs, as data.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use weftline_calls::Operation;
use weftline_index::Dictionary;

use crate::layers::{Derived, IO, IO_DERIVED, Layer, Test};
use crate::{AnalysisError, Result};

/// A kind of job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preset {
    /// I/O calls.
    Posix,
    /// The DLIO benchmark.
    Dlio,
    /// Training that is annotated as DFTracer's AI module does.
    Ai,
    /// A layer per category.
    Auto,
}

impl Preset {
    /// All of them.
    pub const ALL: [Preset; 4] = [Preset::Posix, Preset::Dlio, Preset::Ai, Preset::Auto];

    /// What users call it.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Posix => "posix",
            Preset::Dlio => "dlio",
            Preset::Ai => "ai",
            Preset::Auto => "auto",
        }
    }

    /// The preset of a name.
    pub fn parse(name: &str) -> Result<Preset> {
        Preset::ALL.into_iter().find(|preset| preset.name() == name).ok_or_else(|| AnalysisError::Unknown {
            what: "preset",
            name: name.to_owned(),
            known: Preset::ALL.map(Preset::name).join(", "),
        })
    }

    /// The preset that the categories of a run speak for.
    pub fn detect(dictionary: &Dictionary) -> Preset {
        let cats: Vec<String> = dictionary.cats.iter().map(str::to_lowercase).collect();
        let any = |wanted: &[&str]| cats.iter().any(|cat| wanted.contains(&cat.as_str()));
        if any(&["ai_root", "pipeline"]) {
            Preset::Ai
        } else if any(&["reader", "data_loader", "checkpoint", "ai_framework", "dlio_benchmark"]) {
            Preset::Dlio
        } else if any(&["posix", "stdio"]) {
            Preset::Posix
        } else {
            Preset::Auto
        }
    }

    /// The layers, outermost first. Those of `auto` follow from the run's categories.
    pub fn layers(self, dictionary: &Dictionary) -> Vec<Layer> {
        let table: &[Row] = match self {
            Preset::Posix => {
                let cats: BTreeSet<String> = dictionary.cats.iter().map(str::to_lowercase).collect();
                let used = LIBRARIES.iter().filter(|cat| cats.contains(**cat)).map(|cat| library(cat));
                return used.chain(POSIX.iter().map(Row::layer)).collect();
            }
            Preset::Dlio => &DLIO,
            Preset::Ai => &AI,
            Preset::Auto => return auto(dictionary),
        };
        table.iter().map(Row::layer).collect()
    }

    /// The static table, for documents; `auto` has none.
    pub fn table(self) -> Vec<Layer> {
        if self == Preset::Auto { Vec::new() } else { self.layers(&Dictionary::default()) }
    }
}

/// A layer of a static table.
struct Row {
    name: &'static str,
    test: Test,
    parent: Option<&'static str>,
    asynchronous: bool,
    derived: &'static [Derived],
}

impl Row {
    const fn new(name: &'static str, test: Test, parent: Option<&'static str>) -> Row {
        Row { name, test, parent, asynchronous: false, derived: &[] }
    }

    const fn background(mut self) -> Row {
        self.asynchronous = true;
        self
    }

    const fn with(mut self, derived: &'static [Derived]) -> Row {
        self.derived = derived;
        self
    }

    fn layer(&self) -> Layer {
        Layer {
            name: Cow::Borrowed(self.name),
            test: self.test.clone(),
            parent: self.parent.map(Cow::Borrowed),
            asynchronous: self.asynchronous,
            derived: self.derived,
        }
    }
}

const fn cat(name: &'static str) -> Test {
    Test::Cat(Cow::Borrowed(name))
}

const READER_IO: Test = Test::All(&[IO, Test::CatHas("_reader")]);
const CHECKPOINT_IO: Test = Test::All(&[IO, Test::CatHas("_checkpoint")]);
const FORK: Test = Test::All(&[IO, Test::Does(&[Operation::Fork, Operation::Vfork])]);

const LOADER: Test = Test::All(&[cat("data_loader"), Test::Not(&Test::NameIn(&["loop.iter", "loop.yield"]))]);
const TRAIN: Test = Test::All(&[cat("pipeline"), Test::NameIn(&["train"])]);
const EPOCH: Test = Test::All(&[cat("pipeline"), Test::NameStarts("epoch")]);
const LOADER_CATS: Test = Test::Any(&[cat("data"), cat("data_loader"), cat("dataloader")]);
/// Waiting for a batch, as DFTracer's names and ours have it.
const FETCH: Test = Test::Any(&[Test::NameIn(&["fetch.iter"]), Test::All(&[LOADER_CATS, Test::NameIn(&["fetch"])])]);
/// What the loop does with a batch, in whatever category.
const BODY: Test = Test::All(&[LOADER_CATS, Test::NameIn(&["fetch.body", "fetch.yield", "loop.yield"])]);
const STEP: Test = Test::Any(&[BODY, Test::All(&[cat("pipeline"), Test::NameIn(&["step"])])]);
const ANY_LOADER: Test = Test::All(&[LOADER_CATS, Test::Not(&FETCH), Test::Not(&BODY)]);
const READER: Test = Test::Any(&[cat("reader"), Test::NameIn(&["preprocess"])]);

static READER_DERIVED: [Derived; 4] = [
    Derived { name: "close", test: Test::NameHas(".close") },
    Derived { name: "open", test: Test::NameHas(".open") },
    Derived { name: "preprocess", test: Test::NameHas(".preprocess") },
    Derived { name: "sample", test: Test::NameHas(".get_sample") },
];

static LOADER_DERIVED: [Derived; 2] =
    [Derived { name: "init", test: Test::NameHas("init") }, Derived { name: "item", test: Test::NameHas("item") }];

static POSIX: [Row; 1] = [Row::new("posix", IO, None).with(&IO_DERIVED)];

/// Categories of I/O libraries, as Darshan's records have them, outermost first. They are layers of jobs that use them.
const LIBRARIES: [&str; 6] = ["h5f", "h5d", "pnetcdf", "pnetcdf_file", "pnetcdf_var", "mpi-io"];

static LIBRARY_DERIVED: [Derived; 3] = [
    Derived { name: "open", test: Test::NameIn(&["open"]) },
    Derived { name: "read", test: Test::NameIn(&["read"]) },
    Derived { name: "write", test: Test::NameIn(&["write"]) },
];

fn library(category: &'static str) -> Layer {
    Layer {
        name: Cow::Owned(sanitized(category)),
        test: cat(category),
        parent: None,
        asynchronous: false,
        derived: &LIBRARY_DERIVED,
    }
}

static DLIO: [Row; 12] = [
    Row::new("app", Test::NameIn(&["DLIOBenchmark.initialize", "DLIOBenchmark.run"]), None),
    Row::new("training", Test::NameIn(&["DLIOBenchmark.run"]), Some("app")),
    Row::new("epoch", Test::NameIn(&["DLIOBenchmark._train"]), Some("training")),
    Row::new("compute", cat("ai_framework"), Some("epoch")),
    Row::new("fetch_data", Test::NameIn(&["<module>.iter", "fetch-data.iter", "loop.iter"]), Some("epoch")),
    Row::new("checkpoint", cat("checkpoint"), Some("epoch")),
    Row::new("data_loader", LOADER, Some("fetch_data")).background().with(&LOADER_DERIVED),
    Row::new("data_loader_fork", FORK, Some("fetch_data")).background(),
    Row::new("reader", cat("reader"), Some("data_loader")).background().with(&READER_DERIVED),
    Row::new("posix", IO, None).background().with(&IO_DERIVED),
    Row::new("reader_posix", READER_IO, Some("reader")).background().with(&IO_DERIVED),
    Row::new("checkpoint_posix", CHECKPOINT_IO, Some("checkpoint")).with(&IO_DERIVED),
];

static AI: [Row; 15] = [
    Row::new("app", cat("ai_root"), None),
    Row::new("training", TRAIN, Some("app")),
    Row::new("epoch", EPOCH, Some("training")),
    Row::new("step", STEP, Some("epoch")),
    Row::new("compute", cat("compute"), Some("epoch")),
    Row::new("fetch_data", FETCH, Some("epoch")),
    Row::new("checkpoint", cat("checkpoint"), Some("epoch")),
    Row::new("comm", cat("comm"), Some("epoch")),
    Row::new("device", cat("device"), Some("epoch")),
    Row::new("data_loader", ANY_LOADER, Some("fetch_data")).background().with(&LOADER_DERIVED),
    Row::new("data_loader_fork", FORK, Some("fetch_data")).background(),
    Row::new("reader", READER, Some("data_loader")).background().with(&READER_DERIVED),
    Row::new("posix", IO, None).background().with(&IO_DERIVED),
    Row::new("reader_posix", READER_IO, Some("reader")).background().with(&IO_DERIVED),
    Row::new("checkpoint_posix", CHECKPOINT_IO, Some("checkpoint")).with(&IO_DERIVED),
];

/// What a category is called as the prefix of columns.
fn sanitized(cat: &str) -> String {
    let name: String = cat.chars().map(|character| if character.is_alphanumeric() { character } else { '_' }).collect();
    if name.is_empty() { "none".to_owned() } else { name }
}

/// All events, and a layer per category. `a.b` is a part of `a` when both are there. Layers that would be called alike, or like a part of another one, get a
/// number: their names are those of columns and tables.
fn auto(dictionary: &Dictionary) -> Vec<Layer> {
    let mut cats: Vec<String> = dictionary.cats.iter().map(str::to_lowercase).collect();
    cats.sort_unstable();
    cats.dedup();
    cats.retain(|cat| cat != "dftracer" && cat != "weft");
    let is_io = |cat: &str| cat.starts_with("posix") || cat.starts_with("stdio");
    let layer = |name: String, test: Test, parent: Option<String>, derived: &'static [Derived]| Layer {
        name: Cow::Owned(name),
        test,
        parent: parent.map(Cow::Owned),
        asynchronous: !derived.is_empty(),
        derived,
    };
    let mut layers = vec![layer("app".to_owned(), Test::Every, None, &[])];
    // All layers side by side are the table `flat_VIEW`.
    let mut taken: BTreeSet<String> = ["app", "flat"].map(str::to_owned).into();
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    for cat in &cats {
        let above =
            names.iter().filter(|(other, _)| cat.strip_prefix(**other).is_some_and(|rest| rest.starts_with('.')));
        let parent = above.max_by_key(|(other, _)| other.len()).map_or("app".to_owned(), |(_, name)| name.clone());
        let plain = sanitized(cat);
        let mut name = plain.clone();
        for number in 2.. {
            if taken.insert(name.clone()) {
                break;
            }
            name = format!("{plain}_{number}");
        }
        // Paths append suffixes to the categories of I/O.
        let (test, derived): (Test, &'static [Derived]) = match cat.as_str() {
            "posix" => (Test::CatHas("posix"), &IO_DERIVED),
            "stdio" => (Test::CatHas("stdio"), &IO_DERIVED),
            other if is_io(other) => (Test::CatBelow(Cow::Owned(cat.clone())), &IO_DERIVED),
            _ => (Test::CatBelow(Cow::Owned(cat.clone())), &[]),
        };
        taken.extend(derived.iter().map(|part| format!("{name}_{}", part.name)));
        names.insert(cat, name.clone());
        layers.push(layer(name, test, Some(parent), derived));
    }
    layers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::IoCat;

    fn dictionary(cats: &[&str]) -> Dictionary {
        let mut dictionary = Dictionary::default();
        for cat in cats {
            dictionary.cats.intern(cat);
        }
        dictionary
    }

    #[test]
    fn categories_speak_for_a_preset() {
        let check = |cats: &[&str], expected: Preset| {
            assert_eq!(Preset::detect(&dictionary(cats)), expected, "{cats:?}");
        };
        check(&["POSIX", "dftracer"], Preset::Posix);
        check(&["POSIX", "reader"], Preset::Dlio);
        check(&["reader", "pipeline", "POSIX"], Preset::Ai);
        check(&["mine"], Preset::Auto);
    }

    #[test]
    fn parents_are_layers_of_the_same_preset() {
        for preset in Preset::ALL {
            let cats = ["POSIX", "a", "a.b", "a.b.c", "a_b", "app", "app.io", "flat", "posix.read", "dftracer"];
            let layers = preset.layers(&dictionary(&cats));
            for layer in &layers {
                let known = layer.parent.as_ref().is_none_or(|parent| layers.iter().any(|other| other.name == *parent));
                assert!(known, "{} of {}", layer.name, preset.name());
            }
            let mut names: Vec<_> = layers.iter().map(|layer| layer.name.clone()).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), layers.len(), "{}", preset.name());
            let parts = layers.iter().flat_map(|layer| layer.derived.iter().map(move |part| (&layer.name, part.name)));
            let called = |(layer, part): (&Cow<'_, str>, &str)| names.contains(&Cow::from(format!("{layer}_{part}")));
            assert!(preset != Preset::Auto || !parts.into_iter().any(called), "{names:?}");
        }
    }

    #[test]
    fn libraries_are_layers_where_they_are_used() {
        let names = |cats: &[&str]| {
            let layers = Preset::Posix.layers(&dictionary(cats));
            layers.iter().map(|layer| layer.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(&["POSIX"]), ["posix"]);
        assert_eq!(names(&["POSIX", "MPI-IO", "STDIO", "H5D"]), ["h5d", "mpi_io", "posix"]);
    }

    #[test]
    fn events_of_weftline_fill_the_layers_of_ai() {
        let layers = Preset::Ai.layers(&Dictionary::default());
        for (cat, name, expected) in [
            ("dataloader", "fetch", "fetch_data"),
            ("dataloader", "fetch.iter", "fetch_data"),
            ("dataloader", "fetch.body", "step"),
            ("pipeline", "step", "step"),
            ("dataloader", "batch", "data_loader"),
            ("data", "item", "data_loader"),
            ("compute", "forward", "compute"),
            ("pipeline", "epoch", "epoch"),
        ] {
            let holding = layers.iter().filter(|layer| layer.test.holds(cat, name, IoCat::Other));
            let names: Vec<&str> = holding.map(|layer| &*layer.name).collect();
            assert_eq!(names, [expected], "{cat} {name}");
        }
    }

    #[test]
    fn dotted_categories_nest() {
        let layers = Preset::Auto.layers(&dictionary(&["a", "a.b", "ab"]));
        let nested = layers.iter().find(|layer| layer.name == "a_b").expect("a layer");
        assert_eq!(nested.parent.as_deref(), Some("a"));
        let named = Preset::Auto.layers(&dictionary(&["app", "app.io", "a.b", "a_b", "posix", "posix.read"]));
        let names: Vec<(&str, Option<&str>)> =
            named.iter().map(|layer| (&*layer.name, layer.parent.as_deref())).collect();
        let expected = [
            ("app", None),
            ("a_b", Some("app")),
            ("a_b_2", Some("app")),
            ("app_2", Some("app")),
            ("app_io", Some("app_2")),
            ("posix", Some("app")),
            ("posix_read_2", Some("posix")),
        ];
        assert_eq!(names, expected);
        let outer = layers.iter().find(|layer| layer.name == "a").expect("a layer");
        let holds = |cat| outer.test.holds(cat, "f", IoCat::Other);
        assert!(holds("a") && holds("a.b") && !holds("ab"));
    }
}
