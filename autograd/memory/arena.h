#pragma once
/// Reusable memory, from which allocate_block takes blocks. Training requests the same sizes at
/// every step; the arena keeps freed blocks, so after the first steps no memory is requested from
/// the system.
///
/// Each thread has an arena for small blocks: free lists by size class (four classes per power
/// of two). A block freed by another thread returns to its original arena, so memory does not
/// migrate between threads and the peak does not grow. Large blocks belong to the heap (heap.h).
#include "autograd/base/scoped_value.h"
#include "autograd/memory/heap.h"

HEED_BEGIN

/// Sums over all threads. All memory that the arenas hold for small blocks counts as in use.
MemoryCounters arena_counters();
void arena_reset_peak();  ///< resets the peak to the memory in use

/// While an instance is alive, new blocks of this thread, and so new arrays, are filled with a
/// distinctive NaN instead of arbitrary memory contents, so that a checker detects values that are
/// read but were never written.
class PoisonNewBlocks {
 public:
  /// True for the NaN of new blocks and for results of arithmetic with it.
  static bool is_poison(real value);

  static inline thread_local bool active = false;

 private:
  ScopedValue<bool> scope_{active, true};
};

// ---- former names, for one release ---------------------------------------------------------

template <class T>
using ArenaAllocator [[deprecated("use BlockAllocator")]] = BlockAllocator<T>;
[[deprecated("use allocate_block")]] inline Block* arena_allocate(std::size_t bytes) {
  return allocate_block(bytes);
}
[[deprecated("use release_block")]] inline void arena_release(Block* block) noexcept {
  release_block(block);
}
using PoisonNewArrays [[deprecated("use PoisonNewBlocks")]] = PoisonNewBlocks;

HEED_END
