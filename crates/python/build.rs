//! Tells the sources which Python they are compiled for: `cfg(Py_3_12)` and the like.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
