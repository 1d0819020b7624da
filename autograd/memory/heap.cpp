#include "autograd/memory/heap.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

#include "autograd/base/shape.h"

HEED_BEGIN

namespace {

constexpr std::size_t unit = sizeof(Block);  // block sizes are multiples of it
constexpr std::size_t smallest_rest = 4096;  // a smaller rest is not worth a separate block
constexpr std::size_t huge_page = 2u << 20;

std::byte* address(Block* block) { return reinterpret_cast<std::byte*>(block); }
Block* block_at(std::byte* where, std::size_t bytes, Block* below) {
  auto* block = new (where) Block;
  block->bytes = bytes;
  block->below = below;
  return block;
}
/// The block that begins where this one ends. Each contiguous region ends with a sentinel block of
/// 0 bytes.
Block* above(Block* block) { return reinterpret_cast<Block*>(address(block) + block->bytes); }

/// Maps `bytes` bytes of memory, aligned to a huge page, just below `next` if possible; returns
/// nullptr on failure.
std::byte* map(std::size_t bytes, std::byte* next) {
  const auto ask = [](std::byte* where, std::size_t n) {
    void* got = ::mmap(where, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return got == MAP_FAILED ? nullptr : static_cast<std::byte*>(got);
  };
  if (next != nullptr) {
    std::byte* const mapped = ask(next - bytes, bytes);
    if (mapped == next - bytes) return mapped;
    if (mapped != nullptr) ::munmap(mapped, bytes);
  }
  std::byte* const got = ask(nullptr, bytes + huge_page);
  if (got == nullptr) return nullptr;
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(got) % huge_page;
  if (before > 0) ::munmap(got, before);
  ::munmap(got + before + bytes, huge_page - before);
  return got + before;
}

}  // namespace

std::size_t Heap::bin_of(std::size_t bytes) {
  const std::size_t units = bytes / unit;
  const auto power = static_cast<std::size_t>(std::bit_width(units)) - 1;
  return 4 * power + (power < 2 ? 0 : units >> (power - 2) & 3);
}

void Heap::list(Block* block) {
  Block*& head = free_[bin_of(block->bytes)];
  block->free = true;
  block->previous = nullptr;
  block->next = head;
  if (head != nullptr) head->previous = block;
  head = block;
}

void Heap::unlist(Block* block) {
  block->free = false;
  (block->previous != nullptr ? block->previous->next : free_[bin_of(block->bytes)]) = block->next;
  if (block->next != nullptr) block->next->previous = block->previous;
}

Block* Heap::best_fit(std::size_t bytes) {
  for (std::size_t bin = bin_of(bytes); bin < bins; ++bin) {
    Block* best = nullptr;
    for (Block* block = free_[bin]; block != nullptr; block = block->next) {
      if (block->bytes >= bytes && (best == nullptr || block->bytes < best->bytes)) best = block;
    }
    if (best != nullptr) return best;
  }
  return nullptr;
}

Block* Heap::cut(Block* block, std::size_t bytes) {
  const std::size_t rest = block->bytes - bytes;
  if (rest < smallest_rest) return block;
  Block* const taken = block_at(address(block) + rest, bytes, block);
  above(taken)->below = taken;
  block->bytes = rest;
  list(block);
  return taken;
}

void Heap::grow(std::size_t bytes) {
  const auto pages = [](std::size_t n) { return (n + huge_page - 1) / huge_page * huge_page; };
  std::byte* const next = lowest_ == nullptr ? nullptr : address(lowest_);
  // Growing by an eighth wastes little and keeps requests to the system rare. Untouched memory is
  // not resident.
  std::size_t more =
      pages(std::max(bytes + unit, static_cast<std::size_t>(counters_.system_bytes) / 8));
  std::byte* memory = map(more, next);
  if (memory == nullptr) memory = map(more = pages(bytes + unit), next);
  if (memory == nullptr) throw Error(Exit::io, "out of memory: {} MiB more needed", more >> 20);
  ::madvise(memory, more, MADV_HUGEPAGE);  // a hint; refusal costs only speed
  ++counters_.system_allocations;
  counters_.system_bytes += static_cast<std::int64_t>(more);

  Block* block = nullptr;
  if (lowest_ != nullptr && memory + more == address(lowest_)) {
    block = block_at(memory, more, nullptr);
    if (lowest_->free) {
      unlist(lowest_);
      block->bytes += lowest_->bytes;
    }
  } else {
    block = block_at(memory, more - unit, nullptr);
    block_at(memory + more - unit, 0, nullptr);
  }
  above(block)->below = block;
  lowest_ = block;
  list(block);
}

Block* Heap::allocate(std::size_t bytes) {
  const std::size_t whole = (bytes + sizeof(Block) + unit - 1) / unit * unit;
  const std::lock_guard lock(mutex_);
  Block* found = best_fit(whole);
  if (found == nullptr) {
    grow(whole);
    found = best_fit(whole);
  }
  unlist(found);
  Block* const block = cut(found, whole);
  block->references.store(1, std::memory_order_relaxed);
  counters_.live_bytes += static_cast<std::int64_t>(block->bytes);
  counters_.peak_bytes = std::max(counters_.peak_bytes, counters_.live_bytes);
  return block;
}

void Heap::release(Block* block) noexcept {
  const std::lock_guard lock(mutex_);
  counters_.live_bytes -= static_cast<std::int64_t>(block->bytes);
  if (Block* const next = above(block); next->free) {
    unlist(next);
    block->bytes += next->bytes;
  }
  if (Block* const below = block->below; below != nullptr && below->free) {
    unlist(below);
    below->bytes += block->bytes;
    block = below;
  }
  above(block)->below = block;
  list(block);
}

MemoryCounters Heap::counters() {
  const std::lock_guard lock(mutex_);
  return counters_;
}

void Heap::reset_peak() {
  const std::lock_guard lock(mutex_);
  counters_.peak_bytes = counters_.live_bytes;
}

HEED_END
