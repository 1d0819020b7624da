#pragma once
/// OpenBLAS maps a buffer for each product that runs at the same time, and keeps it. If the mapping
/// fails, it tries again for ever, so under a limit of the address space (RLIMIT_AS, `ulimit -v`)
/// heed tries the mapping first.
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstddef>
#include <mutex>

#include "autograd/base/error.h"

namespace heed {

/// The size of a buffer in bytes (BUFFER_SIZE in OpenBLAS's common_x86_64.h and common_arm64.h).
inline constexpr std::size_t blas_buffer_bytes = std::size_t{128} << 20;

/// The limit of the address space in bytes; RLIM_INFINITY: none.
inline rlim_t address_space_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_AS, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

/// Exists while a product runs.
class BlasBuffer {
 public:
  /// Throws Error(io) if OpenBLAS needs another buffer and the limit does not permit it.
  BlasBuffer() {
    if (!limited()) return;
    const std::lock_guard lock(mutex_);
    if (running_ == mapped_) {
      void* const buffer = ::mmap(nullptr, blas_buffer_bytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (buffer == MAP_FAILED) {
        throw Error(Exit::io,
                    "OpenBLAS needs {} MiB for each thread, and has {} such buffers, but the limit "
                    "of the address space does not permit another: raise it (ulimit -v), or lower "
                    "the config key threads",
                    blas_buffer_bytes >> 20, mapped_);
      }
      ::munmap(buffer, blas_buffer_bytes);
      ++mapped_;
    }
    ++running_;
  }
  ~BlasBuffer() {
    if (!limited()) return;
    const std::lock_guard lock(mutex_);
    --running_;
  }
  BlasBuffer(const BlasBuffer&) = delete;
  BlasBuffer& operator=(const BlasBuffer&) = delete;

 private:
  static bool limited() {
    static const bool is_limited = address_space_limit() != RLIM_INFINITY;
    return is_limited;
  }
  static inline std::mutex mutex_;
  static inline std::size_t running_ = 0, mapped_ = 0;  ///< products, and buffers for them
};

}  // namespace heed
