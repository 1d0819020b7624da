#pragma once
/// The sanitizers of a build. clang reports them by __has_feature, g++ by macros.

namespace heed {

#if defined(__has_feature)
#define HEED_HAS_FEATURE(name) __has_feature(name)
#else
#define HEED_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || HEED_HAS_FEATURE(address_sanitizer)
constexpr bool address_sanitizer = true;
#else
constexpr bool address_sanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__) || HEED_HAS_FEATURE(thread_sanitizer)
constexpr bool thread_sanitizer = true;
#else
constexpr bool thread_sanitizer = false;
#endif

#undef HEED_HAS_FEATURE

}  // namespace heed
