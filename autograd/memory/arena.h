#pragma once
/// Memory that is used again. Training asks for the same sizes at every step; the arena keeps what
/// was given back, so after the first steps neither malloc nor the kernel is called.
///
/// For small blocks each thread has an arena of its own: free lists by size class (four classes per
/// power of two). A block that another thread gives back returns to the arena it came from, so memory
/// does not wander between threads and the peak does not creep. Large blocks are the heap's (heap.h).
#include <cstddef>
#include <cstdint>

#include "autograd/memory/block.h"

HEED_BEGIN

struct ArenaCounters {
  std::int64_t system_allocations = 0;  ///< times that the system was asked, by all threads
  std::int64_t system_bytes = 0;        ///< held from the system now
  std::int64_t live_bytes = 0;          ///< in use now; of small blocks: what the arenas hold
  std::int64_t peak_bytes = 0;          ///< the most that was in use since arena_forget_peak()
};

/// At least `bytes` bytes, not initialised, with one reference. Throws Error(Exit::io) when the
/// system has no more.
Block* arena_allocate(std::size_t bytes);
/// Gives a block back, from any thread. Its reference count is not looked at.
void arena_release(Block* block) noexcept;
ArenaCounters arena_counters();
void arena_forget_peak();  ///< the peak is what is in use now

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
