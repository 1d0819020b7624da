"""Faults in the other folders of autograd/."""
from . import fault

# ---- autograd: the tape and the ops --------------------------------------------------------------

fault("a second gradient replaces the first", "autograd/tensor.cpp",
      "kernels::add(slot_->data(), g.data(), slot_->data(), g.size());",
      "*slot_ = std::move(g);",
      "autograd_f64:tensor")

fault("a gradient shared by two inputs is modified", "autograd/tensor.cpp",
      "} else if (slot_->unique()) {\n    kernels::add",
      "} else if (slot_->defined()) {\n    kernels::add",
      "autograd_f64:tensor")

fault("affine: dx is computed from the first rows of the weight", "autograd/ops/affine.cpp",
      "weight.data() + begin * in(), in(), beta, target.data(), in());",
      "weight.data(), in(), beta, target.data(), in());",
      "autograd_f64:op_table_suite")

fault("affine: rows used twice keep only the last gradient", "autograd/ops/affine.cpp",
      "real beta = 1;",
      "real beta = 0;",
      "autograd_f64:op_table_suite", "nn_f64:gradcheck_*")

fault("affine_activation: relu's gradient lacks dropout's scale", "autograd/ops/more/affine_activation.cpp",
      "kernels::scale(kernels::dropout_factor(p), dh.data(), dh.data(), dh.size());",
      "",
      "autograd_f64:op_table_suite,ops")

fault("sub: the second gradient has the wrong sign", "autograd/ops/arithmetic.cpp",
      "if (db) db.add(scaled(-1, sum_to(dy, db.shape())));",
      "if (db) db.add(sum_to(dy, db.shape()));",
      "autograd_f64:op_table_suite")

fault("causal mask: a query reads one key too many", "autograd/ops/attention.cpp",
      "std::fill(mask.row(i) + i + 1,",
      "std::fill(mask.row(i) + std::min(i + 2, t),",
      "autograd_f64", "nn_f64:attention_layers")

fault("fused attention: backward omits dropout's mask", "autograd/ops/more/attention/fused_attention.cpp",
      "if (options.dropout > 0) drop(t, scratch.dp, scratch.dp);",
      "",
      "autograd_f64:op_table_suite,long_attention")

fault("fused attention: all tiles use the same dropout mask", "autograd/ops/more/attention/fused_attention.cpp",
      ".number = number + queries.rows * (key - all.begin),",
      ".number = number,",
      "autograd_f64:long_attention")

fault("fused attention: all heads use the same dropout mask", "autograd/ops/more/attention/fused_attention.cpp",
      "return (queries.rows * (keys.end - keys.begin) + 127) / 128 * 128;",
      "return 0 * (queries.rows * (keys.end - keys.begin) + 127) / 128 * 128;",
      "autograd_f64:op_table_suite,long_attention", "nn_f64:dropout_in_layers")

fault("fused attention: all terms add to the first term's gradients", "autograd/ops/more/attention/fused_attention.cpp",
      "dterms = dterms.subspan(count);",
      "dterms = dterms.last(dterms.size());",
      "autograd_f64:op_table_suite,attention_kinds")

fault("window: a query reads one key too many", "autograd/ops/more/attention/window.h",
      "return KeyRange{i - clipped_back, i + clipped_ahead + 1};",
      "return KeyRange{i - clipped_back - 1, i + clipped_ahead + 1};",
      "autograd_f64:attention_kinds")

fault("alibi: heads have the slopes of the next power of two", "autograd/ops/more/attention/alibi.h",
      "while (2 * power <= heads) power *= 2;",
      "while (power < heads) power *= 2;",
      "autograd_f64:attention_kinds")

fault("alibi: slopes are powers of e", "autograd/ops/more/attention/alibi.h",
      "return std::exp2(-8.0 *",
      "return std::exp(-8.0 *",
      "autograd_f64:attention_kinds")

fault("decoding: score terms use position 0 for the new row", "autograd/ops/more/attention/attention_step.cpp",
      "term.add({query.sequence, head, layout_.heads, query.first, 1,",
      "term.add({query.sequence, head, layout_.heads, 0, 1,",
      "autograd_f64:attention_kinds")

fault("cross-entropy: an ignored row has a gradient", "autograd/ops/cross_entropy.cpp",
      "if (with_grad) std::fill_n(logits.row(r), logits.cols(), real(0));",
      "",
      "autograd_f64:op_table_suite,ops")

fault("cross-entropy: a chunk's dW replaces that of earlier chunks", "autograd/ops/more/cross_entropy.cpp",
      "begin == 0 ? real(0) : real(1), dweight.data(), in);",
      "real(0), dweight.data(), in);",
      "autograd_f64:op_table_suite,ops")

fault("dropout: backward uses a different mask", "autograd/ops/more/dropout.cpp",
      "void backward(const Array& dy, Grad dx) const { dx.add(forward(dy)); }",
      "void backward(const Array& dy, Grad dx) const {\n"
      "    RandomKey other = key;\n"
      "    ++other.part;\n"
      "    dx.add(Dropout{p, other}.forward(dy));\n"
      "  }",
      "autograd_f64:op_table_suite")

fault("matmul: dA transposes the wrong operand", "autograd/ops/matmul.cpp",
      "gemm(Trans::no, flag(!trans_b), m(), k(), n(), 1, g, n(), pb, b.cols(), 1,",
      "gemm(Trans::no, flag(trans_b), m(), k(), n(), 1, g, n(), pb, b.cols(), 1,",
      "autograd_f64:op_table_suite")

fault("matmul: every product of a batch reads the first matrix", "autograd/ops/matmul.cpp",
      "visit(of_a + (walk.repeats_a() ? 0 : i), ",
      "visit(of_a, ",
      "autograd_f64:op_table_suite", "autograd_golden")

fault("mean: divides by the number of all values", "autograd/ops/more/reduce.cpp",
      "return apply(Reduce{r.kept, r.result, real(1) / static_cast<real>(r.view.n)}, x);",
      "return apply(Reduce{r.kept, r.result, real(1) / static_cast<real>(x.size())}, x);",
      "autograd_f64:ops")

fault("slice: the gradient is added at the beginning of the axis", "autograd/ops/shape.cpp",
      "real* to = sum.data() + (o * shape[axis] + begin) * inner;",
      "real* to = sum.data() + o * shape[axis] * inner;",
      "autograd_f64:op_table_suite")

fault("concat: parts without gradient do not advance the offset", "autograd/ops/more/shape.cpp",
      "if (dx[k] && outer == 1) {",
      "if (!dx[k]) continue;\n      if (outer == 1) {",
      "autograd_f64:op_table_suite,ops")

# ---- autograd/io, autograd/memory -----------------------------------------------------------------

fault("gzip: more output is expected after a member that fills the buffer", "autograd/io/formats/gzip.cpp",
      "state_->within = full = false;",
      "state_->within = false;",
      "data:lines", "train:fetching")

fault("UTF-8: U+10000 is encoded in three bytes", "autograd/io/utf8.cpp",
      "if (code < 0x10000) {",
      "if (code <= 0x10000) {",
      "data:utf8")

fault("lines: reading stops before the \\r of a line of maximum length", "autograd/io/lines.cpp",
      "if (looked > max_bytes_ + byte_order_mark.size() + 1 || !source_.read(text_)) break;",
      "if (looked > max_bytes_ || !source_.read(text_)) break;",
      "data:lines")

fault("arena: a block stays with the thread that frees it", "autograd/memory/arena.cpp",
      "    block->home->put_remote(block);",
      "    my_arena()->put(block);",
      "autograd_f64:arena")

fault("heap: after a merge, the next block points at the old block", "autograd/memory/heap.cpp",
      "    block = below;\n  }\n  above(block)->below = block;\n",
      "    block = below;\n  }\n",
      "autograd_f64:heap")

fault("heap: a free block of exactly the requested size does not fit", "autograd/memory/heap.cpp",
      "if (block->bytes >= bytes && (best",
      "if (block->bytes > bytes && (best",
      "autograd_f64:heap")

fault("arena: only the first block returned by other threads is kept", "autograd/memory/arena.cpp",
      "while (block != nullptr) {\n      Block* next = block->next;",
      "if (block != nullptr) {\n      Block* next = block->next;",
      "autograd_f64:arena")

fault("heap: the block after an unlisted block still points at it", "autograd/memory/heap.cpp",
      "  if (block->next != nullptr) block->next->previous = block->previous;\n",
      "",
      "autograd_f64:heap")

fault("causal attention: a query reads the next key", "autograd/ops/more/attention/causal.h",
      "return KeyRange{0, i + 1};",
      "return KeyRange{0, i + 2};",
      "nn_f64:attention_layers,properties")

fault("attention: scores are divided by the square root of d_model", "autograd/ops/more/attention/options.h",
      "real(1) / std::sqrt(static_cast<real>(layout.size))",
      "real(1) / std::sqrt(static_cast<real>(layout.size * layout.heads))",
      "autograd_f64:attention_kinds")

fault("rotary: backward rotates in the direction of forward", "autograd/ops/more/attention/rotary.cpp",
      "dx.add(rotated(dy, -1))",
      "dx.add(rotated(dy, 1))",
      "autograd_f64:op_table_suite")

fault("relative bias: later keys share the buckets of earlier ones", "autograd/ops/more/attention/distance_bias.h",
      "!causal && distance < 0 ? one_side : 0",
      "!causal && distance < 0 ? 0 : 0",
      "autograd_f64:attention_kinds")

fault("relative keys: the shift has no gradient", "autograd/ops/more/attention/relative_keys.cpp",
      "if (!shifted() || !dinputs[1]) continue;",
      "continue;",
      "autograd_f64:attention_kinds")

fault("linear attention: a row does not read itself", "autograd/ops/more/attention/linear_attention.cpp",
      "t.row(i) + i + 1",
      "t.row(i) + i",
      "autograd_f64:attention_kinds")

fault("top-k: too many equal scores are kept", "autograd/ops/more/attention/keep_largest.h",
      "equal-- > 0",
      "equal > 0",
      "autograd_f64:attention_kinds")

fault("recomputation: earlier gradients are dropped", "autograd/tape/recompute.cpp",
      "partial.begin(leaves[i], dx[i].take());",
      "partial.begin(leaves[i], {});",
      "autograd_f64:recomputation")

fault("packed weights: the end of an inner scope ends the outer one", "autograd/base/scoped_value.h",
      "~ScopedValue() { variable_ = before; }",
      "~ScopedValue() { variable_ = T{}; }",
      "kernels_f64:kernels_packed")

# ---- autograd/gradcheck ---------------------------------------------------------------------------

fault("attention, hard: backward uses the gradient of the hard weights", "autograd/ops/more/attention/fused_attention.cpp",
      "scratch.delta[r] = kernels::dot(p + r * keys, dp + r * keys, keys);",
      "scratch.delta[r] += kernels::dot(p + r * keys, dp + r * keys, 0);",
      "autograd_f64:attention_kinds")

fault("attention, sum: backward omits the division", "autograd/ops/more/attention/fused_attention.cpp",
      "std::fill(row, row + n, 1 / sums[r * layout.heads]);",
      "std::fill(row, row + n, sums[r * layout.heads] / sums[r * layout.heads]);",
      "autograd_f64:attention_kinds")

fault("R-Drop: the divergence has no gradient", "autograd/ops/more/cross_entropy.cpp",
      "if (with_grad) kernels::axpy(1, log_p.row(k), rows[k], classes);",
      "",
      "autograd_f64:op_table_suite", "autograd_f64:ops")

fault("R-Drop: the second pass is paired with the wrong target", "autograd/ops/more/cross_entropy.cpp",
      "real* const rows[] = {logits.row(r), logits.row(half + r)};",
      "real* const rows[] = {logits.row(r), logits.row(2 * half - 1 - r)};",
      "autograd_f64:ops")

fault("grid_bias: relative positions have the opposite sign", "autograd/ops/more/attention/grid_bias.h",
      "f(i * block.keys + j, query - place(block.key + j));",
      "f(i * block.keys + j, 2 * centre - (query - place(block.key + j)));",
      "nn_f64:swin")

fault("distillation: the gradient lacks the factor T", "autograd/ops/more/cross_entropy.cpp",
      "kernels::axpy(factor * share * t, log_p.data(), z, classes);",
      "kernels::axpy(factor * share, log_p.data(), z, classes);",
      "autograd_f64", "autograd_f32")

# ---- autograd: OpenBLAS's kernel -----------------------------------------------------------------

fault("rotary: a table of angles is kept for another base", "autograd/ops/more/attention/rotary.cpp",
      " || kept_base != base",
      "",
      "nn_f64:position_claims")

fault("bigbird: all queries read the same random blocks", "autograd/ops/more/attention/bigbird.cpp",
      ".index = static_cast<std::uint64_t>(queries)});",
      ".index = 0});",
      "autograd_f64:attention_kinds")

fault("log_sum_exp: +inf yields NaN", "autograd/ops/more/reduce.cpp",
      "if (std::isinf(largest)) largest = 0;",
      "if (largest == -std::numeric_limits<real>::infinity()) largest = 0;",
      "autograd_f64:ops")

fault("profile: an op contains the time of ops two levels below", "autograd/tape/hook.cpp",
      "outer_->nested_ += total;",
      "outer_->nested_ += seconds;",
      "autograd_f64:recomputation")

fault("distillation compares every chunk of rows after the first with the teacher's first rows", "autograd/ops/more/cross_entropy.cpp",
      "logits_of(teacher->x.row(begin), n, teacher->weight, teacher->bias)",
      "logits_of(teacher->x.row(0), n, teacher->weight, teacher->bias)",
      "autograd_f64", "nn_f64", "train")

fault("the cached table of rotary angles ignores the base: a second model with another rotary_base on the thread uses the first one's angles", "autograd/ops/more/attention/rotary.cpp",
      "  thread_local double kept_base = 0;\n  if (!kept.defined() || kept.cols() != size || kept_base != base || kept.rows() < positions) {\n    kept = turns(std::max<std::int64_t>(2 * positions, 128), size, base);\n    kept_base = base;\n  }\n",
      "  if (!kept.defined() || kept.cols() != size || kept.rows() < positions)\n    kept = turns(std::max<std::int64_t>(2 * positions, 128), size, base);\n",
      "autograd_f64", "nn_f64")

fault("later chunks of a distilled loss imitate the teacher's rows of the first chunk", "autograd/ops/more/cross_entropy.cpp",
      "        Array taught = logits_of(teacher->x.row(begin), n, teacher->weight, teacher->bias);",
      "        Array taught = logits_of(teacher->x.data(), n, teacher->weight, teacher->bias);",
      "autograd_f64:ops")

fault("in causal BigBird attention the random blocks are drawn among all blocks of keys, and draws of later blocks are thrown away, so early queries read fewer random blocks and the pattern depends on how many keys exist", "autograd/ops/more/attention/bigbird.cpp",
      "random.below(static_cast<std::uint32_t>(last + 1))",
      "random.below(static_cast<std::uint32_t>(count))",
      "autograd_f64:attention_kinds")

fault("top_k no longer breaks ties by index, so equal values come in the arbitrary order of the partial sort", "autograd/ops/more/index.cpp",
      "                      [row](std::int32_t a, std::int32_t b) {\n"
      "                        return above(row[a], row[b]) || (!above(row[b], row[a]) && a < b);\n"
      "                      });\n",
      "                      [row](std::int32_t a, std::int32_t b) { return above(row[a], row[b]); });\n",
      "autograd_f64:ops")

fault("in the backward of linear attention, the gradient of a key head that several query heads share is overwritten by each of them, so only that of the last query head remains", "autograd/ops/more/attention/linear_attention.cpp",
      "          row[k_column(head) + c] += dk.row(r)[c] *",
      "          row[k_column(head) + c] = dk.row(r)[c] *",
      "autograd_f64:attention_kinds")

fault("in the backward of batch norm, each shard adds the gradients of gain and bias of the whole batch instead of those of its own rows", "autograd/ops/more/norm.cpp",
      """    if (dbias) dbias.add(own(0));
    if (dgain) dgain.add(own(n));
    rank.sum(sums);
""",
      """    rank.sum(sums);
    if (dbias) dbias.add(own(0));
    if (dgain) dgain.add(own(n));
""",
      "training:tasks")

fault("the buckets of T5's relative positions always grow up to a distance of 128, whatever the farthest distance is", "autograd/ops/more/attention/distance_bias.h",
      "                         std::log(static_cast<double>(farthest) / static_cast<double>(exact));",
      "                         std::log(128.0 / static_cast<double>(exact));",
      "autograd_f64:attention_kinds")

fault("relative keys are multiplied by 1/sqrt(size) even if attention has another scale", "autograd/ops/more/attention/fused_attention.cpp",
      "q.stride,     layout.size,   scale};",
      """q.stride,     layout.size,
                       real(1) / std::sqrt(static_cast<real>(layout.size))};""",
      "autograd_f64:attention_kinds")

fault("the gradient of relative keys has the factor 1/sqrt(size) even if attention has another scale", "autograd/ops/more/attention/relative_keys.cpp",
      "gemm(Trans::yes, Trans::no, all.count, size, block.rows, block.scale, g.data(), all.count,",
      "gemm(Trans::yes, Trans::no, all.count, size, block.rows, 1 / std::sqrt(static_cast<real>(size)), g.data(), all.count,",
      "autograd_f64:attention_kinds")

fault("in decoding steps, relative keys are multiplied by 1/sqrt(size) even if attention has another scale", "autograd/ops/more/attention/attention_step.cpp",
      """                options_.scale_for(layout_)},
""",
      """                real(1) / std::sqrt(static_cast<real>(layout_.size))},
""",
      "autograd_f64:attention_kinds")

fault("distillation ignores the bias of the teacher's output layer", "autograd/ops/more/cross_entropy.cpp",
      "logits_of(teacher->x.row(begin), n, teacher->weight, teacher->bias);",
      "logits_of(teacher->x.row(begin), n, teacher->weight, Array());",
      "autograd_f64:ops")

fault("R-Drop counts a target as correct once for each of its two rows", "autograd/ops/more/cross_entropy.cpp",
      "counts.correct += k == 0 && row.correct ? 1 : 0;",
      "counts.correct += row.correct ? 1 : 0;",
      "autograd_f64:ops")

fault("the nll that distillation reports includes label smoothing", "autograd/ops/more/cross_entropy.cpp",
      """    counts.nll += row.nll;
    counts.correct += row.correct ? 1 : 0;
    ++counts.tokens;
    if (each""",
      """    counts.nll += row.loss;
    counts.correct += row.correct ? 1 : 0;
    ++counts.tokens;
    if (each""",
      "autograd_f64:ops")

fault("stack counts a negative axis from the end of the parts' axes instead of the result's, so axis -1 joins the tensors along the last axis but one", "autograd/ops/more/shape.cpp",
      """  if (axis < 0) axis += shape.rank() + 1;
""",
      """  if (axis < 0) axis += shape.rank();
""",
      "autograd_f64:op_table_suite")

fault("when einsum multiplies two operands, it keeps only the letters of the result and of the next operand, and sums over letters that only a later operand needs", "autograd/ops/more/einsum.cpp",
      """    for (std::size_t k = i + 1; k < all.size(); ++k) needed += all[k].letters;
""",
      """    if (i + 1 < all.size()) needed += all[i + 1].letters;
""",
      "autograd_f64:ops")

fault("a result that an op has saved for backward (exp, softmax, tanh, …) is not watched, so a change of its values through mutable_value before backward is not refused", "autograd/tape/hook.cpp",
      """    if (!is_view && result.owners() > 1)
""",
      """    if (!is_view && result.owners() > 2)
""",
      "autograd_f64:tensor")

fault("where takes the second operand where the condition is negative, though every value but 0 chooses the first", "autograd/ops/more/elementwise.cpp",
      "(condition.data()[i] != 0 ? a : b).data()[i];",
      "(condition.data()[i] > 0 ? a : b).data()[i];",
      "autograd_f64:ops")

fault("pow with exponent 0 has the gradient NaN at 0 instead of 0", "autograd/ops/more/elementwise.cpp",
      "return p == 0 ? real(0) : p * std::pow(v, p - 1);",
      "return p * std::pow(v, p - 1);",
      "autograd_f64:ops")

fault("max and min of a line with a NaN have the gradient NaN instead of none", "autograd/ops/more/reduce.cpp",
      "x.data()[at] == best ? dy.data()[line] / static_cast<real>(m) : real(0);",
      "real(x.data()[at] == best) * dy.data()[line] / static_cast<real>(m);",
      "autograd_f64:ops")

fault("batch norm of a column of equal values with eps 0 divides by 0: NaN instead of the bias", "autograd/ops/more/norm.cpp",
      "return v == 0 ? T(0) : 1 / std::sqrt(v);",
      "return 1 / std::sqrt(v);",
      "autograd_f64:ops")

fault("R-Drop counts ignored targets as tokens", "autograd/ops/more/cross_entropy.cpp",
      """      for (real* const row : rows) std::fill_n(row, with_grad ? classes : 0, real(0));
""",
      """      for (real* const row : rows) std::fill_n(row, with_grad ? classes : 0, real(0));
      ++counts.tokens;
""",
      "autograd_f64:ops")

fault("distillation counts ignored targets as tokens", "autograd/ops/more/cross_entropy.cpp",
      """      std::fill_n(z, with_grad ? classes : 0, real(0));
""",
      """      std::fill_n(z, with_grad ? classes : 0, real(0));
      ++counts.tokens;
""",
      "autograd_f64:ops")

fault("matmul accepts a matrix with fewer columns than the other has rows and ignores the other rows", "autograd/ops/matmul.cpp",
      "if (k() != b.shape()[trans_b ? -1 : -2]) {",
      "if (k() > b.shape()[trans_b ? -1 : -2]) {",
      "autograd_f64:ops_errors")

fault("affine accepts a bias longer than the weight has rows and ignores its end", "autograd/ops/affine.cpp",
      "if (has_bias && bias.shape() != Shape{weight.shape()[0]}) {",
      "if (has_bias && bias.size() < weight.shape()[0]) {",
      "autograd_f64:ops_errors")

fault("a label smoothing above 1 is accepted", "autograd/ops/cross_entropy.cpp",
      "if (!(smoothing >= 0 && smoothing <= 1))",
      "if (!(smoothing >= 0))",
      "autograd_f64:ops_errors")

fault("attention with map sum and several heads: backward divides by the sums of another head", "autograd/ops/more/attention/fused_attention.cpp",
      "std::fill(row, row + n, 1 / sums[r * layout.heads]);",
      "std::fill(row, row + n, 1 / sums[r]);",
      "autograd_f64:long_attention")

fault("mask_pattern asks for the mask of the first sequence in every sequence of a batch", "autograd/ops/more/attention/mask.h",
      "if (!reads(block.sequence, block.first + r, key)) continue;",
      "if (!reads(0, block.first + r, key)) continue;",
      "autograd_f64:long_attention")

fault("prefix_pattern gives every sequence the prefix length of the first", "autograd/ops/more/attention/prefix.h",
      "const std::int64_t prefix = lengths[block.sequence];",
      "const std::int64_t prefix = lengths[0];",
      "autograd_f64:long_attention")

fault("with queries_last, a sequence with more queries than keys is accepted: its first queries have negative positions", "autograd/ops/more/attention/fused_attention.cpp",
      """    if (queries > keys)
""",
      """    if (queries > 0 && keys == 0)
""",
      "autograd_f64:long_attention")

fault("the attention log returns the wrong values of a head if heads share key heads", "autograd/ops/more/attention/attention_log.h",
      "return key(row, head) + layout.key_heads * layout.size;",
      "return key(row, head) + layout.heads * layout.size;",
      "autograd_f64:attention_log")

fault("an array of seven entries is printed in part, though only longer axes are", "autograd/tape/print.cpp",
      "if (n > 2 * ends + 1 && i == ends) {",
      "if (n > 2 * ends && i == ends) {",
      "autograd_f64:array")

fault("the error about a value that was changed before backward names input 0 whichever input it was", "autograd/tape/hook.cpp",
      "saved.push_back({value, value.version(), i});",
      "saved.push_back({value, value.version(), 0});",
      "autograd_f64:tensor")

fault("an error in the backward of an op loses its exit code", "autograd/tensor.cpp",
      "throw Error(error.code, \"[backward of {}] {}\"",
      "throw Error(Exit::failed, \"[backward of {}] {}\"",
      "autograd_f64:tensor")

fault("a partial sum of another shape with as many values is accepted", "autograd/tensor.cpp",
      "if (partial_sum.shape() != x.shape())",
      "if (partial_sum.size() != x.size())",
      "autograd_f64:tensor")

fault("the report of a non-finite value does not name the parameter after which it arose", "autograd/tape/finite_check.cpp",
      "return last_name_.empty() ? \"\" : fmt::format(\" after {}\", last_name_);",
      "return \"\";",
      "autograd_f64:tensor")

fault("the report of a non-finite gradient names input 0 whichever input it belongs to", "autograd/tape/finite_check.cpp",
      "i, op_name(op), where));",
      "0, op_name(op), where));",
      "autograd_f64:tensor")

fault("the report of a non-finite value shows the meaningless sign of a NaN", "autograd/tape/finite_check.h",
      "return std::isnan(x) ? std::abs(x) : x;",
      "return x;",
      "autograd_f64:tensor")

fault("the FLOPs of the model include those of recomputation", "autograd/tape/recompute.cpp",
      """      const kernels::DeclaredFlops counted([] { return 0.0; });
""",
      "",
      "autograd_f64:recomputation")

fault("the poison of new blocks is not recognised after a change of sign", "autograd/memory/arena.cpp",
      "return (std::bit_cast<Bits>(value) & ~sign_bit) == std::bit_cast<Bits>(poison);",
      "return std::bit_cast<Bits>(value) == std::bit_cast<Bits>(poison);",
      "autograd_f64:arena")
