#pragma once

namespace heed {

/// heed's version, the flags of the build, and the compiler.
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
