#pragma once
/// Large blocks of memory, shared by all threads. They are allocated by best fit, cut to size, and
/// merged with free neighbours (D. Knuth, The Art of Computer Programming 1, section 2.5, boundary
/// tags), so that batches of one size reuse the memory that batches of other sizes have freed.
/// Nothing is returned to the system.
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "autograd/memory/block.h"

HEED_BEGIN

struct MemoryCounters {
  std::int64_t system_allocations = 0;  ///< number of requests to the system
  std::int64_t system_bytes = 0;        ///< bytes obtained from the system
  std::int64_t live_bytes = 0;          ///< bytes of the blocks in use
  std::int64_t peak_bytes = 0;          ///< maximum of live_bytes since the last reset
};

class Heap {
 public:
  Heap() = default;
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  ~Heap() = delete;  ///< threads that end after main may still return blocks

  /// A block of at least `bytes` bytes, uninitialised, with one reference. Throws Error(Exit::io)
  /// if the system has no more memory.
  Block* allocate(std::size_t bytes);
  void release(Block* block) noexcept;
  MemoryCounters counters();
  void reset_peak();  ///< resets the peak to live_bytes

 private:
  // Four lists per power of two. Every block in a list is large enough for any request that belongs
  // to a lower list.
  static constexpr std::size_t bins = 4 * 48;
  static std::size_t bin_of(std::size_t bytes);
  void list(Block* block);    ///< adds a free block to its list
  void unlist(Block* block);  ///< removes a block from its list
  Block* best_fit(std::size_t bytes);
  void grow(std::size_t bytes);
  /// Returns the last `bytes` bytes of an unlisted free block and lists the rest; if the rest is
  /// small, returns the whole block.
  Block* cut(Block* block, std::size_t bytes);

  std::mutex mutex_;
  std::array<Block*, bins> free_{};
  Block* lowest_ = nullptr;  ///< first block of the memory last obtained from the system
  MemoryCounters counters_;
};

HEED_END
