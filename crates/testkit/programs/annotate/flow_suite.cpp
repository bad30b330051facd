/*
 * The programs of PerfFlowAspect's own tests, in one: the first argument chooses a part. It is woven by `weft weave --abi perfflow`; what it must leave is
 * said in compat/tests/perfflow_suite/cases.json.
 */
#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>
#include <unistd.h>
#include <vector>

#define CRITICAL_PATH __attribute__((annotate("@critical_path(pointcut='around')")))

CRITICAL_PATH static void bas() { puts("bas"); }

CRITICAL_PATH static void bar() {
    puts("bar");
    usleep(1000);
    bas();
}

CRITICAL_PATH static int foo(const char *message) {
    puts("foo");
    usleep(1000);
    bar();
    return std::strcmp(message, "hello") == 0;
}

CRITICAL_PATH static void one() { puts("one"); }

CRITICAL_PATH static double roots(int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) sum += std::sqrt(i);
    return sum;
}

class Tested {
   public:
    CRITICAL_PATH void visible() {
        puts("visible");
        hidden();
    }

   private:
    CRITICAL_PATH void hidden() { puts("hidden"); }
};

int main(int argc, char **argv) {
    const char *part = argc > 1 ? argv[1] : "";
    if (std::strcmp(part, "smoke") == 0) {
        for (int i = 0; i < 4; i++) foo("hello");
    } else if (std::strcmp(part, "one") == 0) {
        one();
    } else if (std::strcmp(part, "compute") == 0) {
        printf("%g\n", roots(100000) + roots(1000));
    } else if (std::strcmp(part, "threads") == 0) {
        std::vector<std::thread> threads;
        for (int i = 0; i < 3; i++) threads.emplace_back(one);
        for (auto &thread : threads) thread.join();
    } else if (std::strcmp(part, "ranks") == 0) {
        foo("hello");
    } else if (std::strcmp(part, "class") == 0) {
        Tested().visible();
    } else {
        return 2;
    }
    return 0;
}
