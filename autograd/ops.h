#pragma once
/// All ops. Each family has a header in ops/ that declares its ops; the source files beside it
/// contain the struct of each op: formula, forward and backward. Error messages begin with the op's
/// name and usually have the form "[op] expected …, got …". For shorter rebuilds, include only the
/// families that you use.
#include "autograd/ops/affine.h"                      // IWYU pragma: export
#include "autograd/ops/arithmetic.h"                  // IWYU pragma: export
#include "autograd/ops/attention/attention.h"         // IWYU pragma: export
#include "autograd/ops/attention/linear_attention.h"  // IWYU pragma: export
#include "autograd/ops/attention/rotary.h"            // IWYU pragma: export
#include "autograd/ops/cross_entropy.h"               // IWYU pragma: export
#include "autograd/ops/dropout.h"                     // IWYU pragma: export
#include "autograd/ops/einsum.h"                      // IWYU pragma: export
#include "autograd/ops/elementwise.h"                 // IWYU pragma: export
#include "autograd/ops/index.h"                       // IWYU pragma: export
#include "autograd/ops/matmul.h"                      // IWYU pragma: export
#include "autograd/ops/norm.h"                        // IWYU pragma: export
#include "autograd/ops/reduce.h"                      // IWYU pragma: export
#include "autograd/ops/sequences/recurrent.h"         // IWYU pragma: export
#include "autograd/ops/sequences/unfold.h"            // IWYU pragma: export
#include "autograd/ops/shape.h"                       // IWYU pragma: export
#include "autograd/ops/softmax.h"                     // IWYU pragma: export
