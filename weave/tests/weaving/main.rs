//! Woven programs: beginnings, ends, names and nesting for every way out of a function, at every level of optimisation, with every major
//! of LLVM that there is a plugin for. Run by `tools/weave.sh --test`.

mod toolchain;

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use toolchain::{Toolchain, expectations, program, run, succeed, toolchains};

/// How a scenario ends: its exit code, or 128 and the signal.
fn outcome(scenario: &str) -> i32 {
    match scenario {
        "exits" => 3,
        "dies" => 4,
        "aborts" | "terminates" => 128 + 6,
        "traps" => 128 + 4,
        _ => 0,
    }
}

/// `timeout` tells a signal of its child by its exit code, or dies of the same one.
fn has_outcome(status: ExitStatus, scenario: &str) -> bool {
    status.code().or(status.signal().map(|signal| 128 + signal)) == Some(outcome(scenario))
}

/// Runs all scenarios of a program whose first source has the expectations.
fn check(toolchain: &Toolchain, sources: &[&str], flags: &[&str]) {
    let built = toolchain.build(sources, flags);
    check_built(toolchain, &built, sources[0], flags);
}

fn check_built(toolchain: &Toolchain, built: &Path, source: &str, flags: &[&str]) {
    for (scenario, expected) in expectations(source, toolchain.major) {
        let (printed, status) = run(built, &scenario, &[]);
        let about = format!("clang {} {flags:?} {source} {scenario}", toolchain.major);
        assert_eq!(printed, expected, "{about}: {status}");
        assert!(has_outcome(status, &scenario), "{about}: {status}");
    }
}

fn check_ways_out(flags: &[&str]) {
    for toolchain in &toolchains() {
        check(toolchain, &["ways_out.cpp"], flags);
        check(toolchain, &["ways_out.c", "defined_here.c"], flags);
    }
}

#[test]
fn without_optimisation() {
    check_ways_out(&["-O0"]);
}

#[test]
fn without_optimisation_for_debuggers() {
    check_ways_out(&["-O0", "-g"]);
}

#[test]
fn optimised() {
    check_ways_out(&["-O2"]);
}

#[test]
fn optimised_for_debuggers() {
    check_ways_out(&["-O2", "-g"]);
}

#[test]
fn optimised_little() {
    check_ways_out(&["-O1"]);
}

#[test]
fn optimised_much() {
    check_ways_out(&["-O3"]);
}

#[test]
fn optimised_for_size() {
    check_ways_out(&["-Os"]);
    check_ways_out(&["-Oz"]);
}

#[test]
fn only_the_beginning_of_a_coroutine_is_woven() {
    for toolchain in &toolchains() {
        for flags in [&["-O0"][..], &["-O2"], &["-O2", "-g"]] {
            check(toolchain, &["coroutine.cpp"], flags);
        }
    }
}

#[test]
fn exceptions_through_c_and_functions_of_headers() {
    for toolchain in &toolchains() {
        for flags in [&["-O0", "-fexceptions"][..], &["-O2", "-fexceptions"]] {
            check(toolchain, &["mixed.cpp", "second.cpp", "mixed.c"], flags);
        }
    }
}

#[test]
fn programs_that_are_not_position_independent() {
    for toolchain in &toolchains() {
        let object = toolchain.path("fixed.o");
        toolchain.weave("ways_out.c", &["-O2", "-fno-pie"], &object);
        let other = toolchain.path("other.o");
        toolchain.weave("defined_here.c", &["-O2", "-fno-pie"], &other);
        let built = toolchain.path("fixed");
        toolchain.link(&[object, other], &["-no-pie"], &built);
        check_built(toolchain, &built, "ways_out.c", &["-fno-pie"]);
    }
}

#[test]
fn nothing_is_told_while_nothing_is_recorded() {
    for toolchain in &toolchains() {
        let built = toolchain.build(&["ways_out.cpp"], &["-O2"]);
        for (scenario, _) in expectations("ways_out.cpp", toolchain.major) {
            let (printed, status) = run(&built, &scenario, &[("RUNTIME_OFF", "1")]);
            assert_eq!(printed, "", "{scenario}");
            assert!(has_outcome(status, &scenario), "{scenario}: {status}");
        }
    }
}

/// Objects of bitcode, linked by this LLVM's own linker.
fn check_link_time(mode: &str) {
    for toolchain in &toolchains() {
        let flags = ["-O2", mode];
        let object = toolchain.path("bitcode.o");
        toolchain.weave("ways_out.cpp", &flags, &object);
        let object_path = object.to_str().expect("a path").to_owned();
        toolchain.run_tool("opt", &["-passes=verify", "-disable-output", &object_path]);
        let built = toolchain.path("linked");
        let linker = format!("-fuse-ld=/usr/lib/llvm-{}/bin/ld.lld", toolchain.major);
        toolchain.link(&[object], &[mode, "-O2", &linker], &built);
        check_built(toolchain, &built, "ways_out.cpp", &flags);
    }
}

#[test]
fn link_time_optimisation() {
    check_link_time("-flto");
}

#[test]
fn thin_link_time_optimisation() {
    check_link_time("-flto=thin");
}

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[test]
fn what_is_woven_is_not_woven_again() {
    for toolchain in &toolchains() {
        let bitcode = toolchain.path("once.bc");
        toolchain.weave("ways_out.c", &["-O0", "-emit-llvm"], &bitcode);
        let again = |passes: &str| {
            let output = toolchain.path("again.ll");
            let (bitcode, output_path) = (bitcode.to_str().expect("a path"), output.to_str().expect("a path"));
            let plugin = format!("-load-pass-plugin={}", toolchain.plugin());
            toolchain.run_tool("opt", &[&plugin, &format!("-passes={passes}"), "-S", bitcode, "-o", output_path]);
            std::fs::read_to_string(output).expect("a module")
        };
        let (once, twice) = (again("verify"), again("weft-weave,verify"));
        let calls = |text: &str| (count(text, "@weft_weave_begin("), count(text, "@weft_weave_end("));
        assert_eq!(calls(&once), calls(&twice), "clang {}", toolchain.major);
        assert!(calls(&once).0 > 10, "{:?}", calls(&once));
    }
}

#[test]
fn ends_have_the_lines_of_the_ways_out() {
    for toolchain in &toolchains() {
        let text = toolchain.text_of("ways_out.c", &["-O0", "-g"]);
        let function = text
            .split("\ndefine ")
            .find(|part| part.lines().next().is_some_and(|line| line.contains("@multi(")))
            .expect("multi");
        let mut lines: Vec<&str> = function
            .lines()
            .filter(|line| {
                line.contains("call") && (line.contains("@weft_weave_end(") || line.contains("@weft_weave_begin("))
            })
            .map(|line| {
                let number = line.rsplit("!dbg !").next().expect("a location").trim();
                let place = format!("\n!{number} = !DILocation(line: ");
                text.split(&place).nth(1).expect("a line").split(',').next().expect("a number")
            })
            .collect();
        lines.sort_unstable();
        lines.dedup();
        let source = std::fs::read_to_string(program("ways_out.c")).expect("a program");
        let line_of = |part: &str| source.lines().position(|line| line.contains(part)).expect("a line") + 1;
        // All returns of a function without optimisation meet at its closing brace.
        let expected =
            [line_of("static int multi(int a) {").to_string(), (line_of("static int multi(int a) {") + 3).to_string()];
        assert_eq!(lines, expected, "clang {}", toolchain.major);
    }
}

#[test]
fn rules_weave_what_nobody_annotated() {
    for toolchain in &toolchains() {
        let rules = toolchain.path("weft.weave.toml");
        let text = "exclude = [\"main\"]\n[[weave]]\nfunctions = [\"codec::*\", \"annotated\"]\nexclude = [\"*_fast\"]\ncategory = \"c\"\n";
        std::fs::write(&rules, text).expect("rules");
        let option = format!("-weft-weave-rules={}", rules.display());
        let step = "+codec::step [c] -codec::step";
        let expected = format!("+codec::decode [c] {step} {step} {step} -codec::decode >annotated(before,NA,NA)");
        for level in ["-O0", "-O2"] {
            let built = toolchain.build(&["unannotated.cpp"], &[level, "-mllvm", &option]);
            let (printed, status) = run(&built, "", &[("RUNTIME_NO_LINES", "1")]);
            assert_eq!(printed, expected, "clang {} {level}: {status}", toolchain.major);
        }
    }
}

#[test]
fn every_large_function_is_woven() {
    for toolchain in &toolchains() {
        // `step` has fewer instructions than this, `main` and `decode` more; `never_woven` says that it wants no instrumentation.
        let built = toolchain.build(&["unannotated.cpp"], &["-O0", "-g", "-mllvm", "-weft-weave-all=12"]);
        let (printed, status) = run(&built, "", &[]);
        let expected = "+main +codec::decode -codec::decode >annotated(before,NA,NA) -main";
        assert_eq!(printed, expected, "clang {}: {status}", toolchain.major);
    }
}

#[test]
fn wrong_options_stop_the_compiler() {
    for toolchain in &toolchains() {
        let rules = toolchain.path("weft.weave.toml");
        std::fs::write(&rules, "[[weave]]\nfunctions = [\"f\"]\npointcut = \"arond\"\n").expect("rules");
        let check = |option: &str, part: &str| {
            let source = program("unannotated.cpp");
            let mut command = toolchain.with_plugin(&source, "libweft_weave.so");
            let output =
                command.args(["-mllvm", option, "-c", "-o", "/dev/null"]).arg(&source).output().expect("clang");
            let printed = String::from_utf8_lossy(&output.stderr);
            assert!(
                !output.status.success() && printed.contains("error: ") && printed.contains(part),
                "{option}: {printed}"
            );
        };
        check("-weft-weave-abi=caliper", "-weft-weave-abi is weft or perfflow, not \"caliper\"");
        check("-weft-weave-rules=/no/such/file", "/no/such/file");
        check(&format!("-weft-weave-rules={}", rules.display()), "a pointcut is one of before");
    }
}

#[test]
fn misspelt_annotations_are_warned_of() {
    for toolchain in &toolchains() {
        for flags in [&["-O0"][..], &["-O2", "-g"]] {
            let printed = toolchain.weave("misspelt.cpp", flags, &toolchain.path("misspelt.o"));
            let about = format!("clang {} {flags:?}: {printed}", toolchain.major);
            for (line, part) in [
                (4, "\"@critcal_path()\" is ignored: `@critical_path(...)` is meant"),
                (5, "pointcut cannot be 'arond'"),
                (6, "`(` is missing after `@critical_path`"),
                (7, "only functions can be woven"),
            ] {
                let place = format!("misspelt.cpp:{line}:");
                let is_it = |text: &str| text.contains(&place) && text.contains("warning: ") && text.contains(part);
                assert!(printed.lines().any(is_it), "{place} {part}: {about}");
            }
            assert_eq!(count(&printed, "warning: "), 4, "{about}");
        }
        let source = program("misspelt.cpp");
        let mut command = toolchain.with_plugin(&source, "libweft_weave.so");
        let output = command.args(["-Werror", "-c", "-o", "/dev/null"]).arg(&source).output().expect("clang");
        assert!(!output.status.success(), "-Werror makes them errors");
    }
}

#[test]
fn code_of_devices_is_left_alone() {
    for toolchain in &toolchains() {
        for target in ["nvptx64-nvidia-cuda", "amdgcn-amd-amdhsa"] {
            let flags = ["-O1", "-target", target, "-nogpulib", "-Wno-unused-command-line-argument"];
            let text = toolchain.text_of("device.c", &flags);
            assert!(text.contains("@on_device") && !text.contains("weft_"), "clang {} {target}", toolchain.major);
        }
        let text = toolchain.text_of("device.c", &["-O1"]);
        assert!(text.contains("@weft_weave_begin("), "clang {}: the host's is woven", toolchain.major);
    }
}

#[test]
fn the_old_name_means_the_old_interface() {
    let around = "(0,NA,NA,around)";
    for toolchain in &toolchains() {
        let source = program("ways_out.cpp");
        let built: Vec<PathBuf> = [("libWeavePass.so", None), ("libweft_weave.so", Some("-weft-weave-abi=perfflow"))]
            .into_iter()
            .map(|(name, option)| {
                let (object, built) =
                    (toolchain.path(&format!("{name}.o")), toolchain.path(&format!("{name}.program")));
                let mut command = toolchain.with_plugin(&source, name);
                if let Some(option) = option {
                    command.args(["-mllvm", option]);
                }
                succeed(command.args(["-O2", "-c"]).arg(&source).arg("-o").arg(&object));
                toolchain.link(&[object], &[], &built);
                built
            })
            .collect();
        for built in &built {
            let check = |scenario: &str, expected: &str| {
                let (printed, status) = run(built, scenario, &[]);
                assert_eq!(printed, expected, "clang {} {}: {status}", toolchain.major, built.display());
            };
            check(
                "nested",
                &format!("B:_Z5outeri{around} B:_ZL5inneri{around} E:_ZL5inneri{around} E:_Z5outeri{around}"),
            );
            check(
                "through",
                &format!("B:_Z4passi{around} B:_Z7throweri{around} E:_Z7throweri{around} E:_Z4passi{around}"),
            );
            check("exits", &format!("B:_Z6exiteri{around} E:_Z6exiteri{around}"));
            check("fails", &format!("B:_Z6faileri{around} E:_Z6faileri{around}"));
            check(
                "flows",
                "B:_Z4f_inv(0,NA,in,around) E:_Z4f_inv(0,NA,NA,around) B:_Z5f_outv(0,x,out,before) \
                 B:_Z7f_inoutv(0,NA,inout,around) E:_Z7f_inoutv(0,NA,inout,around) E:_Z7f_outinv(0,NA,outin,after)",
            );
            check(
                "pointcuts",
                "B:_Z8p_beforev(0,NA,NA,before) E:_Z7p_afterv(0,NA,NA,after) B:_Z14p_before_asyncv(1,s1,NA,before_async) \
                 E:_Z13p_after_asyncv(1,s1,NA,after_async) B:_Z14p_around_asyncv(1,s2,NA,around_async) \
                 E:_Z14p_around_asyncv(1,s2,NA,around_async)",
            );
        }
    }
}
