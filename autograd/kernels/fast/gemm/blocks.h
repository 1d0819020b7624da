#pragma once
/// The order of a matrix product, whatever the type of the numbers: a packed block of op(B) remains in
/// the L2 cache, and the rows of op(A) by which it is multiplied remain in the L1 cache.
/// Sources: Goto and van de Geijn 2008, "Anatomy of High-Performance Matrix Multiplication"; Van Zee
/// and van de Geijn 2015, "BLIS", section 4.
#include <algorithm>
#include <cstdint>

#include "autograd/kernels/fast/gemm/product.h"

HEED_BEGIN
namespace kernels {

struct BlockSizes {
  std::int64_t rows, columns;            // of a block of op(A), of a block of op(B)
  std::int64_t packed_rows;              // the rows of op(A) that are packed together
  std::int64_t tile_rows, tile_columns;  // of C; tile_rows divides packed_rows, which divides rows
};

/// A block of op(A), which begins at row `top`, and one of op(B), which begins at column `left`:
/// those of their numbers with the indices from, …, from + depth − 1.
struct Blocks {
  std::int64_t top, left, from, depth;
};

/// Calls, for C [m, n] = op(A) [m, k] op(B) [k, n],
///   pack_b(blocks, columns)                  for each block of op(B), before its first tile;
///   pack_a(blocks, row, rows)                for rows `row`, … of a block of op(A), before their first tile;
///   tile(blocks, row, rows, column, columns) for each tile, whose first row and column are counted
///                                            from those of the blocks.
/// `rows` and `columns` are the numbers that remain, at most packed_rows in pack_a.
template <class PackA, class PackB, class Tile>
void each_tile_of_product(const BlockSizes& size, std::int64_t m, std::int64_t n, std::int64_t k,
                          const PackA& pack_a, const PackB& pack_b, const Tile& tile) {
  for (std::int64_t top = 0; top < m; top += size.rows) {
    const std::int64_t rows = std::min(size.rows, m - top);
    for (std::int64_t from = 0; from < k; from += chain_length) {
      for (std::int64_t left = 0; left < n; left += size.columns) {
        const Blocks blocks{top, left, from, std::min(chain_length, k - from)};
        const std::int64_t columns = std::min(size.columns, n - left);
        pack_b(blocks, columns);
        for (std::int64_t row = 0; row < rows; row += size.tile_rows) {
          if (left == 0 && row % size.packed_rows == 0)
            pack_a(blocks, row, std::min(size.packed_rows, rows - row));
          for (std::int64_t column = 0; column < columns; column += size.tile_columns)
            tile(blocks, row, rows - row, column, columns - column);
        }
      }
    }
  }
}

}  // namespace kernels
HEED_END
