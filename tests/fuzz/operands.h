#pragma once
/// Decodes bytes into operands of ops: tensors of a pool, shapes with extents up to 2^63 - 1, ids,
/// offsets.
#include <cstdint>
#include <vector>

#include "autograd/ops.h"
#include "tests/fuzz/target.h"

HEED_BEGIN

namespace graphs {

/// A tensor of the pool. `tame`: no magnitude in it or in the tensors it was computed from exceeds
/// largest_tame, and all ops that computed them are total (OpCall::total).
struct Made {
  Tensor tensor;
  bool tame = true;
};

constexpr real largest_tame = 1e6;

class Operands {
 public:
  Operands(fuzz::Bytes& bytes, const std::vector<Made>& pool) : bytes_(bytes), pool_(pool) {}

  Tensor tensor();  ///< a tensor of the pool or, one time in sixteen, an undefined one
  std::int64_t extent();
  Shape shape();
  int axis() { return static_cast<signed char>(bytes_.byte()) % 10; }
  bool flag() { return bytes_.byte() % 2 == 1; }
  real probability();
  double divisor();
  std::vector<std::int32_t> ids();
  std::vector<std::int32_t> offsets();
  UnaryFunction unary_function();
  RandomKey key() { return {.seed = bytes_.byte(), .stream = Stream::dropout}; }
  AttentionOptions attention();
  Array mask();

  bool tame() const { return tame_; }  ///< whether all operands so far are tame
  void wild() { tame_ = false; }

 private:
  fuzz::Bytes& bytes_;
  const std::vector<Made>& pool_;
  bool tame_ = true;
};

/// An op, and a function that calls it with operands read from the bytes.
struct OpCall {
  const char* name;
  bool total;  ///< whether the op is finite for all finite operands, with bounded derivatives
  Tensor (*run)(Operands&);
};
std::span<const OpCall> op_calls();

}  // namespace graphs

HEED_END
