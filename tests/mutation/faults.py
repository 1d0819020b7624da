"""Typical programming errors: each is one replacement in one file, with the tests that should detect it.

`old` occurs exactly once in the file. `tests` are ctest names; "nn_f64:golden" is only the suite golden of
nn_f64. These tests run first; if they pass, all others run. If a change of the code removes `old`,
`mutate --fit` fails: rewrite the fault for the new code.
"""
from typing import NamedTuple


class Fault(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    tests: tuple


FAULTS = []


def fault(name, file, old, new, *tests):
    FAULTS.append(Fault(name, file, old, new, tests))


# ---- autograd: the tape and the ops --------------------------------------------------------------

fault("a second gradient replaces the first", "autograd/tensor.cpp",
      "kernels::add(slot_->data(), g.data(), slot_->data(), g.size());",
      "*slot_ = std::move(g);",
      "autograd_f64:tensor")

fault("a gradient shared by two inputs is modified", "autograd/tensor.cpp",
      "} else if (slot_->unique()) {\n    kernels::add",
      "} else if (slot_->defined()) {\n    kernels::add",
      "autograd_f64:tensor")

fault("affine: dx from the first rows of the weight", "autograd/ops/affine.cpp",
      "weight.data() + begin * in(), in(), beta, target.data(), in());",
      "weight.data(), in(), beta, target.data(), in());",
      "autograd_f64:op_table_suite")

fault("affine: rows used twice keep only the last gradient", "autograd/ops/affine.cpp",
      "real beta = 1;",
      "real beta = 0;",
      "autograd_f64:op_table_suite", "nn_f64:gradcheck_*")

fault("affine_map: relu's gradient without dropout's scale", "autograd/ops/affine.cpp",
      "kernels::scale(kernels::dropout_factor(p), dh.data(), dh.data(), dh.size());",
      "",
      "autograd_f64:op_table_suite,ops")

fault("sub: sign of the second gradient", "autograd/ops/arithmetic.cpp",
      "if (db) db.add(scaled(-1, sum_to(dy, db.shape())));",
      "if (db) db.add(sum_to(dy, db.shape()));",
      "autograd_f64:op_table_suite")

fault("causal mask: one key too many", "autograd/ops/attention.cpp",
      "std::fill(mask.row(i) + i + 1,",
      "std::fill(mask.row(i) + std::min(i + 2, t),",
      "autograd_f64", "nn_f64:attention_layers")

fault("fused attention: backward without dropout's mask", "autograd/ops/fused_attention.cpp",
      "if (options.dropout > 0) drop(t, scratch.dp, scratch.dp);",
      "",
      "autograd_f64:op_table_suite,long_attention")

fault("fused attention: all tiles use the same dropout mask", "autograd/ops/fused_attention.cpp",
      ".number = number + queries.rows * (key - all.begin),",
      ".number = number,",
      "autograd_f64:long_attention")

fault("fused attention: all heads use the same dropout mask", "autograd/ops/fused_attention.cpp",
      "return (queries.rows * (keys.end - keys.begin) + 127) / 128 * 128;",
      "return 0 * (queries.rows * (keys.end - keys.begin) + 127) / 128 * 128;",
      "autograd_f64:op_table_suite,long_attention", "nn_f64:dropout_in_layers")

fault("fused attention: a term's gradient goes to the next term's inputs", "autograd/ops/fused_attention.cpp",
      "dterms = dterms.subspan(count);",
      "dterms = dterms.last(dterms.size());",
      "autograd_f64:op_table_suite,attention_kinds")

fault("window: a query reads one key too many", "autograd/ops/attention/window.h",
      "return KeyRange{i - clipped_back, i + clipped_ahead + 1};",
      "return KeyRange{i - clipped_back - 1, i + clipped_ahead + 1};",
      "autograd_f64:attention_kinds")

fault("alibi: the slopes of a power of two for every number of heads", "autograd/ops/attention/alibi.h",
      "while (2 * power <= heads) power *= 2;",
      "while (power < heads) power *= 2;",
      "autograd_f64:attention_kinds")

fault("decoding: terms see the new row at position 0", "autograd/ops/attention_step.cpp",
      "term.add({query.sequence, head, layout_.heads, query.first, 1,",
      "term.add({query.sequence, head, layout_.heads, 0, 1,",
      "autograd_f64:attention_kinds")

fault("cross-entropy: a chunk's dW replaces those before", "autograd/ops/cross_entropy.cpp",
      "begin == 0 ? real(0) : real(1), dweight.data(), in);",
      "real(0), dweight.data(), in);",
      "autograd_f64:op_table_suite,ops")

fault("dropout: a different mask in backward", "autograd/ops/dropout.cpp",
      "void backward(const Array& dy, Grad dx) const { dx.add(forward(dy)); }",
      "void backward(const Array& dy, Grad dx) const {\n"
      "    RandomKey other = key;\n"
      "    ++other.part;\n"
      "    dx.add(Dropout{p, other}.forward(dy));\n"
      "  }",
      "autograd_f64:op_table_suite")

fault("matmul: dA with the other operand transposed", "autograd/ops/matmul.cpp",
      "gemm(Trans::no, flag(!trans_b), m(), k(), n(), 1, g, n(), pb, b.cols(), 1,",
      "gemm(Trans::no, flag(trans_b), m(), k(), n(), 1, g, n(), pb, b.cols(), 1,",
      "autograd_f64:op_table_suite")

fault("matmul: every matrix of a batch is the first one", "autograd/ops/matmul.cpp",
      "visit(of_a + (walk.repeats_a() ? 0 : i), ",
      "visit(of_a, ",
      "autograd_f64:op_table_suite", "autograd_golden")

fault("mean: divides by all values, not those of the axis", "autograd/ops/reduce.cpp",
      "const std::int64_t n = all ? x.size() : x.shape()[axis];",
      "const std::int64_t n = x.size();",
      "autograd_f64:ops")

fault("slice: gradient at the beginning of the axis", "autograd/ops/shape.cpp",
      "real* to = sum.data() + (o * shape[axis] + begin) * inner;",
      "real* to = sum.data() + o * shape[axis] * inner;",
      "autograd_f64:op_table_suite")

fault("concat: parts without gradient do not advance the offset", "autograd/ops/shape.cpp",
      "if (dx[k]) dx[k].add(Slice{axis, begin, begin + extents[k]}.forward(dy));\n      begin += extents[k];",
      "if (!dx[k]) continue;\n      dx[k].add(Slice{axis, begin, begin + extents[k]}.forward(dy));\n"
      "      begin += extents[k];",
      "autograd_f64:op_table_suite,ops")

# ---- autograd/base, autograd/memory ---------------------------------------------------------------

fault("gzip: more output is expected after a member that fills the buffer", "autograd/base/gzip.cpp",
      "state_->within = full = false;",
      "state_->within = false;",
      "data:lines", "train:fetching")

fault("UTF-8: U+10000 is written in three bytes", "autograd/base/utf8.cpp",
      "if (code < 0x10000) {",
      "if (code <= 0x10000) {",
      "data:utf8")

fault("lines: a line of the greatest length ends before its \\r", "autograd/base/lines.cpp",
      "if (looked > longest_ + byte_order_mark.size() + 1 || !source_.read(text_)) break;",
      "if (looked > longest_ || !source_.read(text_)) break;",
      "data:lines")

fault("arena: a block stays with the thread that frees it", "autograd/memory/arena.cpp",
      "    block->home->put_remote(block);",
      "    my_arena()->put(block);",
      "autograd_f64:arena")

fault("heap: after a merge, the next block points at the old one", "autograd/memory/heap.cpp",
      "    block = below;\n  }\n  above(block)->below = block;\n",
      "    block = below;\n  }\n",
      "autograd_f64:heap")

fault("heap: a free block of exactly the requested size does not fit", "autograd/memory/heap.cpp",
      "if (block->bytes >= bytes && (best",
      "if (block->bytes > bytes && (best",
      "autograd_f64:heap")

# ---- autograd/kernels ----------------------------------------------------------------------------

fault("causal attention: a query sees the next key", "autograd/ops/attention/causal.h",
      "return KeyRange{0, i + 1};",
      "return KeyRange{0, i + 2};",
      "nn_f64:attention_layers,properties")

fault("attention: sums of tiles omit the smaller one", "autograd/kernels/attention.cpp",
      "alone ? high : high + std::log1p(std::exp(low - high))",
      "alone ? high : high",
      "kernels_f64:kernels_attention", "autograd_f64:long_attention")

fault("decoding: scores over the model's width", "autograd/kernels/attend.cpp",
      "const real root = real(1) / std::sqrt(static_cast<real>(size));",
      "const real root = real(1) / std::sqrt(static_cast<real>(size * layout.heads));",
      "kernels_f64:kernels_attend")

fault("softmax: gradient with the sum of dy, not ⟨dy, y⟩", "autograd/kernels/softmax.cpp",
      "return hn::Mul(io.load(y + i), io.load(dy + i));",
      "return io.load(dy + i);",
      "kernels_f64:kernels_rows")

fault("cross-entropy: smoothing mass over n - 1 classes", "autograd/kernels/cross_entropy.cpp",
      "share = eps / static_cast<double>(n);",
      "share = eps / static_cast<double>(n - 1);",
      "kernels_f64:kernels_rows,kernels_accuracy")

fault("layer norm: gradient without mean(g)", "autograd/kernels/norm.cpp",
      "hn::Sub(gained(dy, gain, c, io), set_wide(mean.g));",
      "gained(dy, gain, c, io);",
      "kernels_f64:kernels_rows")

fault("relu: slope 1 at zero", "autograd/kernels/simd/maps-inl.h",
      "hn::IfThenZeroElse(hn::Le(y, zero()), dy)",
      "hn::IfThenZeroElse(hn::Lt(y, zero()), dy)",
      "autograd_f64:ops", "kernels_f64:kernels_elementwise")

fault("gemm: k = 0 leaves C unscaled", "autograd/kernels/gemm/gemm.cpp",
      "if (k == 0) return scale(m, n, beta, c, ldc);",
      "if (k == 0) return;",
      "autograd_f64:op_table_suite,ops")

fault("packed weights: one layout for any number of rows", "autograd/kernels/gemm/packed.cpp",
      "packed = &packed_[{rows, n}];",
      "packed = &packed_[{rows, 0}];",
      "kernels_f64:kernels_packed")

fault("packed weights: the end of an inner scope ends the outer one", "autograd/kernels/gemm/packed.cpp",
      "PackedScope::~PackedScope() { weights_here = before_; }",
      "PackedScope::~PackedScope() { weights_here = nullptr; }",
      "kernels_f64:kernels_packed")

fault("adam: no bias correction of the first moment", "autograd/kernels/update.cpp",
      "rate = constant(step.lr / step.c1);",
      "rate = constant(step.lr);",
      "kernels_f64:kernels_update")

fault("adamw: decay goes into the gradient", "autograd/kernels/update.cpp",
      "const Vector gi = hn::Mul(io.load(g + i), clip);",
      "const Vector gi = hn::MulAdd(constant(step.decay), io.load(w + i), hn::Mul(io.load(g + i), clip));",
      "kernels_f64:kernels_update")

fault("adam: eps under the root", "autograd/kernels/update.cpp",
      "const Vector size = hn::MulAdd(hn::Sqrt(vi), root2, eps);",
      "const Vector size = hn::Mul(hn::Sqrt(hn::Add(vi, eps)), root2);",
      "kernels_f64:kernels_update")

# ---- nn ------------------------------------------------------------------------------------------

fault("residual: post-norm also normalises first", "nn/layers/block.h",
      "sublayer(pre ? norm(x) : x)",
      "sublayer(norm(x))",
      "nn_f64:golden")

fault("decoder: reads later tokens", "nn/layers/block.cpp",
      "Sees::all : Sees::past",
      "Sees::all : Sees::all",
      "nn_f64:properties")

fault("positions: begin at 1", "nn/layers/positions.cpp",
      "all.push_back(p + static_cast<std::int32_t>(first));",
      "all.push_back(p + 1 + static_cast<std::int32_t>(first));",
      "nn_f64:properties,golden")

fault("decoding: off by one position", "nn/context.h",
      "std::int64_t position = -1;",
      "std::int64_t position = 0;",
      "nn_f64:cached_decoding")

fault("decoding: a later part of the sources overwrites the first", "nn/models/generative.cpp",
      "std::copy_n(rows.data(), rows.size(), memory.row(offsets[begin]));",
      "std::copy_n(rows.data(), rows.size(), memory.row(0));",
      "nn_f64:cached_decoding", "training:searching_with_models")

fault("decoding: a reordered sentence reads another source", "nn/layers/attention.cpp",
      "const std::int32_t s = cache.sequence[i];",
      "const auto s = i % static_cast<std::int64_t>(cache.sequence.size());",
      "nn_f64:cached_decoding", "training:searching_with_models")

fault("final norm: present although the config omits it", "nn/layers/block.cpp",
      "if (options.final_norm) norm.emplace",
      "norm.emplace",
      "nn_f64:golden,parameters")

fault("dropout: one key for a whole pass", "nn/context.h",
      "(shard << 16) | dropouts++};",
      "(shard << 16) | dropouts};",
      "nn_f64:dropout_in_layers")

fault("embedding: scaled by the vocabulary", "nn/layers/embedding.h",
      "weight.shape()[1]",
      "weight.shape()[0]",
      "nn_f64:golden")

fault("xavier: bound from one side only", "nn/parameters.cpp",
      "static_cast<double>(in + out)",
      "static_cast<double>(in + in)",
      "nn_f64:parameters")

# ---- optim ---------------------------------------------------------------------------------------

fault("warmup: one step late", "optim/schedule.h",
      "return options.lr * t / warmup;",
      "return options.lr * (t - 1) / warmup;",
      "optim_f64:schedules")

fault("schedule: ends with the run, whatever schedule.steps says", "optim/schedule.h",
      "schedule.steps > 0 ? schedule.steps : total_steps);",
      "total_steps);",
      "optim_f64:schedules")

fault("noam: a rate of 0 without warmup", "optim/schedule.h",
      "std::sqrt(std::max(warmup, 1.0) / t);",
      "std::sqrt(warmup / t);",
      "optim_f64:schedules")

fault("clipping: small gradients are enlarged", "optim/clip.h",
      "return factor < 1.0 ? factor : 1.0;",
      "return factor;",
      "optim_f64:optimizers")

fault("adam: decays as adamw does", "optim/optimizer.cpp",
      "if (options_.name == OptimizerKind::adam) return 0;",
      "",
      "optim_f64:optimizers")

fault("adam: second moments from the parameter's beginning", "optim/optimizer.cpp",
      "second_[parameter].data() + begin, n);",
      "second_[parameter].data(), n);",
      "optim_f64:optimizers")

# ---- data ----------------------------------------------------------------------------------------

fault("order: drawn with replacement", "data/batches/batching.cpp",
      "std::swap(items[i - 1], items[random.below(static_cast<std::uint32_t>(i))]);",
      "items[i - 1] = items[random.below(static_cast<std::uint32_t>(i))];",
      "data:batcher")

fault("order: no sample can keep its place", "data/batches/batching.cpp",
      "random.below(static_cast<std::uint32_t>(i))",
      "random.below(static_cast<std::uint32_t>(i - 1))",
      "data:batcher")

fault("order: the same in every epoch", "data/batches/batching.cpp",
      ".index = static_cast<std::uint64_t>(epoch),",
      ".index = epoch < 0 ? 1u : 0u,",
      "data:batcher")

fault("windows: the end of the text is omitted", "data/batches/batching.cpp",
      "for (std::int64_t at = shift; at < tokens - 1; at += context)",
      "for (std::int64_t at = shift; at < tokens - context; at += context)",
      "data:batcher")

fault("prefetcher: the position before the batch", "data/batches/batcher.cpp",
      "position_ = stream_.position();\n  epochs_",
      "epochs_",
      "data:prefetcher")

fault("vocabulary: the end token is printed", "data/tokenizers/vocabulary.cpp",
      "if (id != unk && std::cmp_less(id, first_)) continue;",
      "if (id == bos) continue;",
      "data:vocabulary")

fault("words: further specials do not count in vocab_size", "data/tokenizers/vocabulary.cpp",
      "static_cast<std::int64_t>(special_pieces.size() + options.specials.size());",
      "static_cast<std::int64_t>(special_pieces.size());",
      "data:specials")

fault("sentencepiece: a very long word is cut within a character", "data/tokenizers/sentencepiece.cpp",
      "    while (end > 1 && (static_cast<unsigned char>(line[end]) & 0xC0u) == 0x80u) --end;\n",
      "",
      "data:sentencepiece")

fault("piece model: a value just past the texts is accepted", "data/tokenizers/piece_model.cpp",
      "return (node & 0x7FFFFFFFu) < texts.size(); };",
      "return (node & 0x7FFFFFFFu) <= texts.size(); };",
      "data:piece_model")

fault("corpus: train keeps the text split off for validation", "data/sources/corpus.cpp",
      "text.resize(train_end);",
      "text.resize(valid_end);",
      "data:corpus")

fault("addition: the summand 0 is never drawn", "data/sources/synthetic.cpp",
      "i == 0 && digits > 1 ? 1 : 0;",
      "i == 0 ? 1 : 0;",
      "data:synthetic")

# ---- train ---------------------------------------------------------------------------------------

fault("step: each shard uses its own mean", "train/loop/step.cpp",
      "forward_backward(shards[i], i, step, static_cast<double>(tokens));",
      "const Batch& own = shards[i];\n"
      "    forward_backward(own, i, step, static_cast<double>(own.labels.size()));",
      "nn_f64:shards", "training:step")

fault("step: the same dropout in every step", "train/loop/step.cpp",
      "static_cast<std::uint64_t>(step),",
      "step < 0 ? 1u : 0u,",
      "training:step,determinism")

fault("step: clipped by the square of the norm", "train/loop/step.cpp",
      "update(lr, clip_factor(result.gradient_norm, options_.clip_norm));",
      "update(lr, clip_factor(result.gradient_norm * result.gradient_norm, options_.clip_norm));",
      "training:step", "nn_f64:golden")

fault("step: an infinite gradient of a finite loss is accepted", "train/loop/step.cpp",
      " || !std::isfinite(result.gradient_norm)",
      "",
      "training:step")

fault("resume: the optimizer begins at step 0", "train/loop/trainer.cpp",
      "optimizer_.set_steps(",
      "optimizer_.set_steps(0 * ",
      "training:resuming")

fault("resume: at the beginning of the epoch", "train/loop/run_progress.cpp",
      'visit("/batch", p.position.batch, true);',
      "",
      "training:resuming")

fault("best: higher perplexity counts as better", "train/config/tasks.h",
      '"perplexity", "perplexity", false',
      '"perplexity", "perplexity", true',
      "training:trainer")

fault("checkpoints: best is always the last", "train/run/checkpoint_folder.cpp",
      'if (is_best) link("best", step);',
      'if (is_best || step > 0) link("best", step);',
      "train:checkpoint_folder")

fault("checkpoints: those made on request count towards keep", "train/run/checkpoint_folder.cpp",
      'return !state.state.contains("on_request");',
      "return true;",
      "train:checkpoint_folder")

fault("run lock: a process that only looks at it stops a starting run", "train/run/run_lock.cpp",
      "if (try_lock(file_.get(), LOCK_SH) < 0 || tries == 1000) refuse(run, file_.get());",
      "refuse(run, file_.get());",
      "train:files")

fault("run lock: an empty file always counts as heed's", "train/run/run_lock.cpp",
      "|| (even_empty && text.empty());",
      "|| text.empty();",
      "train:files")

fault("validation: samples if decode.sample is set", "train/tasks/seq2seq.cpp",
      "options.sample = false;",
      "",
      "training:trainer")

fault("average: divides by the requested number of checkpoints", "train/run/average.cpp",
      "static_cast<double>(files.size())",
      "static_cast<double>(count)",
      "training:trainer")

fault("BLEU: brevity penalty of the inverse ratio", "train/metrics/bleu.cpp",
      "std::exp(1.0 - reference / hypothesis)",
      "std::exp(1.0 - hypothesis / reference)",
      "train:bleu")

fault("beam: the end token does not count in the length", "train/decode/search.cpp",
      "done.hypothesis.tokens.size()) + (ended ? 1 : 0);",
      "done.hypothesis.tokens.size());",
      "training:searching")

fault("sampling: one random number for all tokens", "train/decode/search.cpp",
      "static_cast<std::uint32_t>(live.hypothesis.tokens.size())});",
      "static_cast<std::uint32_t>(live.sentence)});",
      "training:sampling_tokens")

fault("sampling: the same random numbers in each window of a text", "train/decode/search.cpp",
      "{(number << 20) + static_cast<std::int64_t>(text.size())});",
      "{number << 20});",
      "training:searching_with_models")

fault("sampling: the random numbers depend on the order by length", "train/decode/search.cpp",
      "keys.push_back(numbers.empty() ? place : numbers[place]);",
      "keys.push_back(numbers.empty() ? i : numbers[i]);",
      "training:searching_with_models")

fault("beam: a finished hypothesis leaves its place to another", "train/decode/search.cpp",
      "const std::int64_t places = beam - static_cast<std::int64_t>(finished_[sentence].size());",
      "const std::int64_t places = beam;",
      "training:searching")

fault("continuing a text: the window slides one token early", "train/decode/search.cpp",
      "static_cast<std::int64_t>(text.size()) > context) {",
      "static_cast<std::int64_t>(text.size()) >= context) {",
      "training:searching_with_models")

fault("fetch: an unpacked file under a packed file's name is kept", "train/fetch/fetch.cpp",
      "    if (is_gzip(bytes) != ends_in_gz(file.name)) return false;\n",
      "",
      "train:fetching")

fault("subprocess: a killed program's status without 128", "train/fetch/subprocess.cpp",
      "128 + WTERMSIG(status)",
      "WTERMSIG(status)",
      "train:fetching")
