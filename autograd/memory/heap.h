#pragma once
/// Large blocks of memory, shared by all threads: best fit, cut to size, and joined again with free
/// neighbours (D. Knuth, The Art of Computer Programming 1, section 2.5, boundary tags), so that
/// batches whose sizes always differ find what other sizes have left. Nothing goes back to the system.
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "autograd/memory/block.h"

HEED_BEGIN

struct HeapCounters {
  std::int64_t system_allocations = 0;  ///< times that the system was asked for more
  std::int64_t system_bytes = 0;        ///< held from the system
  std::int64_t live_bytes = 0;          ///< in blocks that are in use
  std::int64_t peak_bytes = 0;          ///< the most that have been since forget_peak()
};

class Heap {
 public:
  Heap() = default;
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  ~Heap() = delete;  ///< blocks may come back from threads that end after main

  /// A block for `bytes` bytes, not initialised, with one reference. Throws Error(Exit::io) when the
  /// system has no more.
  Block* allocate(std::size_t bytes);
  void release(Block* block) noexcept;
  HeapCounters counters();
  void forget_peak();  ///< the peak is what is live now

 private:
  // Four lists per power of two. All blocks of a list fit where a block of a lower list was asked for.
  static constexpr std::size_t bins = 4 * 48;
  static std::size_t bin_of(std::size_t bytes);
  void list(Block* block);    ///< as free
  void unlist(Block* block);  ///< as in use
  Block* best_fit(std::size_t bytes);
  void grow(std::size_t bytes);
  /// Takes the end of a free block that is in no list, and lists the rest.
  Block* cut(Block* block, std::size_t bytes);

  std::mutex mutex_;
  std::array<Block*, bins> free_{};
  Block* lowest_ = nullptr;  ///< at the begin of the memory the system gave last
  HeapCounters counters_;
};

HEED_END
