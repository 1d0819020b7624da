#pragma once
/// All ops. ops/basic.h declares the basic ones; the others have a header for each family in
/// ops/more/. For shorter rebuilds, include only what you use.
#include "autograd/ops/basic.h"                            // IWYU pragma: export
#include "autograd/ops/more/affine_activation.h"           // IWYU pragma: export
#include "autograd/ops/more/attention/fused_attention.h"   // IWYU pragma: export
#include "autograd/ops/more/attention/linear_attention.h"  // IWYU pragma: export
#include "autograd/ops/more/attention/rotary.h"            // IWYU pragma: export
#include "autograd/ops/more/cross_entropy.h"               // IWYU pragma: export
#include "autograd/ops/more/dropout.h"                     // IWYU pragma: export
#include "autograd/ops/more/einsum.h"                      // IWYU pragma: export
#include "autograd/ops/more/elementwise.h"                 // IWYU pragma: export
#include "autograd/ops/more/index.h"                       // IWYU pragma: export
#include "autograd/ops/more/log_softmax.h"                 // IWYU pragma: export
#include "autograd/ops/more/norm.h"                        // IWYU pragma: export
#include "autograd/ops/more/reduce.h"                      // IWYU pragma: export
#include "autograd/ops/more/sequences/recurrent.h"         // IWYU pragma: export
#include "autograd/ops/more/sequences/unfold.h"            // IWYU pragma: export
#include "autograd/ops/more/shape.h"                       // IWYU pragma: export
