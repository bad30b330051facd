// Only the part of a coroutine is woven that makes it and returns its object; see ways_out.cpp for the comments. The header <coroutine> of
// this libstdc++ does not know all clangs, so what they need is here.
#include <cstdlib>
#include <cstring>

namespace std {
template <class Result, class...>
struct coroutine_traits {
    using promise_type = typename Result::promise_type;
};
template <class Promise = void>
struct coroutine_handle {
    static coroutine_handle from_address(void *address) { return {address}; }
    void resume() const { __builtin_coro_resume(address); }
    void destroy() const { __builtin_coro_destroy(address); }
    bool done() const { return __builtin_coro_done(address); }
    static coroutine_handle from_promise(Promise &promise) {
        return {__builtin_coro_promise(reinterpret_cast<char *>(&promise), alignof(Promise), true)};
    }
    void *address;
};
template <>
struct coroutine_handle<void> {
    static coroutine_handle from_address(void *address) { return {address}; }
    template <class Promise>
    coroutine_handle(coroutine_handle<Promise> other) : address(other.address) {}
    coroutine_handle(void *address) : address(address) {}
    void *address;
};
struct suspend_always {
    bool await_ready() noexcept { return false; }
    void await_suspend(coroutine_handle<>) noexcept {}
    void await_resume() noexcept {}
};
struct suspend_never {
    bool await_ready() noexcept { return true; }
    void await_suspend(coroutine_handle<>) noexcept {}
    void await_resume() noexcept {}
};
}  // namespace std

template <class First, class Last>
struct Numbers {
    struct promise_type {
        int now = 0;
        Numbers get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this), this}; }
        First initial_suspend() noexcept { return {}; }
        Last final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(int value) {
            now = value;
            return {};
        }
        void return_void() {}
        void unhandled_exception() { abort(); }
    };
    std::coroutine_handle<promise_type> handle;
    promise_type *promise;
};

#define W __attribute__((annotate("@critical_path()")))
using Lazy = Numbers<std::suspend_always, std::suspend_always>;
using Eager = Numbers<std::suspend_never, std::suspend_never>;

W int inside(int value) { return value; }

//= lazy: +count -count +inside -inside +inside -inside
W Lazy count(int until) {
    for (int at = 0; at < until; ++at) co_yield inside(at);
}
static void lazy() {
    Lazy numbers = count(2);
    int sum = 0;
    for (numbers.handle.resume(); !numbers.handle.done(); numbers.handle.resume()) sum += numbers.promise->now;
    numbers.handle.destroy();
    if (sum != 1) abort();
}

//= eager: +at_once +inside -inside -at_once
W Eager at_once(int *to) {
    *to = inside(7);
    co_return;
}
static void eager() {
    int got = 0;
    at_once(&got);
    if (got != 7) abort();
}

int main(int, char **arguments) {
    if (!strcmp(arguments[1], "lazy")) lazy();
    else if (!strcmp(arguments[1], "eager")) eager();
    else return 99;
    return 0;
}
