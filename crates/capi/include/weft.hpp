// weft.hpp: weft.h for C++11 and later, with RAII and arguments of any simple type. Header only.
//
//     #include <weft.hpp>
//
//     void load(const std::string &path, std::size_t index) {
//         WEFT_SPAN(span, "load");                     // a weft::Span: ends with its block, by an exception as well
//         span.arg("path", path).arg("index", index);
//         weft::Counter("queue").arg("length", 3);     // values as they are now
//         weft::Instant("cache miss").arg("key", path);
//         ...
//     }
//
// The macros of weft.h are there as well, made of weft::Span: WEFT_SCOPE, WEFT_FUNCTION and their _CAT forms. A span that an
// exception ends says so in the argument `error`.
#ifndef WEFT_HPP
#define WEFT_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>

#include "weft.h"

namespace weft {

/// Whether anything is recorded now.
inline bool is_on() noexcept { return weft_is_on() != 0; }

namespace detail {

inline int exceptions_in_flight() noexcept {
#if defined(__cpp_lib_uncaught_exceptions)
    return std::uncaught_exceptions();
#else
    return std::uncaught_exception() ? 1 : 0;
#endif
}

/// Types that are text: std::string, std::string_view, and other types with data() and size().
template <class T>
auto is_text(int) -> std::integral_constant<
    bool, std::is_convertible<decltype(std::declval<const T &>().data()), const char *>::value &&
              std::is_convertible<decltype(std::declval<const T &>().size()), std::size_t>::value>;
template <class T>
std::false_type is_text(...);

template <class T>
struct is_signed : std::integral_constant<bool, std::is_integral<T>::value && std::is_signed<T>::value> {};
template <class T>
struct is_unsigned : std::integral_constant<bool, std::is_integral<T>::value && std::is_unsigned<T>::value &&
                                                      !std::is_same<T, bool>::value> {};

}  // namespace detail

/// An open event; it is recorded, with its kind, when it is destroyed.
template <weft_kind kind>
class Event {
   public:
    /// At a place of the program, usually a static variable.
    explicit Event(weft_site &site) noexcept { begin(&site); }

    /// With a name that is made at run time; the strings are copied.
    explicit Event(const char *name, const char *category = WEFT_CATEGORY) noexcept {
        weft_site site = WEFT_SITE(name, category);
        begin(&site);
    }

    Event(const Event &) = delete;
    Event &operator=(const Event &) = delete;

    ~Event() { end(); }

    /// Whether it is recorded.
    bool is_on() const noexcept { return span_.opaque[0] != 0; }

    /// Ends it before the end of its block.
    void end() noexcept {
        if (!is_on()) return;
        if (kind == WEFT_KIND_SPAN) {
            if (detail::exceptions_in_flight() > exceptions_) weft_str(&span_, "error", "exception");
            weft_end(&span_);
        } else {
            weft_tell(&span_, kind, 0);
        }
    }

    /// For the functions of weft.h.
    weft_span *get() noexcept { return &span_; }

    Event &arg(const char *key, bool value) noexcept {
        weft_bool(&span_, key, value);
        return *this;
    }

    Event &arg(const char *key, char value) noexcept {
        weft_bytes(&span_, key, &value, 1);
        return *this;
    }

    template <class T>
    typename std::enable_if<detail::is_signed<T>::value, Event &>::type arg(const char *key, T value) noexcept {
        weft_int(&span_, key, static_cast<std::int64_t>(value));
        return *this;
    }

    template <class T>
    typename std::enable_if<detail::is_unsigned<T>::value, Event &>::type arg(const char *key, T value) noexcept {
        weft_uint(&span_, key, static_cast<std::uint64_t>(value));
        return *this;
    }

    template <class T>
    typename std::enable_if<std::is_floating_point<T>::value, Event &>::type arg(const char *key, T value) noexcept {
        weft_double(&span_, key, static_cast<double>(value));
        return *this;
    }

    template <class T>
    typename std::enable_if<std::is_enum<T>::value, Event &>::type arg(const char *key, T value) noexcept {
        return arg(key, static_cast<typename std::underlying_type<T>::type>(value));
    }

    Event &arg(const char *key, const char *text) noexcept {
        if (is_on()) weft_str(&span_, key, text);
        return *this;
    }

    Event &arg(const char *key, std::nullptr_t) noexcept {
        weft_bytes(&span_, key, nullptr, 0);
        return *this;
    }

    template <class T>
    typename std::enable_if<decltype(detail::is_text<T>(0))::value, Event &>::type arg(const char *key,
                                                                                       const T &text) noexcept {
        // An empty view may point nowhere; it is a text all the same.
        if (is_on()) weft_bytes(&span_, key, text.size() ? text.data() : "", text.size());
        return *this;
    }

   private:
    void begin(weft_site *site) noexcept {
        weft_begin(&span_, site);
        if (kind == WEFT_KIND_SPAN && is_on()) exceptions_ = detail::exceptions_in_flight();
    }

    weft_span span_;
    int exceptions_ = 0;
};

/// A span on the thread's stack, from its construction to the end of its block.
using Span = Event<WEFT_KIND_SPAN>;
/// Something that happened now: `weft::Instant("cache miss").arg("key", key);`
using Instant = Event<WEFT_KIND_INSTANT>;
/// Values as they are now: `weft::Counter("queue").arg("length", queue.size());`
using Counter = Event<WEFT_KIND_COUNTER>;
/// Metadata of the process: `weft::Meta("model").arg("name", "unet3d").arg("layers", 23);`
using Meta = Event<WEFT_KIND_META>;

}  // namespace weft

#undef WEFT_SPAN_CAT
/// A weft::Span called `span`, from here to the end of the enclosing block.
#define WEFT_SPAN_CAT(span, name, category)                                     \
    static weft_site WEFT_JOIN_(span, _weft_site_) = WEFT_SITE(name, category); \
    ::weft::Span span(WEFT_JOIN_(span, _weft_site_))

#endif  // WEFT_HPP
