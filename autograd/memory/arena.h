#pragma once
/// Reusable memory. Training requests the same sizes at every step; the arena keeps freed blocks,
/// so after the first steps no memory is requested from the system.
///
/// Each thread has an arena for small blocks: free lists by size class (four classes per power
/// of two). A block freed by another thread returns to its original arena, so memory does not
/// migrate between threads and the peak does not grow. Large blocks belong to the heap (heap.h).
#include <cstddef>
#include <cstdint>

#include "autograd/memory/block.h"

HEED_BEGIN

/// A block of at least `bytes` bytes, uninitialised, with one reference. Throws Error(Exit::io) if
/// the system has no more memory.
Block* arena_allocate(std::size_t bytes);
/// Frees a block, from any thread. Its reference count is ignored.
void arena_release(Block* block) noexcept;
/// Sums over all threads. All memory that the arenas hold for small blocks counts as in use.
MemoryCounters arena_counters();
void arena_reset_peak();  ///< resets the peak to the memory in use

/// Lets standard containers use the arena.
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
