#pragma once
/// Memory that is used again. Training asks for the same sizes at every step; the arena keeps what
/// was given back, so after the first steps neither malloc nor the kernel is called.
///
/// Each thread has an arena of its own: free lists by size class (four classes per power of two).
/// A block that another thread gives back returns to the arena it came from, so memory does not
/// wander between threads and the peak does not creep.
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "autograd/real.h"

HEED_BEGIN

class Arena;

/// Stands 64 bytes before the memory it describes; the memory is aligned to 64 bytes.
struct alignas(64) Block {
  std::atomic<std::int64_t> references{1};
  Arena* home = nullptr;
  Block* next = nullptr;  ///< while in a free list
  std::uint32_t size_class = 0;

  void* memory() { return this + 1; }
  static Block* of(void* memory) { return static_cast<Block*>(memory) - 1; }
};

struct ArenaCounters {
  std::int64_t system_allocations = 0;  ///< blocks ever asked of the system, by all threads
  std::int64_t system_bytes = 0;        ///< held from the system now
};

/// At least `bytes` bytes, not initialised, with one reference. Throws Error(Exit::io) when the
/// system has no more.
Block* arena_allocate(std::size_t bytes);
/// Gives a block back, from any thread. Its reference count is not looked at.
void arena_release(Block* block) noexcept;
ArenaCounters arena_counters();

/// Lets standard containers live in the arena.
template <class T>
struct ArenaAllocator {
  using value_type = T;
  ArenaAllocator() = default;
  template <class U>
  ArenaAllocator(const ArenaAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(arena_allocate(n * sizeof(T))->memory()); }
  void deallocate(T* p, std::size_t) noexcept { arena_release(Block::of(p)); }
  template <class U>
  bool operator==(const ArenaAllocator<U>&) const {
    return true;
  }
};

HEED_END
