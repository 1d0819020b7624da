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

fault("gradcheck: a variable used twice is reported twice", "autograd/gradcheck/audit.cpp",
      "!known_.insert(input.get()).second) continue;",
      "known_.contains(input.get())) continue;",
      "autograd_f64:gradcheck_wrong_suite")

fault("gradcheck: an op is not checked with a single variable", "autograd/gradcheck/audit.cpp",
      "for (const bool alone : {false, true}) {",
      "for (const bool alone : {false}) {",
      "autograd_f64:planted_bugs_suite")

fault("gradcheck: larger extents are not tried", "autograd/gradcheck/variants.cpp",
      "{std::int64_t{1}, std::int64_t{0}, extent + 1}",
      "{std::int64_t{1}, std::int64_t{0}}",
      "autograd_f64:planted_bugs_suite")

fault("gradcheck: a backward that throws for tensors is a fault of a function of matrices",
      "autograd/gradcheck/variants.cpp",
      "return none || other.further_axis",
      "return none",
      "autograd_f64:gradcheck_suite")

fault("gradcheck: f does not run between forward and backward", "autograd/gradcheck/kept_values.cpp",
      "    elsewhere();\n",
      "    if (false) elsewhere();\n",
      "autograd_f64:planted_bugs_suite")

fault("gradcheck: an op that uses a value twice is blamed", "autograd/gradcheck/each_op.cpp",
      "if (nodes[i].get() != nodes[j].get() || x.data() != other.data()) return {};",
      "if (nodes[i].get() != nodes[j].get()) continue;",
      "autograd_f64:gradcheck_wrong_suite")

fault("attention, hard: backward uses the gradient of the hard weights", "autograd/ops/more/attention/fused_attention.cpp",
      "scratch.delta[r] = kernels::dot(p + r * keys, dp + r * keys, keys);",
      "scratch.delta[r] += kernels::dot(p + r * keys, dp + r * keys, 0);",
      "autograd_f64:attention_kinds")

fault("attention, sum: backward omits the division", "autograd/ops/more/attention/fused_attention.cpp",
      "std::fill(row, row + n, 1 / sums[r * layout.heads]);",
      "std::fill(row, row + n, sums[r * layout.heads] / sums[r * layout.heads]);",
      "autograd_f64:attention_kinds")

fault("gradcheck: a straight-through gradient hides tensors that do not pass it", "autograd/gradcheck/audit.cpp",
      "if (found == behind_.end() && !node.straight_through()) return;",
      "if (found == behind_.end() && !node.straight_through() && behind_.empty()) return;",
      "autograd_f64:gradcheck_suite")

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

fault("gradcheck no longer tries a further first axis on all inputs at once, only on the first input", "autograd/gradcheck/variants.cpp",
      "for (const std::size_t count : std::set<std::size_t>{1, inputs.size()}) {",
      "for (const std::size_t count : std::set<std::size_t>{1}) {",
      "autograd_f64")

fault("the cached table of rotary angles ignores the base: a second model with another rotary_base on the thread uses the first one's angles", "autograd/ops/more/attention/rotary.cpp",
      "  thread_local double kept_base = 0;\n  if (!kept.defined() || kept.cols() != size || kept_base != base || kept.rows() < positions) {\n    kept = turns(std::max<std::int64_t>(2 * positions, 128), size, base);\n    kept_base = base;\n  }\n",
      "  if (!kept.defined() || kept.cols() != size || kept.rows() < positions)\n    kept = turns(std::max<std::int64_t>(2 * positions, 128), size, base);\n",
      "autograd_f64", "nn_f64")

fault("gradcheck examines one random direction however many are requested", "autograd/gradcheck/gradcheck.cpp",
      "    Random random({options.seed, Stream::check, 2 + static_cast<std::uint64_t>(k), number});",
      "    Random random({options.seed, Stream::check, 2, number});",
      "autograd_f64")

fault("later chunks of a distilled loss imitate the teacher's rows of the first chunk", "autograd/ops/more/cross_entropy.cpp",
      "        Array taught = logits_of(teacher->x.row(begin), n, teacher->weight, teacher->bias);",
      "        Array taught = logits_of(teacher->x.data(), n, teacher->weight, teacher->bias);",
      "autograd_f64")

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

fault("gradcheck tries a further first axis on all inputs together only, no longer on the first input alone", "autograd/gradcheck/variants.cpp",
      "std::set<std::size_t>{1, inputs.size()}",
      "std::set<std::size_t>{inputs.size()}",
      "autograd_f64")

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

fault("a tensor is rejected only if all its entries are at kinks, not if all the entries that were checked are: with max_entries or directions it passes although nothing was compared", "autograd/gradcheck/gradcheck.cpp",
      "  if (c.kinks == c.checked) {",
      "  if (c.kinks == c.entries) {",
      "autograd_f64:gradcheck_suite")

fault("relative keys are multiplied by 1/sqrt(size) even if attention has another scale", "autograd/ops/more/attention/fused_attention.cpp",
      "q.stride,     layout.size,   scale};",
      """q.stride,     layout.size,
                       real(1) / std::sqrt(static_cast<real>(layout.size))};""",
      "autograd_f64")

fault("the gradient of relative keys has the factor 1/sqrt(size) even if attention has another scale", "autograd/ops/more/attention/relative_keys.cpp",
      "gemm(Trans::yes, Trans::no, all.count, size, block.rows, block.scale, g.data(), all.count,",
      "gemm(Trans::yes, Trans::no, all.count, size, block.rows, 1 / std::sqrt(static_cast<real>(size)), g.data(), all.count,",
      "autograd_f64")

fault("in decoding steps, relative keys are multiplied by 1/sqrt(size) even if attention has another scale", "autograd/ops/more/attention/attention_step.cpp",
      """                options_.scale_for(layout_)},
""",
      """                real(1) / std::sqrt(static_cast<real>(layout_.size))},
""",
      "autograd_f64")

fault("distillation ignores the bias of the teacher's output layer", "autograd/ops/more/cross_entropy.cpp",
      "logits_of(teacher->x.row(begin), n, teacher->weight, teacher->bias);",
      "logits_of(teacher->x.row(begin), n, teacher->weight, Array());",
      "autograd_f64")

fault("r-Drop counts a target as correct once for each of its two rows", "autograd/ops/more/cross_entropy.cpp",
      "counts.correct += k == 0 && row.correct ? 1 : 0;",
      "counts.correct += row.correct ? 1 : 0;",
      "autograd_f64")

fault("the nll that distillation reports includes label smoothing", "autograd/ops/more/cross_entropy.cpp",
      """    counts.nll += row.nll;
    counts.correct += row.correct ? 1 : 0;
    ++counts.tokens;
    if (each""",
      """    counts.nll += row.loss;
    counts.correct += row.correct ? 1 : 0;
    ++counts.tokens;
    if (each""",
      "autograd_f64")

fault("with max_entries, gradcheck checks the same entries for every seed", "autograd/gradcheck/gradcheck.cpp",
      "choose(x.size(), count, options.seed, number)",
      "choose(x.size(), count, 1, number)",
      "autograd_f64")

fault("with max_entries, an entry that is drawn twice is not replaced by another, so fewer entries are checked", "autograd/gradcheck/gradcheck.cpp",
      "if (!chosen.insert(pick).second) chosen.insert(i);",
      "chosen.insert(pick);",
      "autograd_f64")

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

fault("at a kink gradcheck accepts values from the left slope up to the right slope only, so a right gradient at a kink where the slope falls is reported as wrong", "autograd/gradcheck/gradcheck.cpp",
      """    const auto [low, high] = std::minmax(slope.left, slope.right);
""",
      """    const double low = slope.left, high = slope.right;
""",
      "autograd_f64:gradcheck_suite")

fault("a result that an op has saved for backward (exp, softmax, tanh, …) is not watched, so a change of its values through mutable_value before backward is not refused", "autograd/tape/hook.cpp",
      """    if (!is_view && result.owners() > 1)
""",
      """    if (!is_view && result.owners() > 2)
""",
      "autograd_f64")
