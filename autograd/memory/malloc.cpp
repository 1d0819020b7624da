/// Blocks from the system, for programs that do not link the arena.
#include <new>

#include "autograd/base/shape.h"
#include "autograd/memory/block.h"

HEED_BEGIN

Block* allocate_block(std::size_t bytes) {
  void* const memory =
      ::operator new (sizeof(Block) + bytes, std::align_val_t{alignof(Block)}, std::nothrow);
  if (memory == nullptr) throw Error(Exit::io, fmt::format("out of memory: {} bytes", bytes));
  return new (memory) Block;
}

void release_block(Block* block) noexcept {
  ::operator delete (block, std::align_val_t{alignof(Block)});
}

HEED_END
