#pragma once

namespace heed {

/// heed's version, the compiler and its flags, as the build defines them.
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
