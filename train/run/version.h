#pragma once

namespace heed {

/// From the build: heed's version, the compiler and its flags.
#ifdef HEED_VERSION
inline constexpr const char* version = HEED_VERSION;
inline constexpr const char* flags = HEED_FLAGS;
#else
inline constexpr const char* version = "unknown";
inline constexpr const char* flags = "unknown";
#endif
#ifdef __clang__
inline constexpr const char* compiler = "clang " __clang_version__;
#else
inline constexpr const char* compiler = "gcc " __VERSION__;
#endif

}  // namespace heed
