// Every way into and out of a C++ function. `//= SCENARIO [clang >= N]: words` says what the runtime (runtime.c) must hear; the program runs
// the scenario that its argument names.
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <string>

#define A(text) __attribute__((annotate(text)))
#define W A("@critical_path()")
#define P(keys) A("@critical_path(" keys ")")
#define OUTLINE __attribute__((noinline))

static volatile int zero = 0;

//= returns: +multi -multi +multi -multi +multi -multi
W int multi(int a) {
    if (a == 1) return 10;
    if (a == 2) return 20;
    return 30;
}
static void returns() { zero = multi(1) - multi(2) + multi(3) - 20; }

//= nested: +outer +inner -inner -outer
W static inline int inner(int a) { return a + 1; }
W int outer(int a) { return inner(a) * 2; }
static void nested() { zero = outer(-1); }

//= forced: +forced_outer +forced_inner -forced_inner -forced_outer
W __attribute__((always_inline)) inline int forced_inner(int a) { return a * 3; }
W int forced_outer(int a) { return forced_inner(a); }
static void forced() { zero = forced_outer(0); }

//= recursion: +rec +rec +rec -rec -rec -rec
W int rec(int n) { return n ? rec(n - 1) + 1 : 0; }
static void recursion() { zero = rec(2) - 2; }

//= tail_recursion: +sum +sum +sum -sum -sum -sum
W int sum(int n, int so_far) { return n ? sum(n - 1, so_far + n) : so_far; }
static void tail_recursion() { zero = sum(2, 0) - 3; }

//= throws: +thrower !thrower
W OUTLINE void thrower(int n) {
    if (n >= 0) throw n;
}
static void throws() {
    try {
        thrower(zero);
    } catch (int) {
    }
}

//= through: +pass +thrower !thrower !pass
W int pass(int n) {
    thrower(n);
    return 2;
}
static void through() {
    try {
        pass(zero);
    } catch (int) {
    }
}

//= returns_after_calls: +pass +thrower -thrower -pass
static void returns_after_calls() { zero = pass(zero - 1) - 2; }

struct Guard {
    int *at;
    ~Guard() { ++*at; }
};
static int guarded;

//= cleans: +with_cleanup +thrower !thrower !with_cleanup
W void with_cleanup(int n) {
    Guard guard{&guarded};
    thrower(n);
    guarded += 10;
}
static void cleans() {
    try {
        with_cleanup(zero);
    } catch (int) {
    }
    if (guarded != 1) abort();
}

//= catches: +catcher +thrower !thrower -catcher
W int catcher(int n) {
    try {
        thrower(n);
    } catch (int) {
        return 1;
    }
    return 2;
}
static void catches() {
    if (catcher(zero) != 1) abort();
}

//= selective: +wrong_catcher +thrower !thrower !wrong_catcher
W int wrong_catcher(int n) {
    try {
        thrower(n);
    } catch (long) {
        return 1;
    }
    return 2;
}
static void selective() {
    try {
        wrong_catcher(zero);
        abort();
    } catch (int) {
    }
}

//= rethrows: +rethrower +thrower !thrower !rethrower
W void rethrower(int n) {
    try {
        thrower(n);
    } catch (...) {
        throw;
    }
}
static void rethrows() {
    try {
        rethrower(zero);
        abort();
    } catch (int) {
    }
}

//= terminates: +never_throws +thrower !thrower -never_throws
W OUTLINE void never_throws(int n) noexcept { thrower(n); }
static void terminates() { never_throws(zero); }

//= throws_string: +golden !golden
W void golden(int n) {
    std::string text(n + 1, 'x');
    if (n > 3) throw text;
}
static void throws_string() {
    try {
        golden(zero + 5);
        abort();
    } catch (const std::string &) {
    }
}

//= library_throws: +library !library
W char library(const std::string &text, unsigned at) { return text.at(at); }
static void library_throws() {
    try {
        library("a", zero + 7);
        abort();
    } catch (...) {
    }
}

//= exits: +exiter -exiter
W void exiter(int n) {
    std::string text("k");
    if (n == 0) exit(3);
}
static void exits() { exiter(zero); }

//= aborts: +aborter -aborter
W void aborter() { abort(); }
static void aborts() { aborter(); }

//= traps: +trapper -trapper
W void trapper() { __builtin_trap(); }
static void traps() { trapper(); }

//= indirect: +caller_of_pointer -caller_of_pointer
__attribute__((noreturn)) OUTLINE void leave(int code) { _Exit(code); }
typedef void (*Leaver)(int) __attribute__((noreturn));
volatile Leaver pointer = reinterpret_cast<Leaver>(leave);
W int caller_of_pointer(int a) {
    if (a == 0) pointer(a);
    return a;
}
static void indirect() { caller_of_pointer(zero); }

//= dies: +dier -dier
[[noreturn]] OUTLINE void die(const std::string &) { exit(4); }
W void dier(int n) {
    std::string text(n + 1, 'x');
    die(text + "!");
}
static void dies() { dier(zero); }

//= fails: +failer -failer
[[noreturn]] OUTLINE void fail(const std::string &why) { throw why; }
W void failer(int n) {
    std::string text(n + 1, 'x');
    fail(text + "!");
}
static void fails() {
    try {
        failer(zero);
    } catch (const std::string &) {
    }
}

//= survives: +survivor -survivor
W int survivor(int n) {
    try {
        fail(std::string(n + 1, 'x'));
    } catch (const std::string &why) {
        return int(why.size()) - 1;
    }
}
static void survives() { zero = survivor(zero); }

//= unreachable: +switcher -switcher
W int switcher(int a) {
    switch (a) {
        case 0: return 3;
        case 2: return 4;
        default: __builtin_unreachable();
    }
}
static void unreachable() { zero = switcher(zero) - 3; }

//= endless: +until_thrown +thrower -thrower +thrower !thrower !until_thrown
W void until_thrown() {
    for (int n = -1;; ++n) thrower(n);
}
static void endless() {
    try {
        until_thrown();
    } catch (int) {
    }
}

//= glued: +glued_caller -glued_caller +glued_callee -glued_callee
W OUTLINE int glued_callee(int a) { return a; }
W int glued_caller(int a) { [[clang::musttail]] return glued_callee(a); }
static void glued() { zero = glued_caller(zero); }

//= thread: +thread_body +thread_end -thread_end !thread_body
W OUTLINE void thread_end(void *value) { pthread_exit(value); }
W void *thread_body(void *value) {
    thread_end(value);
    return nullptr;
}
static void thread() {
    pthread_t made;
    int given = 0;
    void *value = nullptr;
    pthread_create(&made, nullptr, thread_body, &given);
    pthread_join(made, &value);
    if (value != &given) abort();
}

//= jumps: +between +jumper -jumper
static jmp_buf target;
W OUTLINE void jumper() { longjmp(target, 1); }
W OUTLINE void between() {
    jumper();
    zero = 9;
}
static void jumps() {
    if (!setjmp(target)) between();
}

//= names: +S::fixed -S::fixed +tfun<int> -tfun<int> +tfun<double> -tfun<double> +ns::inl -ns::inl +K::v -K::v +K::operator() -K::operator() +K::operator_bool -K::operator_bool +operator+ -operator+ +(anonymous_namespace)::hidden -(anonymous_namespace)::hidden +(anonymous_namespace)::thidden<void_(*)(int)> -(anonymous_namespace)::thidden<void_(*)(int)> +cfun -cfun
struct S {
    W static int fixed(int a) { return a + 1; }
};
template <class T>
W T tfun(T a) {
    return a + 1;
}
namespace ns {
W static inline int inl(int a) { return a * 2; }
}
struct K {
    virtual ~K() {}
    W virtual void v() { zero = 0; }
    W int operator()(int a) { return a; }
    W operator bool() const { return zero == 0; }
};
W K &operator+(K &left, int) { return left; }
namespace {
W int hidden(int a) { return a; }
template <class T>
W int thidden(T) {
    return 0;
}
}  // namespace
extern "C" W int cfun(int a) { return a; }
static void names() {
    S::fixed(1);
    tfun(1);
    tfun(2.5);
    ns::inl(3);
    K k;
    k.v();
    k(1);
    if (!bool(k)) abort();
    k + 1;
    hidden(1);
    thidden<void (*)(int)>(nullptr);
    cfun(1);
}

//= lambdas: +lambdas()::$_0::operator() -lambdas()::$_0::operator()
static void lambdas() {
    auto lambda = [](int a) W { return a; };
    zero = lambda(0);
}

//= makers clang >= 19: +Made::Made -Made::Made +Made::~Made -Made::~Made
//= makers clang < 19:
struct Made {
    W Made() { zero = 0; }
    W ~Made() { zero = 0; }
};
static void makers() { Made made; }

//= pointcuts: >p_before(before,NA,NA) <p_after(after,NA,NA) >p_before_async(before_async,s1,NA) <p_after_async(after_async,s1,NA) >p_around_async(around_async,s2,NA) <p_around_async(around_async,s2,NA)
P("pointcut='before'") void p_before() { zero = 0; }
P("pointcut='after'") void p_after() { zero = 0; }
P("pointcut='before_async', scope='s1'") void p_before_async() { zero = 0; }
P("pointcut='after_async', scope='s1'") void p_after_async() { zero = 0; }
P("pointcut='around_async', scope='s2'") void p_around_async() { zero = 0; }
static void pointcuts() {
    p_before();
    p_after();
    p_before_async();
    p_after_async();
    p_around_async();
}

//= after_thrown: +thrower !thrower <p_after_pass(after,NA,NA)
P("pointcut='after'") void p_after_pass(int n) { thrower(n); }
static void after_thrown() {
    try {
        p_after_pass(zero);
    } catch (int) {
    }
}

//= flows: >f_in(around,NA,in) <f_in(around,NA,in) >f_out(before,x,out) >f_inout(around,NA,inout) <f_inout(around,NA,inout) <f_outin(after,NA,outin)
P("flow='in'") void f_in() { zero = 0; }
P("flow='out', pointcut='before', scope='x'") void f_out() { zero = 0; }
P("flow='inout'") void f_inout() { zero = 0; }
P("pointcut='after', flow='outin'") void f_outin() { zero = 0; }
static void flows() {
    f_in();
    f_out();
    f_inout();
    f_outin();
}

//= annotations: >twice(before,x,NA) <dup(after,NA,NA) +redecl -redecl +proto_only -proto_only +both -both >merged(before,m,NA)
A("other") OUTLINE void other() { zero = 0; }
A("suppress warnings about X") OUTLINE void words() { zero = 0; }
A("@critical_path(pointcut='before') @critical_path(scope='x')") void twice() { zero = 0; }
A("@critical_path(pointcut='before', pointcut='after')") void dup() { zero = 0; }
A("@critical_path()") void redecl();
A("@critical_path()") void redecl() { zero = 0; }
A("@critical_path()") void proto_only();
void proto_only() { zero = 0; }
A("@critical_path()") void elsewhere();
A("other") A("@critical_path()") void both() { zero = 0; }
A("@critical_path(pointcut='before')") A("@critical_path(scope='m')") void merged() { zero = 0; }
static void annotations() {
    other();
    words();
    twice();
    dup();
    redecl();
    proto_only();
    both();
    merged();
}

//= attributes: +pure -pure +plain -plain +cold -cold
__attribute__((const)) W OUTLINE int pure(int a) { return a * a; }
__attribute__((optnone, noinline)) W int plain(int a) { return a + 1; }
__attribute__((cold, minsize)) W int cold(int a) { return a + 1; }
static void attributes() {
    zero = pure(zero);
    zero = plain(zero - 1);
    zero = cold(zero - 1);
}

//= variadic: +sum_of -sum_of
W int sum_of(int count, ...) {
    __builtin_va_list list;
    __builtin_va_start(list, count);
    int sum = 0;
    while (count--) sum += __builtin_va_arg(list, int);
    __builtin_va_end(list);
    return sum;
}
static void variadic() {
    if (sum_of(3, 1, 2, 3) != 6) abort();
}

//= variable_array: +with_array -with_array
W int with_array(int n) {
    int array[n];
    memset(array, 1, sizeof array);
    return array[n - 1];
}
static void variable_array() {
    if (with_array(zero + 3) != 0x01010101) abort();
}

struct Scenario {
    const char *name;
    void (*run)();
};
#define S(name) {#name, name}
static const Scenario scenarios[] = {
    S(returns), S(nested), S(forced), S(recursion), S(tail_recursion), S(throws), S(through), S(returns_after_calls), S(cleans), S(catches), S(selective),
    S(rethrows), S(terminates), S(throws_string), S(library_throws), S(exits), S(aborts), S(traps), S(indirect), S(dies),
    S(fails), S(survives), S(unreachable), S(endless), S(glued), S(thread), S(jumps), S(names), S(lambdas), S(makers),
    S(pointcuts), S(after_thrown), S(flows), S(annotations), S(attributes), S(variadic), S(variable_array),
};

int main(int, char **arguments) {
    for (const Scenario &scenario : scenarios) {
        if (!strcmp(scenario.name, arguments[1])) {
            scenario.run();
            return 0;
        }
    }
    return 99;
}
