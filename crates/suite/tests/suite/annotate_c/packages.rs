//! The installation itself: found by pkg-config and CMake, compiled by every compiler and standard, exporting what it should.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use weftline_testkit::Scratch;
use weftline_testkit::compile::sources;
use weftline_testkit::product::workspace;
use weftline_testkit::run::Job;

use super::installed::{Against, prefix, program, run};

const C: [&[&str]; 8] = [
    &["gcc", "-std=c99"],
    &["gcc", "-std=gnu99"],
    &["gcc", "-std=c11"],
    &["gcc", "-std=gnu17"],
    &["clang", "-std=c99"],
    &["clang", "-std=gnu99"],
    &["clang", "-std=c11"],
    &["clang", "-std=gnu17"],
];
const CPP: [&[&str]; 8] = [
    &["g++", "-std=c++11"],
    &["g++", "-std=c++14"],
    &["g++", "-std=c++17"],
    &["g++", "-std=c++20"],
    &["clang++", "-std=c++11"],
    &["clang++", "-std=c++14"],
    &["clang++", "-std=c++17"],
    &["clang++", "-std=c++20"],
];

/// Compiles and runs the program, which must succeed without any recorder.
fn check(source: &str, compilers: &[&[&str]], against: Against, arguments: &[&str]) {
    for compiler in compilers {
        let scratch = Scratch::new("compilers");
        let program = program(source, compiler, against);
        let command = std::iter::once(program.to_str().expect("UTF-8")).chain(arguments.iter().copied());
        let outcome = Job::new(command, &scratch.dir("work")).run();
        assert_eq!(outcome.status, 0, "{source} by {compiler:?}: {}", String::from_utf8_lossy(&outcome.stderr));
    }
}

#[test]
fn weft_h_by_every_compiler() {
    check("weft_tour.c", &C, Against::Weft, &["scopes"]);
}

/// The same header in C++, without weft.hpp.
#[test]
fn weft_h_in_cpp() {
    let as_cpp: [&[&str]; 2] = [&["g++", "-std=c++11", "-x", "c++"], &["clang++", "-std=c++20", "-x", "c++"]];
    let as_cpp = as_cpp.map(|command| [command, &["-Wno-variadic-macros"]].concat());
    check("weft_headers.c", &as_cpp.each_ref().map(Vec::as_slice), Against::Weft, &[]);
}

#[test]
fn weft_hpp_by_every_compiler() {
    check("weft_tour.cpp", &CPP, Against::Weft, &[]);
}

#[test]
fn dftracer_h_by_every_compiler() {
    check("dftracer_tour.c", &C, Against::Dftracer, &["fini"]);
    check("dftracer_tour.cpp", &CPP, Against::Dftracer, &[]);
}

#[test]
fn archive_in_c_and_cpp() {
    check("weft_tour.c", &C[..1], Against::WeftArchive, &["events"]);
    check("weft_tour.cpp", &CPP[..1], Against::WeftArchive, &[]);
}

/// A program that needs neither the loader nor a C library on disk.
#[test]
fn archive_in_a_static_program() {
    let gcc: [&[&str]; 1] = [&["gcc", "-std=gnu11", "-static", "-Wl,--no-warnings", "-static-libgcc"]];
    let scratch = Scratch::new("static");
    let output = scratch.join("tour");
    let prefix = prefix();
    let mut command = Command::new(gcc[0][0]);
    command.args(&gcc[0][1..3]).arg(sources().join("annotate/weft_tour.c")).arg("-o").arg(&output);
    command.arg(format!("-I{}", prefix.join("include").display())).arg(prefix.join("lib/libweft.a"));
    command.args(["-lgcc_eh", "-lpthread", "-lm", "-ldl"]);
    run(&mut command);
    for part in ["scopes", "values", "events", "across", "threads", "signals"] {
        let outcome = Job::new([output.as_os_str(), part.as_ref()], &scratch.dir("work")).run();
        assert_eq!(outcome.status, 0, "{part}: {}", String::from_utf8_lossy(&outcome.stderr));
    }
}

/// The flags of pkg-config are all that a build needs, and all that the program needs to start; they say the product's version.
#[test]
fn pkg_config() {
    check_pkg_config(prefix());
    let flags = ask_pkg_config(prefix(), &["--static", "--libs", "weft"]);
    assert!(flags.iter().any(|flag| flag == "-ldl"), "{flags:?}");
}

/// The same below an installed Python package.
#[test]
fn pkg_config_of_the_python_package() {
    check_pkg_config(&python_package());
}

/// `weftline` in the virtual environment that `make test` makes.
fn python_package() -> PathBuf {
    let given = std::env::var_os("WEFT_PACKAGE").map_or_else(|| workspace().join("target/venv-package"), PathBuf::from);
    let places = fs::read_dir(given.join("lib"))
        .unwrap_or_else(|error| panic!("{}: {error}; `make test` makes it", given.display()));
    let mut found = places.flatten().map(|python| python.path().join("site-packages/weftline"));
    found.find(|package| package.is_dir()).unwrap_or_else(|| panic!("{} has no weftline", given.display()))
}

fn ask_pkg_config(prefix: &Path, arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.args(arguments).env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    run(&mut command).split_whitespace().map(str::to_owned).collect()
}

fn check_pkg_config(prefix: &Path) {
    let scratch = Scratch::new("pkg-config");
    let ask = |arguments: &[&str]| ask_pkg_config(prefix, arguments);
    assert_eq!(ask(&["--modversion", "weft"]), [env!("CARGO_PKG_VERSION")]);
    for (package, source, arguments) in [
        ("weft", "weft_tour.c", &["scopes"][..]),
        ("weft-dftracer", "dftracer_tour.c", &["fini"]),
        ("weft-perfflow", "woven.c", &["nothing"]),
    ] {
        let output = scratch.join(package);
        let mut compile = Command::new("gcc");
        compile.arg("-o").arg(&output).arg(sources().join("annotate").join(source));
        compile.arg("-pthread").args(ask(&["--cflags", "--libs", package]));
        run(&mut compile);
        // Where the loader looks for libraries is said by nobody but the program itself: `Job` removes LD_LIBRARY_PATH.
        let outcome = Job::new([output.to_str().expect("UTF-8")].iter().chain(arguments), &scratch.dir("work")).run();
        assert_eq!(outcome.status, 0, "{package}: {}", String::from_utf8_lossy(&outcome.stderr));
    }
}

/// `find_package(dftracer)` finds the stand-in where it is named, with the versions that DFTracer's own package would take; found by chance it stands aside.
#[test]
fn cmake_as_dftracer() {
    for installed in [prefix().to_owned(), python_package()] {
        let scratch = Scratch::new("cmake-dftracer");
        let source = scratch.dir("source");
        let tour = sources().join("annotate/dftracer_tour.c");
        let configure = |name: &str, asked: &str, options: &[String]| {
            let lists = format!(
                "cmake_minimum_required(VERSION 3.10)\nproject(user C)\nfind_package(dftracer {asked})\n\
                 add_executable(by_target {0})\ntarget_link_libraries(by_target dftracer::dftracer_core)\n\
                 add_executable(by_list {0})\ntarget_link_libraries(by_list ${{DFTRACER_LIBRARIES}})\n\
                 file(WRITE ${{CMAKE_BINARY_DIR}}/said \"${{DFTRACER_VERSION}} ${{DFTRACER_INCLUDE_DIRS}} ${{DFTRACER_LIBRARY_DIRS}}\")\n",
                tour.display()
            );
            fs::write(source.join("CMakeLists.txt"), lists).expect("written");
            let build = scratch.dir(name);
            let mut command = Command::new("cmake");
            command.arg("-S").arg(&source).arg("-B").arg(&build).args(options);
            let done = command.output().expect("cmake");
            let text = [done.stdout, done.stderr].concat();
            (build, done.status.success(), String::from_utf8_lossy(&text).into_owned())
        };
        let here = installed.display();
        let named = [format!("-DCMAKE_PREFIX_PATH={here}")];
        let (build, fine, said) = configure("build", "REQUIRED", &named);
        assert!(fine, "{said}");
        let compat = format!("{here}/lib/weftline/compat");
        assert_eq!(
            fs::read_to_string(build.join("said")).expect("said"),
            format!("4.3.0 {compat}/include {compat}/lib")
        );
        run(Command::new("cmake").arg("--build").arg(&build));
        for program in ["by_target", "by_list"] {
            let mut job =
                Job::new([build.join(program).as_os_str(), "fini".as_ref()], &scratch.dir(&format!("work-{program}")));
            job.environment.push(("DFTRACER_ENABLE".into(), Some("1".into())));
            let outcome = job.run();
            assert_eq!(outcome.status, 0, "{program}: {}", String::from_utf8_lossy(&outcome.stderr));
            let traced = |path: &PathBuf| path.to_string_lossy().ends_with(".pfw.gz");
            assert!(outcome.files.keys().any(traced), "{program}: {:?}", outcome.files.keys());
        }
        for (number, (asked, options, expected)) in [
            ("4.3.0 EXACT REQUIRED", named.to_vec(), true),
            ("4.0 REQUIRED", named.to_vec(), true),
            ("4.3.99 EXACT REQUIRED", named.to_vec(), false),
            ("4.4.0 REQUIRED", named.to_vec(), false),
            ("5.0 REQUIRED", named.to_vec(), false),
            ("3.9.9 REQUIRED", named.to_vec(), false),
            ("REQUIRED", vec![format!("-Ddftracer_ROOT={here}"), "-DCMAKE_POLICY_DEFAULT_CMP0074=NEW".into()], true),
            ("REQUIRED", vec![format!("-Ddftracer_DIR={here}/lib/cmake/dftracer")], true),
            // As below /usr/local, which CMake looks into by itself.
            ("REQUIRED", vec![format!("-DCMAKE_SYSTEM_PREFIX_PATH={here}")], false),
        ]
        .into_iter()
        .enumerate()
        {
            let (_, fine, said) = configure(&format!("asked-{number}"), asked, &options);
            assert_eq!(fine, expected, "{asked} {options:?}: {said}");
        }
    }
}

/// `find_package(Weft)` and its targets.
#[test]
fn cmake() {
    let scratch = Scratch::new("cmake");
    let source = scratch.dir("source");
    let programs = sources().join("annotate");
    let lists = format!(
        "cmake_minimum_required(VERSION 3.10)\n\
         project(user C CXX)\n\
         find_package(Weft 0.1 REQUIRED)\n\
         find_package(Weft 0.1.0 EXACT REQUIRED)\n\
         find_package(Weft 0.2 QUIET)\n\
         if(Weft_FOUND)\n  message(FATAL_ERROR \"another version was taken\")\nendif()\n\
         find_package(Weft REQUIRED)\n\
         find_package(Threads REQUIRED)\n\
         link_libraries(Threads::Threads)\n\
         add_executable(in_c {0}/weft_tour.c)\n\
         target_link_libraries(in_c Weft::weft)\n\
         add_executable(in_cpp {0}/weft_tour.cpp)\n\
         target_link_libraries(in_cpp Weft::weft)\n\
         add_executable(whole {0}/weft_tour.c)\n\
         target_link_libraries(whole Weft::weft_static)\n\
         add_executable(for_dftracer {0}/dftracer_tour.c)\n\
         target_link_libraries(for_dftracer Weft::dftracer_core)\n\
         add_executable(for_perfflow {0}/woven.c)\n\
         target_link_libraries(for_perfflow Weft::perfflow_runtime)\n",
        programs.display()
    );
    fs::write(source.join("CMakeLists.txt"), lists).expect("written");
    let build = scratch.dir("build");
    let found = format!("-DCMAKE_PREFIX_PATH={}", prefix().display());
    run(Command::new("cmake").arg("-S").arg(&source).arg("-B").arg(&build).arg(found));
    run(Command::new("cmake").arg("--build").arg(&build));
    for (name, argument) in
        [("in_c", "scopes"), ("in_cpp", ""), ("whole", "scopes"), ("for_dftracer", "fini"), ("for_perfflow", "nothing")]
    {
        let outcome = Job::new([build.join(name).as_os_str(), argument.as_ref()], &scratch.dir("work")).run();
        assert_eq!(outcome.status, 0, "{name}: {}", String::from_utf8_lossy(&outcome.stderr));
    }
}

/// There is no caller who could catch a panic: what programs call all the time cannot reach one, whatever the arguments.
#[test]
fn hot_functions_cannot_panic() {
    let weft = ["begin", "end", "tell", "int", "uint", "double", "bool", "bytes", "is_on", "new_id"];
    let weft = weft.map(|name| format!("weft_{name}"));
    check_panics("libweft.so", &weft.each_ref().map(String::as_str));
}

/// Follows all calls and jumps from `functions`, direct ones and those by an address that the loader fills in.
fn check_panics(library: &str, functions: &[&str]) {
    let path = prefix().join("lib").join(library);
    let relocations = run(Command::new("readelf").arg("-rW").arg(&path));
    let code = run(Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(&path));
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    // Where an address is kept, and the address.
    let kept: HashMap<u64, u64> = relocations
        .lines()
        .filter_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
            [place, _, kind, address] if kind.contains("RELATIVE") => {
                Some((hexadecimal(place)?, hexadecimal(address)?))
            }
            _ => None,
        })
        .collect();
    let mut names: HashMap<u64, &str> = HashMap::new();
    let mut targets: HashMap<&str, Vec<u64>> = HashMap::new();
    let mut current = "";
    for line in code.lines() {
        if let Some((address, name)) = line.strip_suffix(">:").and_then(|line| line.split_once(" <")) {
            current = name;
            names.extend(hexadecimal(address).map(|address| (address, name)));
        } else if line.contains("call") || line.contains("jmp") {
            // `call 49a10 <f>`, or `call *0x3a(%rip)  # 4cd28 <g>` with the address at 4cd28.
            let target = line.rsplit_once(" <").and_then(|(before, _)| hexadecimal(before.rsplit(' ').next()?));
            let target =
                target.map(|target| if line.contains('#') { kept.get(&target).copied().unwrap_or(0) } else { target });
            targets.entry(current).or_default().extend(target);
        }
    }
    for function in functions {
        assert!(targets.contains_key(function), "{library} has no {function}, or it calls nothing");
        let (mut reached, mut next) = (vec![*function], 0);
        while let Some(from) = reached.get(next).copied() {
            next += 1;
            for to in targets.get(from).into_iter().flatten().filter_map(|target| names.get(target)) {
                // What a function of the C interface calls when something below it unwinds: nothing does, or another panic is reached.
                if to.contains("panic_cannot_unwind") {
                    continue;
                }
                assert!(!to.contains("panic"), "{library}: {function} may reach {to}, by {from}");
                if !reached.contains(to) {
                    reached.push(to);
                }
            }
        }
    }
}

/// Nothing but the interface is visible: another name could be somebody else's function.
#[test]
fn exports() {
    let recorder = "weft_recorder_v1";
    let weft = [
        "weft_begin",
        "weft_bool",
        "weft_bytes",
        "weft_double",
        "weft_end",
        "weft_int",
        "weft_is_on",
        "weft_new_id",
        recorder,
        "weft_session_v1",
        "weft_start",
        "weft_stop",
        "weft_tell",
        "weft_uint",
        "weft_weave_begin",
        "weft_weave_end",
        "weft_weave_enter",
        "weft_weave_leave",
        "weft_weave_thrown",
    ];
    let dftracer = [
        "finalize",
        "finalize_region",
        "finalize_region_cleanup",
        "initialize_main",
        "initialize_no_bind",
        "initialize_region",
        "mark_used",
        "set_app_metadata_int",
        "set_app_metadata_string",
        "update_metadata_int",
        "update_metadata_int_type",
        "update_metadata_string",
        "update_metadata_string_type",
        recorder,
    ];
    let perfflow = ["perfflow_weave_after", "perfflow_weave_before", recorder];
    for (library, expected, soname) in [
        ("libweft.so", &weft[..], "libweft.so.0"),
        ("weftline/compat/lib/libdftracer_core.so", &dftracer, "libdftracer_core.so.4.3.0"),
        ("weftline/compat/lib/libdftracer_preload.so", &dftracer, "libdftracer_core.so.4.3.0"),
        ("weftline/compat/lib/libperfflow_runtime.so", &perfflow, "libperfflow_runtime.so"),
    ] {
        let path = prefix().join("lib").join(library);
        let symbols = run(Command::new("nm").args(["-D", "--defined-only", "-P"]).arg(&path));
        let found: Vec<&str> = symbols.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(found, expected, "{library}");
        let headers = run(Command::new("objdump").arg("-p").arg(&path));
        let named = headers.lines().find_map(|line| line.trim().strip_prefix("SONAME")).map(str::trim);
        assert_eq!(named, Some(soname), "{library}");
    }
}
