#pragma once
/// The gradcheck table: every op of autograd/ops/ has a row, and every row has a list of cases.
/// test_op_table.cpp fails if an op has no row.
#include <functional>
#include <string>
#include <vector>

#include "autograd/ops.h"

HEED_BEGIN

struct OpCase {
  std::string name;                                     ///< unique within the row
  std::vector<Tensor> inputs;                           ///< undefined: an omitted argument
  std::function<Tensor(const std::vector<Tensor>&)> f;  ///< calls the op; returns one result
  bool ignore_infinite_outputs = false;                 ///< for log_softmax: −inf where masked
};

struct OpRow {
  std::string op;
  std::vector<OpCase> cases;
};

std::vector<OpRow> op_table();

// The rows of the table, one function for each family of ops.
std::vector<OpRow> arithmetic_rows();
std::vector<OpRow> shape_rows();
std::vector<OpRow> matmul_rows();
std::vector<OpRow> row_op_rows();
std::vector<OpRow> attention_rows();
std::vector<OpRow> sequence_rows();
std::vector<OpRow> loss_rows();

/// Random values in [low, high); they differ between calls but not between runs.
Tensor uniform(const Shape& shape, real low = -1, real high = 1);
/// Random values of magnitude 0.2 to 1.2 and either sign: division, relu and abs have no derivative
/// at 0.
Tensor off_zero(const Shape& shape);

HEED_END
