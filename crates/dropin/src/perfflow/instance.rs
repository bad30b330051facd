//! The instance path: the nested jobs in which a process runs.

use sha1_smol::Sha1;

/// Hands the path on to children, whose own job comes behind it.
pub const INSTANCE_VARIABLE: &str = "PERFFLOW_INSTANCE_PATH";

/// Flux: the job, and the broker that started the process.
const FLUX: [&str; 2] = ["FLUX_JOB_ID", "FLUX_URI"];
/// Slurm: job and step.
const SLURM: [&str; 2] = ["SLURM_JOB_ID", "SLURM_STEP_ID"];
/// LSF: job and process.
const LSF: [&str; 2] = ["LSB_JOBID", "LS_JOBPID"];
/// Variables of resource managers that the path is made of.
pub const JOB_VARIABLES: [[&str; 2]; 3] = [FLUX, SLURM, LSF];

/// The path of a process with this environment; the front-end sets [`INSTANCE_VARIABLE`] to it for children.
pub fn instance_path(variable: &dyn Fn(&str) -> Option<String>) -> String {
    let own = variable(FLUX[0]).unwrap_or_else(|| {
        let both = |[job, step]: [&str; 2]| Some(format!("{}.{}", variable(job)?, variable(step)?));
        // A job of Slurm is not asked whether it is one of LSF as well.
        let foreign = match variable(SLURM[0]) {
            Some(_) => both(SLURM),
            None => both(LSF),
        };
        short_hash(&foreign.or_else(|| variable(FLUX[1]).map(|uri| broker_directory(&uri))).unwrap_or("1".to_owned()))
    });
    match variable(INSTANCE_VARIABLE) {
        Some(outer) => format!("{outer}.{own}"),
        None => own,
    }
}

/// The directory in the path of a URI, without scheme, host and query.
fn broker_directory(uri: &str) -> String {
    let rest = uri.split_once(':').map_or(uri, |(_, rest)| rest);
    let path = match rest.strip_prefix("//") {
        Some(rest) => rest.find('/').map_or("", |at| &rest[at..]),
        None => rest,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    match path.rsplit_once('/') {
        Some(("", _)) => "/".to_owned(),
        Some((directory, _)) => directory.trim_end_matches('/').to_owned(),
        None => String::new(),
    }
}

/// The first eight hexadecimal digits of a text's SHA-1.
fn short_hash(text: &str) -> String {
    Sha1::from(text).digest().to_string()[..8].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(environment: &[(&str, &str)], expected: &str) {
        let lookup =
            |name: &str| environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        assert_eq!(instance_path(&lookup), expected, "{environment:?}");
    }

    #[test]
    fn jobs_have_paths() {
        // `printf 1 | sha1sum`, `printf 123456.1 | sha1sum`, `printf /run/flux | sha1sum`
        check(&[], "356a192b");
        check(&[("SLURM_JOB_ID", "123456"), ("SLURM_STEP_ID", "1")], "90effdba");
        check(&[("LSB_JOBID", "123456"), ("LS_JOBPID", "1")], "90effdba");
        check(&[("SLURM_JOB_ID", "123456")], "356a192b");
        check(&[("SLURM_JOB_ID", "9"), ("LSB_JOBID", "123456"), ("LS_JOBPID", "1")], "356a192b");
        check(&[("FLUX_JOB_ID", "ƒeF9QZG3")], "ƒeF9QZG3");
        check(&[("FLUX_URI", "local:///run/flux/local")], "d60ad3a5");
        check(&[("FLUX_URI", "ssh://host/run/flux/local?x=1")], "d60ad3a5");
        check(&[("PERFFLOW_INSTANCE_PATH", "fff.444"), ("FLUX_JOB_ID", "12")], "fff.444.12");
    }

    #[test]
    fn directories_of_brokers() {
        for (uri, expected) in [
            ("local:///run/flux/local", "/run/flux"),
            ("local:///local", "/"),
            ("ssh://host", ""),
            ("/run/x/y", "/run/x"),
        ] {
            assert_eq!(broker_directory(uri), expected, "{uri}");
        }
    }
}
