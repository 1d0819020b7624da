#pragma once
/// A block of memory with a reference count, and the functions that allocate and release blocks.
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "autograd/base/real.h"

HEED_BEGIN

class Arena;

/// The header of a block, directly before its memory. Both are aligned to 64 bytes. Except for the
/// first and the last member, it serves memory/arena.cpp.
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

/// A block of at least `bytes` bytes, uninitialised, with one reference. Throws Error(Exit::io) if
/// the system has no more memory. Defined in the file that a program links, arena.cpp or
/// autograd/plain.cpp.
Block* allocate_block(std::size_t bytes);
/// Frees a block, from any thread. The caller has checked that no reference is left.
void release_block(Block* block) noexcept;

/// Lets containers take memory from the arena, as arrays do.
template <class T>
struct BlockAllocator {
  using value_type = T;
  BlockAllocator() = default;
  template <class U>
  BlockAllocator(const BlockAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(allocate_block(n * sizeof(T))->memory()); }
  void deallocate(T* p, std::size_t) noexcept { release_block(Block::of(p)); }
  template <class U>
  bool operator==(const BlockAllocator<U>&) const {
    return true;
  }
};

HEED_END
