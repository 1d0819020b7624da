#pragma once
/// Token mixers: the first sublayer of a block (block.h), in which a row reads other rows of its
/// sequence. Self-attention, recurrent layers (recurrent.h) and a gated convolution (convolution.h)
/// are built in; plugins register others by name (docs/PLUGINS.md).
#include <functional>
#include <memory>
#include <string_view>

#include "autograd/base/open_enum.h"
#include "nn/context.h"
#include "nn/option_kinds.h"
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

}  // namespace heed

HEED_BEGIN

/// The rows that a row attends to: all rows of its sequence; itself and earlier rows; or the output
/// of the encoder (cross-attention only).
enum class AttentionScope {
  all,
  past,
  encoder_output,
  memory [[deprecated("use encoder_output")]] = encoder_output,
};

/// A mixer must not modify itself while it runs: several threads, each with a shard, call it
/// concurrently.
class Mixer {
 public:
  virtual ~Mixer() = default;

  /// x: [rows, d] → [rows, d]. Sequence i has rows [context.offsets[i], context.offsets[i + 1]) of
  /// input and output. Dropout must use context.pass: rate() and next_key().
  virtual Tensor operator()(const Tensor& x, const Context& context) const = 0;
  /// The weights and their names. Checkpoints contain the names, so they must not change.
  virtual Parameters parameters() const = 0;

  /// A decoding step of a mixer with AttentionScope::past: context.cache is set, and row i of x and
  /// of the result is the newest row of hypothesis i: [hypotheses, d] → [hypotheses, d]. The
  /// default stores x in the cache and processes whole sequences, so the time of a step grows with
  /// the number of rows so far. An override stores its state in
  /// context.cache->layers[context.layer].entries (see Cache). Throws Error(failed) while a tape is
  /// recording.
  virtual Tensor step(const Tensor& x, const Context& context) const;

  /// Processes a prompt that all hypotheses share, [rows, d] → [rows, d], and fills the empty
  /// cache. The default calls step() for each row; self-attention processes all rows in one pass.
  virtual Tensor prefill(const Tensor& x, const Context& context) const;

 protected:
  /// The running state of decoding, for a step() that depends on earlier rows only through `width`
  /// values per hypothesis: [hypotheses, width], initially zero. The step updates it in place; the
  /// next step receives it in the new order of the hypotheses. Throws Error(failed) while a tape is
  /// recording.
  static Array& running_state(const Context& context, std::int64_t hypotheses, std::int64_t width);
};

using MixerFactory = std::function<std::unique_ptr<Mixer>(const ModelOptions& options,
                                                          AttentionScope scope, Init& init)>;

/// Registers a mixer under a name. The factory receives AttentionScope::all in an encoder and
/// AttentionScope::past in a decoder. Throws Error(bad_input) if the name is already registered or
/// does not consist of words joined by dots, as in mine.gate.
void add_mixer(std::string_view name, MixerFactory make);
/// Makes the mixer that options.mixer names. Throws Error(failed) if its plugin registers it only
/// for the other type of `real`.
std::unique_ptr<Mixer> make_mixer(const ModelOptions& options, AttentionScope scope, Init& init);

using Sees [[deprecated("use AttentionScope")]] = AttentionScope;

HEED_END
