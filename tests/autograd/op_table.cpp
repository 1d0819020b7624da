#include "tests/autograd/op_table.h"

HEED_BEGIN

namespace {

Random& stream() {
  thread_local Random random(RandomKey{.seed = 7, .stream = Stream::check, .index = 0, .part = 0});
  return random;
}

}  // namespace

Tensor uniform(const Shape& shape, real low, real high) {
  Array values(shape);
  for (real& x : values.values()) x = low + (high - low) * static_cast<real>(stream().uniform());
  return values;
}

Tensor off_zero(const Shape& shape) {
  Array values(shape);
  for (real& x : values.values()) {
    const auto size = static_cast<real>(0.2 + stream().uniform());
    x = stream().below(2) == 0 ? size : -size;
  }
  return values;
}

std::vector<OpRow> op_table() {
  std::vector<OpRow> table;
  for (const auto part : {arithmetic_rows, shape_rows, matmul_rows, row_op_rows, attention_rows,
                          sequence_rows, loss_rows}) {
    for (OpRow& row : part()) table.push_back(std::move(row));
  }
  return table;
}

HEED_END
