/// Plugins with one fault each.
#include <heed/autograd/ops.h>
#include <heed/nn/layers/plugin.h>
#include <heed/nn/linear.h>

namespace {

#ifdef AHEAD
/// Reads the next row, even in a decoder.
struct Ahead final : heed::Mixer {
  Ahead(const heed::ModelOptions&, heed::AttentionScope, heed::Init& init) : gain(init.ones(1)) {}
  heed::Tensor operator()(const heed::Tensor& x, const heed::Context& context) const override {
    std::vector<heed::Tensor> rows;
    for (std::size_t s = 0; s + 1 < context.offsets.size(); ++s) {
      const std::int64_t begin = context.offsets[s], end = context.offsets[s + 1];
      if (begin < end) rows.push_back(slice(x, 0, begin + 1, end));
      if (begin < end) rows.push_back(slice(x, 0, begin, begin + 1));
    }
    return concat(rows, 0) * gain;
  }
  heed::Parameters parameters() const override { return {{"gain", gain}}; }
  heed::Tensor gain;
};
#endif

#ifdef FORGETS
/// softmax; if it forgets, its gradient is y ⊙ dy, which lacks the term −y⟨dy, y⟩.
struct Forgetful {
  bool forgets = true;
  heed::Array y;
  heed::Array forward(const heed::Array& x) { return y = softmax(x).value(); }
  void backward(const heed::Array& dy, heed::Grad dx) const {
    const heed::Tensor along = sum(mul(dy, y), -1, true);
    dx.add(mul(y, forgets ? heed::Tensor(dy) : sub(dy, along)).value());
  }
};

/// Mixes nothing: each row becomes a function of itself. The gradient is wrong always, or for batches
/// of a single sequence.
template <bool always>
struct Forgets final : heed::Mixer {
  heed::Linear in, out;
  Forgets(const heed::ModelOptions& options, heed::AttentionScope, heed::Init& init)
      : in(options.d_model, options.d_model, init), out(options.d_model, options.d_model, init) {}
  heed::Tensor operator()(const heed::Tensor& x, const heed::Context& context) const override {
    return out(heed::apply(Forgetful{always || context.offsets.size() == 2, {}}, in(x)));
  }
  heed::Parameters parameters() const override {
    heed::Parameters all;
    append(all, "in", in);
    append(all, "out", out);
    return all;
  }
};
#endif

#ifdef UNDOTTED
heed::Tensor same(const heed::Tensor& x) { return x; }
#endif

}  // namespace

#ifdef AHEAD
HEED_MIXER("wrong.ahead", Ahead)
#endif
#ifdef FORGETS
HEED_MIXER("wrong.forgets", Forgets<true>)
HEED_MIXER("wrong.alone", Forgets<false>)
#endif
#ifdef UNDOTTED
HEED_ACTIVATION("gelu", same)
#endif
#ifdef LOST
heed::Tensor defined_nowhere(const heed::Tensor& x);
HEED_ACTIVATION("wrong.lost", defined_nowhere)
#endif
