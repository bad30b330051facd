// Every way into and out of a C function; see ways_out.cpp for the comments that say what is expected.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define A(text) __attribute__((annotate(text)))
#define W A("@critical_path()")
#define OUTLINE __attribute__((noinline))

static volatile int zero = 0;

//= returns: +multi -multi +multi -multi
W static int multi(int a) {
    if (a == 1) return 10;
    return 30;
}
static void returns(void) { zero = 3 * multi(1) - multi(2); }

//= exits: +exiter -exiter
W void exiter(int n) {
    if (n == 0) exit(3);
}
static void exits(void) { exiter(zero); }

//= quits: +quitter -quitter
W void quitter(int n) { _exit(n); }
static void quits(void) { quitter(zero); }

//= aborts: +aborter -aborter
W void aborter(void) { abort(); }
static void aborts(void) { aborter(); }

//= indirect: +caller_of_pointer -caller_of_pointer
static void leave(int code) { exit(code); }
static void (*volatile pointer)(int) = leave;
W int caller_of_pointer(int a) {
    if (a == 0) {
        pointer(a);
        __builtin_unreachable();
    }
    return a;
}
static void indirect(void) { caller_of_pointer(zero); }

//= unreachable: +switcher -switcher
W int switcher(int a) {
    switch (a) {
        case 0: return 3;
        default: __builtin_unreachable();
    }
}
static void unreachable(void) { zero = switcher(zero) - 3; }

//= glued: +glued_caller -glued_caller +glued_callee -glued_callee
W OUTLINE int glued_callee(int a) { return a; }
W int glued_caller(int a) { __attribute__((musttail)) return glued_callee(a); }
static void glued(void) { zero = glued_caller(zero); }

//= thread: +thread_end -thread_end
W OUTLINE void *thread_end(void *value) { pthread_exit(value); }
static void thread(void) {
    pthread_t made;
    pthread_create(&made, 0, thread_end, 0);
    pthread_join(made, 0);
}

//= jumps: +jumper -jumper
static jmp_buf target;
W OUTLINE void jumper(void) { longjmp(target, 1); }
static void jumps(void) {
    if (!setjmp(target)) jumper();
}

//= same_frame: +jumps_to_itself +jumper -jumper -jumps_to_itself
W int jumps_to_itself(void) {
    if (!setjmp(target)) jumper();
    return 1;
}
static void same_frame(void) {
    if (jumps_to_itself() != 1) abort();
}

//= naked:
W __attribute__((naked)) OUTLINE int no_frame(void) { __asm__("xorl %eax, %eax\n\tretq"); }
static void naked(void) { zero = no_frame(); }

//= resolved: +chosen -chosen
W OUTLINE int chosen(int a) { return a; }
W static int (*choose(void))(int) { return chosen; }
int by_ifunc(int a) __attribute__((ifunc("choose")));
static void resolved(void) { zero = by_ifunc(zero); }

//= available: +defined_here -defined_here
extern __inline __attribute__((gnu_inline)) W int defined_here(int a) { return a + 1; }
static void available(void) { zero = defined_here(zero - 1); }

//= assembly: +with_assembly -with_assembly +with_goto -with_goto
W int with_assembly(int a) {
    __asm__ volatile("nop");
    return a;
}
W int with_goto(int a) {
    __asm__ goto("nop" : : : : out);
    return a;
out:
    return 1;
}
static void assembly(void) { zero = with_assembly(zero) + with_goto(zero); }

//= alias: +original -original
W int original(int a) { return a; }
int second_name(int a) __attribute__((alias("original")));
static void alias(void) { zero = second_name(zero); }

struct scenario {
    const char *name;
    void (*run)(void);
};
#define S(name) {#name, name}
static const struct scenario scenarios[] = {
    S(returns), S(exits), S(quits), S(aborts), S(indirect), S(unreachable), S(glued),    S(thread),
    S(jumps),   S(same_frame), S(naked), S(resolved), S(available), S(assembly), S(alias),
};

int main(int count, char **arguments) {
    for (unsigned i = 0; count > 1 && i < sizeof scenarios / sizeof *scenarios; ++i) {
        if (!strcmp(scenarios[i].name, arguments[1])) {
            scenarios[i].run();
            return 0;
        }
    }
    return 99;
}
