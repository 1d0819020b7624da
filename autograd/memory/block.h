#pragma once
/// The header of a block of memory, and memory counters.
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "autograd/base/real.h"

HEED_BEGIN

class Arena;

/// Directly precedes the memory that it describes, which is aligned to 64 bytes.
struct alignas(64) Block {
  std::atomic<std::int64_t> references{1};
  Arena* home = nullptr;         ///< the arena that this block belongs to; nullptr: the heap
  Block* next = nullptr;         ///< the next block of a free list
  Block* previous = nullptr;     ///< heap only: the previous block of a free list
  Block* below = nullptr;        ///< heap only: the block that ends where this one begins
  std::size_t bytes = 0;         ///< size including this header; unused in an arena
  std::uint32_t size_class = 0;  ///< arena only
  bool free = false;             ///< heap only
  std::atomic<std::uint32_t> version{0};  ///< version of the values: see Array::version

  void* memory() { return this + 1; }
  static Block* of(void* memory) { return static_cast<Block*>(memory) - 1; }
};

struct MemoryCounters {
  std::int64_t system_allocations = 0;  ///< number of requests to the system
  std::int64_t system_bytes = 0;        ///< bytes obtained from the system
  std::int64_t live_bytes = 0;          ///< bytes of the blocks in use
  std::int64_t peak_bytes = 0;          ///< maximum of live_bytes since the last reset
};

HEED_END
