/*
 * Functions of every kind that `weft weave` weaves. The first argument chooses a part; what must be in the trace is said in
 * tests/suite/annotate_c/weave.rs.
 */
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#define WEAVE(text) __attribute__((noinline, annotate("@critical_path(" text ")")))

/* Keeps a call where it stands. */
#define HERE __asm__ volatile("" ::: "memory")

namespace {

WEAVE("") void hidden() { HERE; }

WEAVE("pointcut='around'") int descend(int depth) { return depth ? descend(depth - 1) + 1 : 0; }

WEAVE("") void throws() { throw std::runtime_error("on purpose"); }

WEAVE("") void passes() { throws(); }

WEAVE("") void catches() {
    try {
        passes();
    } catch (const std::exception &) {
    }
}

WEAVE("pointcut='before'") void opens() { HERE; }
WEAVE("pointcut='after'") void closes() { HERE; }
WEAVE("pointcut='before_async', scope='job'") void submits() { HERE; }
WEAVE("pointcut='after_async', scope='job'") void completes() { HERE; }
WEAVE("pointcut='around_async', scope='task'") void task() { HERE; }
WEAVE("flow='out'") void produces() { HERE; }
WEAVE("flow='in'") void consumes() { HERE; }

WEAVE("") void leaf() { HERE; }
WEAVE("") void work() { leaf(); }

std::jmp_buf back;
bool is_armed = true;
__attribute__((noinline)) void leap() {
    if (is_armed) std::longjmp(back, 1);
}
/* Left without a word: the compiler does not see that leap() never comes back. */
WEAVE("") void jumped_over() { leap(); }

WEAVE("") pid_t forks() { return fork(); }

void basic() {
    hidden();
    descend(3);
    catches();
}

void lone() {
    opens();
    closes();
}

void async() {
    submits();
    std::thread(completes).join();
    task();
}

void flows() {
    produces();
    std::thread(consumes).join();
}

void threads() {
    std::vector<std::thread> all;
    for (int i = 0; i < 8; i++) {
        all.emplace_back([] {
            for (int round = 0; round < 500; round++) work();
        });
    }
    for (std::thread &one : all) one.join();
}

void jumping() {
    if (!setjmp(back)) jumped_over();
    leaf();
}

void forking() {
    pid_t child = forks();
    leaf();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
}

}  // namespace

int main(int argc, char **argv) {
    const char *part = argc > 1 ? argv[1] : "";
    const struct {
        const char *name;
        void (*run)();
    } parts[] = {{"basic", basic},     {"lone", lone},       {"async", async},    {"flows", flows},
                 {"threads", threads}, {"jumping", jumping}, {"forking", forking}};
    for (const auto &one : parts) {
        if (!std::strcmp(one.name, part)) {
            one.run();
            return 0;
        }
    }
    std::fprintf(stderr, "no part is called %s\n", part);
    return 2;
}
