#pragma once
/// Token mixers: the first part of a block (block.h), where the rows of a sequence read one another.
/// Self-attention, recurrent layers (recurrent.h) and a gated convolution (convolution.h) are built in; others
/// are registered by name (docs/PLUGINS.md).
#include <functional>
#include <memory>
#include <string_view>

#include "autograd/base/open_enum.h"
#include "nn/context.h"
#include "nn/parameters.h"

namespace heed {

enum class MixerKind : int { attention, lstm, gru, conv };

inline OpenNames& open_names(MixerKind) {
  static OpenNames names("mixer", {"attention", "lstm", "gru", "conv"});
  return names;
}
inline const std::vector<std::string_view>& names_of(MixerKind kind) {
  return open_names(kind).all();
}
inline bool is_built_in(MixerKind kind) {
  return static_cast<std::size_t>(kind) < open_names(kind).built_in();
}

}  // namespace heed

HEED_BEGIN

/// Which rows a row attends to: all rows of its sequence; itself and earlier ones; or the output of the
/// encoder (cross-attention only).
enum class AttentionScope {
  all,
  past,
  encoder_output,
  memory [[deprecated("use encoder_output")]] = encoder_output,
};

/// A mixer must not modify itself while it runs: shards call it from several threads at once.
class Mixer {
 public:
  virtual ~Mixer() = default;

  /// x: [rows, d] → [rows, d]. Sequence i owns rows [context.offsets[i], context.offsets[i + 1]) of
  /// both. Dropout takes its rate and its key from context.pass.
  virtual Tensor operator()(const Tensor& x, const Context& context) const = 0;
  /// The weights by name. The names must not change: checkpoints use them.
  virtual Parameters parameters() const = 0;

  /// A step of decoding, for a mixer with AttentionScope::past: context.cache is set, row i of x is the
  /// newest of hypothesis i, and so is row i of the result: [hypotheses, d] → [hypotheses, d]. By
  /// default it stores x in the cache and runs whole sequences: the time of a step is then
  /// proportional to the rows so far. An override stores its state in
  /// context.cache->layers[context.layer].entries (see Cache). Throws Error(failed) while a tape is
  /// recording.
  virtual Tensor step(const Tensor& x, const Context& context) const;

  /// Processes the rows of a prompt that all hypotheses share, [rows, d] → [rows, d], and fills the empty
  /// cache. By default it calls step() for each row; self-attention processes all rows in one pass.
  virtual Tensor prefill(const Tensor& x, const Context& context) const;

 protected:
  /// For a step that needs only what the step before left, `width` values for each hypothesis:
  /// [hypotheses, width], zeros at first. What the step leaves in it is there in the next step, in the order
  /// of the hypotheses then. Throws Error(failed) while a tape is recording.
  static Array& running_state(const Context& context, std::int64_t hypotheses, std::int64_t width);
};

using MixerFactory = std::function<std::unique_ptr<Mixer>(const ModelOptions& options,
                                                          AttentionScope scope, Init& init)>;

/// Adds a mixer by name. `scope` is AttentionScope::all in an encoder and AttentionScope::past in a decoder. Throws
/// Error(bad_input) if the name is taken or has no dot.
void add_mixer(std::string_view name, MixerFactory make);
/// The mixer that options.mixer names. Throws Error(failed) if only the other build (real = float or
/// double) registers it.
std::unique_ptr<Mixer> make_mixer(const ModelOptions& options, AttentionScope scope, Init& init);

using Sees [[deprecated("use AttentionScope")]] = AttentionScope;

HEED_END
