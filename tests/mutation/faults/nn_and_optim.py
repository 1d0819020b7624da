"""Faults in nn/ and optim/."""
from . import fault

# ---- nn ------------------------------------------------------------------------------------------

fault("residual: post-norm also normalises the sublayer's input", "nn/layers/block.h",
      "sublayer(place == NormPlace::pre ? (*norm)(x, pass) : x)",
      "sublayer(norm ? (*norm)(x, pass) : x)",
      "nn_f64:golden")

fault("decoder: reads later tokens", "nn/layers/block.cpp",
      "AttentionScope::all : AttentionScope::past",
      "AttentionScope::all : AttentionScope::all",
      "nn_f64:properties")

fault("positions: the first position is 1", "nn/layers/positions.cpp",
      "all.push_back(p + static_cast<std::int32_t>(first));",
      "all.push_back(p + 1 + static_cast<std::int32_t>(first));",
      "nn_f64:properties,golden")

fault("decoding: rows have the position of the next row", "nn/context.h",
      "std::int64_t position = -1;",
      "std::int64_t position = 0;",
      "nn_f64:cached_decoding")

fault("decoding: a later part of the sources overwrites the first", "nn/models/generative.cpp",
      "at = std::copy_n(block.data(), block.size(), at);",
      "std::copy_n(block.data(), block.size(), at);",
      "nn_f64:cached_decoding", "training:searching_with_models")

fault("decoding: a reordered sentence reads another source", "nn/layers/attention.cpp",
      "const std::int32_t s = cache.sequence[i];",
      "const auto s = i % static_cast<std::int64_t>(cache.sequence.size());",
      "nn_f64:cached_decoding", "training:searching_with_models")

fault("final norm: present although the config omits it", "nn/layers/block.cpp",
      "if (options.final_norm && options.norm",
      "if (options.norm",
      "nn_f64:golden,parameters")

fault("dropout: all layers of a pass use one key", "nn/context.h",
      "(shard << 16) | dropouts++};",
      "(shard << 16) | dropouts};",
      "nn_f64:dropout_in_layers")

fault("embedding: scaled by the square root of the vocabulary size", "nn/embedding.h",
      "weight.shape().cols()",
      "weight.shape().rows()",
      "nn_f64:golden")

fault("xavier: the bound depends only on the number of inputs", "nn/parameters.h",
      "static_cast<double>(in + out)",
      "static_cast<double>(in + in)",
      "nn_f64:parameters")

fault("decoding: a selection does not reorder the sources", "nn/context.h",
      "    sequence = std::move(chosen.sequence);\n",
      "",
      "nn_f64:cached_decoding")

fault("weights: f16 values are halved", "nn/weights.cpp",
      "static_cast<int>(exponent) - 25",
      "static_cast<int>(exponent) - 26",
      "nn_f64:weights_in_files")

fault("weights: partial loading accepts a file without a common name", "nn/weights.cpp",
      "if (!options.strict && !found.names.loaded.empty())",
      "if (!options.strict)",
      "nn_f64:weights_in_files")

# ---- optim ---------------------------------------------------------------------------------------

fault("warmup: the learning rate is one step late", "optim/schedule.h",
      "return options.lr * t / warmup;",
      "return options.lr * (t - 1) / warmup;",
      "optim_f64:schedules")

fault("schedule: ends with the run, whatever schedule.steps is", "optim/schedule.h",
      "schedule.steps > 0 ? schedule.steps : total_steps);",
      "total_steps);",
      "optim_f64:schedules")

fault("noam: the learning rate is 0 without warmup", "optim/schedule.h",
      "std::sqrt(std::max(warmup, 1.0) / t);",
      "std::sqrt(warmup / t);",
      "optim_f64:schedules")

fault("clipping: small gradients are enlarged", "optim/clip.h",
      "return factor < 1.0 ? factor : 1.0;",
      "return factor;",
      "optim_f64:optimizers")

fault("adam: weights decay as with adamw", "optim/optimizer.cpp",
      "if (options_.name == OptimizerKind::adam) return 0;",
      "",
      "optim_f64:optimizers")

fault("adam: second moments are read from the parameter's beginning", "optim/optimizer.cpp",
      "second_[parameter].read(i, to, second)",
      "second_[parameter].read(0, to - i, second)",
      "optim_f64:optimizers")

fault("schedule: cosine rises again after its end", "optim/schedule.h",
      "std::clamp((t - warmup) / (end - warmup), 0.0, 1.0)",
      "(t - warmup) / (end - warmup)",
      "optim_f64:schedules")

fault("optimizer: a step from gradients is not clipped", "optim/optimizer.cpp",
      "step(list, lr, clip_factor(norm, options_.clip_norm));",
      "step(list, lr, 1);",
      "optim_f64:optimizers")

fault("optimizer: a step omits parameters without a gradient", "optim/optimizer.cpp",
      "    const Array g =\n"
      "        gradients[i].defined() ? gradients[i] : Array::zeros(parameters_[i].tensor.shape());\n",
      "    if (!gradients[i].defined()) continue;\n"
      "    const Array& g = gradients[i];\n",
      "optim_f64:optimizers")

fault("segment memory: the first tokens are kept", "nn/segment_memory.cpp",
      "std::copy_n(values + (rows - fresh) * width_, fresh * width_, to);",
      "std::copy_n(values, fresh * width_, to);",
      "nn_f64:segment_memory")

fault("segment memory: every shard reads the first lanes", "nn/layers/attention.cpp",
      "const std::int64_t lane = context.lanes.first + i,",
      "const std::int64_t lane = i,",
      "nn_f64:segment_memory", "training:trainer")

fault("segment memory: not restored with a checkpoint", "train/loop/checkpoint_content.cpp",
      "  memory->restore(std::move(layers));\n",
      "",
      "training:trainer")

fault("prefill: rows begin one position late", "nn/models/generative.cpp",
      "cache_.position = 0;  // position of the first row",
      "cache_.position = 1;",
      "nn_f64:attention_in_models")

fault("prefill: keys are copied from the wrong columns", "nn/layers/attention.cpp",
      "std::span(qkv.value().row(t) + d, width)",
      "std::span(qkv.value().row(t), width)",
      "nn_f64:attention_in_models")

fault("batch norm: each shard has separate statistics", "nn/layers/norm.cpp",
      "{pass.all_reduce, pass.shard});",
      "{});",
      "training:tasks")

fault("batch norm: evaluation uses the statistics of its batch", "nn/layers/norm.cpp",
      "if (!pass.training) {",
      "if (false) {",
      "nn_f64:classifier")

fault("batch norm: running means are updated when the layer runs", "nn/layers/norm.cpp",
      "return batch_norm(x, weight, bias, eps, pass.shard == 0 ? &statistics->latest : nullptr,",
      "if (pass.shard == 0 && statistics->latest.rows > 0) statistics->update_running();\n"
      "  return batch_norm(x, weight, bias, eps, pass.shard == 0 ? &statistics->latest : nullptr,",
      "training:tasks")

fault("swin: windows are shifted in the opposite direction", "nn/models/swin.cpp",
      "at = shift > 0 ? shift : side;",
      "at = shift > 0 ? side - shift : side;",
      "nn_f64:swin")

fault("swin: the corners of a merged patch are transposed", "nn/models/swin.cpp",
      "{std::pair(0, 0), {1, 0}, {0, 1}, {1, 1}}",
      "{std::pair(0, 0), {0, 1}, {1, 0}, {1, 1}}",
      "nn_f64:swin")

fault("batch norm: the running variance is biased", "nn/layers/norm.cpp",
      "latest.rows > 1 ? n / (n - 1) : real(1);",
      "latest.rows > 1 ? n / n : real(1);",
      "nn_f64:classifier")

fault("classifier: no dropout of pooled rows", "nn/models/classifier.cpp",
      "static_cast<real>(pass.rate(dropout_rate_)), pass.next_key())",
      "real(0), pass.next_key())",
      "nn_f64:classifier")

fault("R-Drop: without labels for all rows, the wrong rows are paired", "nn/models/model.cpp",
      "labelled[i] + static_cast<std::int32_t>(labels.size())",
      "labelled[i] + static_cast<std::int32_t>(n)",
      "nn_f64:classifier")

fault("distillation: the teacher's rows without a label remain", "nn/models/model.cpp",
      "rows = index_select(rows, labelled);",
      ";static_cast<void>(rows);",
      "nn_f64:classifier")

fault("Transformer-XL: u is added to the query of the distances, too", "nn/layers/positions.cpp",
      "sub(p.v, p.u)",
      "p.v",
      "nn_f64:position_claims")

fault("moments: bf16 rounds to the nearest value", "autograd/kernels/fast/compact.cpp",
      "hn::Add(load(x + i), noise(rounding, i))",
      "hn::Add(load(x + i), hn::Or(hn::And(noise(rounding, i), set(0)), set(0x8000)))",
      "optim_f64:moments")

fault("moments: a block's largest value may round beyond its exponent", "autograd/kernels/fast/compact.cpp",
      "(largest + digit - 1) >> 23, 40u",
      "largest >> 23, 40u",
      "optim_f64:moments")

fault("moments: a block changes when it is stored again", "autograd/kernels/fast/compact.cpp",
      "(largest + digit - 1) >> 23, 40u",
      "(largest + digit) >> 23, 40u",
      "optim_f64:moments")

fault("moments: a rank rounds by the place in its part", "optim/moments.cpp",
      "static_cast<std::uint32_t>(first_ + begin)}",
      "static_cast<std::uint32_t>(begin)}",
      "training:ranks")

fault("moments: every step rounds with the same numbers", "optim/moments.cpp",
      "mixed(2 * key + (with_sign_ ? 1 : 0))",
      "mixed(0 * key + (with_sign_ ? 1 : 0))",
      "optim_f64:moments")

fault("segment memory longer than a segment keeps the oldest instead of the newest tokens of earlier segments", "nn/segment_memory.cpp",
      "to = std::copy_n(this->lane(layer, lane) + (length_ - old) * width_, old * width_, to);",
      "to = std::copy_n(this->lane(layer, lane), old * width_, to);",
      "nn_f64", "training")

fault("decoding with a front end that shortens sequences: encoder rows of all parts after the first (2,048 source rows) are read at the wrong place", "nn/models/generative.cpp",
      "const std::int32_t first = all_parts.offsets.back();",
      "const std::int32_t first = offsets[begin];",
      "nn_f64", "train")

fault("bf16 and float8 second moments of a parameter that is split between ranks are rounded differently than in one process", "optim/optimizer.cpp",
      "second_.emplace_back(options_.moments, false, shape, first);",
      "second_.emplace_back(options_.moments, false, shape);",
      "optim_f64", "mpi_openmpi")

fault("automatic warmup ignores optim.schedule.steps, so a schedule that ends before the run may consist of warmup only", "optim/schedule.h",
      "for (const std::int64_t end : {total_steps, schedule.steps})",
      "for (const std::int64_t end : {total_steps})",
      "optim_f64", "train", "command_parts")

fault("automatic warmup ignores a run that is shorter than its schedule", "optim/schedule.h",
      "  for (const std::int64_t end : {total_steps, schedule.steps})\n"
      "    if (end > 0) warmup = std::min(warmup, end / 10);\n",
      "  const std::int64_t end = schedule.steps > 0 ? schedule.steps : total_steps;\n"
      "  if (end > 0) warmup = std::min(warmup, end / 10);\n",
      "optim_f64:schedules")

fault("moments are rounded with the same noise in each step", "optim/optimizer.cpp",
      "  // Differs between parameters and between steps.\n"
      "  const auto key =\n"
      "      static_cast<std::uint32_t>(steps_ * 0x9E3779B1) + static_cast<std::uint32_t>(parameter);",
      "  // Differs between parameters.\n"
      "  const auto key = static_cast<std::uint32_t>((parameter + 1) * 0x9E3779B1);",
      "optim_f64:moments")

fault("the cached sinusoids of a wider model serve a narrower one", "nn/layers/positions.cpp",
      "  if (!cached.defined() || cached.cols() != d || cached.rows() < n)",
      "  if (!cached.defined() || cached.cols() < d || cached.rows() < n)",
      "training", "nn_f64")

fault("the shorter side of a grid limits the windows of Swin", "nn/models/swin.cpp",
      "  const std::int64_t side = std::min(options.swin.window, std::max(height, width));",
      "  const std::int64_t side = std::min(options.swin.window, std::min(height, width));",
      "nn_f64:swin")

fault("the window of a convolution of even width is one row late in an encoder", "nn/layers/convolution.cpp",
      "      before(scope == AttentionScope::past ? width - 1 : width / 2) {}",
      "      before(scope == AttentionScope::past ? width - 1 : (width - 1) / 2) {}",
      "nn_f64:mixers")

fault("when a compact moment is stored, the unused tail of its last block is not set to zero, so stale values there decide the block's common exponent", "optim/moments.cpp",
      "  std::fill(all + n, all + padded(n), 0.0F);\n",
      "",
      "optim_f64:moments")

fault("when the segment memory is full, it keeps the oldest of the remembered tokens instead of the newest ones beside the new segment", "nn/segment_memory.cpp",
      "this->lane(layer, lane) + (length_ - old) * width_, old * width_, to);",
      "this->lane(layer, lane), old * width_, to);",
      "nn_f64:segment_memory")

fault("with train.recompute the state of the pass is not moved past a block's dropouts, so every block of a stack draws the same dropout masks", "nn/layers/block.cpp",
      "  context.pass = *after;\n",
      "",
      "nn_f64:recomputed_blocks")

fault("the </s> between two texts of a line already has the segment of the second text", "nn/models/backbone.h",
      """        all[row] = segment;
        if (ids[row] == ids[end - 1]) segment = std::min(segment + 1, last);
""",
      """        if (ids[row] == ids[end - 1]) segment = std::min(segment + 1, last);
        all[row] = segment;
""",
      "nn_f64:classifier")

fault("cross-attention always uses softmax, whatever model.attention.map is", "nn/layers/attention.cpp",
      """                           .pattern = pattern,
                           .map = map};
  if (scope == AttentionScope::encoder_output) return options;
""",
      """                           .pattern = pattern};
  if (scope == AttentionScope::encoder_output) return options;
  options.map = map;
""",
      "nn_f64:attention_layers")

fault("whether loaded weights are int8 is decided by the last tensor of the model alone", "nn/weights.cpp",
      """      found.names.quantised |= scaled;
""",
      """      found.names.quantised = scaled;
""",
      "nn_f64:weights_in_files")

fault("a language model with learned positions has a table of max_positions rows instead of one row for each position of its context", "nn/models/language_model.cpp",
      """    with_table.max_positions = options.context;
""",
      "",
      "nn_f64:properties")

fault("with compact moments, the optimizer reports whether the weights of the last chunk of 1,024 values were finite, not whether all were", "optim/optimizer.cpp",
      "      finite &= kernels::adam(adam,",
      "      finite = kernels::adam(adam,",
      "optim_f64:moments")

fault("the cosine schedule begins at lr + min_lr instead of at lr", "optim/schedule.h",
      "             (options.lr - schedule.min_lr) * 0.5 * (1 + std::cos(std::numbers::pi * done));",
      "             options.lr * 0.5 * (1 + std::cos(std::numbers::pi * done));",
      "optim_f64:golden")

fault("cross-attention reads only the keys of the pattern of self-attention (window, BigBird) instead of all rows of its encoder sequence", "nn/layers/attention.cpp",
      """      pattern(which == AttentionScope::encoder_output
                  ? full_pattern()
                  : make_pattern(options.attention, which == AttentionScope::past)) {""",
      "      pattern(make_pattern(options.attention, which == AttentionScope::past)) {",
      "nn_f64:properties")

fault("the pattern of a context, which replaces that of self-attention, also replaces that of cross-attention", "nn/layers/attention.cpp",
      """  if (scope == AttentionScope::encoder_output) return options;
  if (context.pattern != nullptr) options.pattern = context.pattern;
""",
      """  if (context.pattern != nullptr) options.pattern = context.pattern;
  if (scope == AttentionScope::encoder_output) return options;
""",
      "nn_f64:attention_layers")

fault("with recomputation, a block ignores the pattern of its context", "nn/layers/block.cpp",
      """    inner.pattern = pattern;
""",
      """    static_cast<void>(pattern);
""",
      "nn_f64:recomputed_blocks")

fault("a language model has no dropout of its embeddings", "nn/models/language_model.cpp",
      """    decoder_.dropout_rate = options.dropout.residual;
""",
      "",
      "nn_f64:dropout_in_layers")

fault("of an encoder-decoder model, only the decoder has dropout of its embeddings", "nn/models/seq2seq.cpp",
      """      backbone->dropout_rate = options.dropout.residual;
""",
      """      if (backbone == &decoder_) backbone->dropout_rate = options.dropout.residual;
""",
      "nn_f64:dropout_in_layers")

fault("the dropout after the patch embedding of Swin has the rate of the feed-forward layers", "nn/models/swin.cpp",
      "      dropout_rate_(options.dropout.residual),",
      "      dropout_rate_(options.dropout.activation),",
      "nn_f64:dropout_in_layers")

fault("cross-attention always has the scale 1/sqrt(size), whatever model.attention.scale is", "nn/layers/attention.cpp",
      "      scale(options.attention.scale),",
      "      scale(which == AttentionScope::encoder_output ? 0 : options.attention.scale),",
      "nn_f64:attention_layers")

fault("cross-attention has as many key heads as query heads, whatever model.attention.kv_heads is", "nn/layers/attention.cpp",
      "      kv_heads(options.attention.kv_heads == 0 ? heads : options.attention.kv_heads),",
      """      kv_heads(options.attention.kv_heads == 0 || which == AttentionScope::encoder_output
                   ? heads
                   : options.attention.kv_heads),""",
      "nn_f64:attention_layers")

fault("every text after the first has the last segment, so a model with three segments does not distinguish the second text from the third", "nn/models/backbone.h",
      "if (ids[row] == ids[end - 1]) segment = std::min(segment + 1, last);",
      "if (ids[row] == ids[end - 1]) segment = last;",
      "nn_f64:classifier")

fault("in a stage of Swin, all blocks after the first have shifted windows, not every second one", "nn/models/swin.cpp",
      "cut_into_windows(height, width, side, i % 2 == 0 ? 0 : side / 2),",
      "cut_into_windows(height, width, side, i == 0 ? 0 : side / 2),",
      "nn_f64:swin")

fault("in an encoder with relative_shaw, the first row of the table belongs to the distance 1 - rows instead of -shaw_distance, so that all keys up to the query share the last vector", "nn/layers/positions.cpp",
      "p.causal ? 0 : -(distances / 2));",
      "p.causal ? 0 : 1 - distances);",
      "nn_f64:position_claims")

fault("a classifier with relative_t5 has the buckets of a causal stack: all later keys share the bias of distance 0", "nn/models/backbone.h",
      "positions(options, kind != BlockKind::encoder, init),",
      "positions(options, true, init),",
      "nn_f64:position_claims")

fault("the encoder of an encoder-decoder model with relative_t5 has the buckets of a causal stack", "nn/models/seq2seq.cpp",
      "Positions(options, backbone == &decoder_, init);",
      "Positions(options, true, init);",
      "nn_f64:position_claims")

fault("in a parallel decoder block, cross-attention reads the rows before the norm", "nn/layers/block.cpp",
      "add(mix(rows), cross(rows)) : mix(rows);",
      "add(mix(rows), cross(x)) : mix(rows);",
      "nn_f64:properties")

fault("with moments in fewer bytes, SGD does not store its momentum", "optim/optimizer.cpp",
      """      second_[parameter].write(i, to, v, key);
    }
    first_[parameter].write(i, to, m, key);
""",
      """      second_[parameter].write(i, to, v, key);
      first_[parameter].write(i, to, m, key);
    }
""",
      "optim_f64:moments")

fault("of a model with BigBird, the numbers of adjacent and of random blocks are exchanged", "nn/layers/patterns.h",
      "{a.block, a.global_blocks, a.side_blocks, a.random_blocks, causal});",
      "{a.block, a.global_blocks, a.random_blocks, a.side_blocks, causal});",
      "nn_f64:attention_in_models")

fault("batch norm in evaluation uses the default epsilon, whatever model.norm_eps is", "nn/layers/norm.cpp",
      "{statistics->running_mean.value(), statistics->running_var.value(), 0}, eps);",
      "{statistics->running_mean.value(), statistics->running_var.value(), 0});",
      "nn_f64:classifier")

fault("the norm of the embeddings is applied before the vectors of the positions are added instead of to their sum", "nn/models/backbone.h",
      """    x = positions(x, offsets, context.first_position());
    if (embedding_norm) x = (*embedding_norm)(x, pass);
""",
      """    if (embedding_norm) x = (*embedding_norm)(x, pass);
    x = positions(x, offsets, context.first_position());
""",
      "nn_f64:gradcheck_models")

fault("the feed-forward layer with a gated activation (swiglu, geglu, geglu_tanh) has no dropout of its hidden values", "nn/layers/feed_forward.cpp",
      """    return dropout(gated(*gate, linear1(x)), p, pass.next_key());
""",
      """    return gated(*gate, linear1(x));
""",
      "nn_f64:dropout_in_layers")

fault("in a decoder the table of relative_shaw has shaw_distance rows instead of shaw_distance + 1, so the distance shaw_distance - 1 already shares the key of all greater ones", "nn/layers/positions.cpp",
      """init.table(p.causal ? farthest + 1 : 2 * farthest + 1, o.d_model);
""",
      """init.table(p.causal ? farthest : 2 * farthest + 1, o.d_model);
""",
      "nn_f64:position_claims")

fault("with output_bias: auto, a projection to the vocabulary that has its own matrix has a bias even if model.bias is false", "nn/models/backbone.h",
      """      (options.output_bias == OutputBias::automatic && options.bias && !shared.defined());
""",
      """      (options.output_bias == OutputBias::automatic && !shared.defined());
""",
      "train:import_folders")

fault("optimizer::step uses the learning rate of the step before, so the first step of a run with warmup has the rate 0", "optim/optimizer.cpp",
      "learning_rate(options_, steps_ + 1, schedule.steps)",
      "learning_rate(options_, steps_, schedule.steps)",
      "optim_f64:optimizers")

fault("a clip_norm of 0 scales all gradients to 0 instead of leaving them unclipped", "optim/clip.h",
      """  if (max_norm <= 0 || !std::isfinite(norm)) return 1.0;
""",
      """  if (max_norm < 0 || !std::isfinite(norm)) return 1.0;
""",
      "optim_f64:optimizers")
