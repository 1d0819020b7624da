// `heed trace`: every matrix equals its formula, applied to the previous matrices. P, O and the
// gradients of the projections equal those of the model.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "autograd/io/utf8.h"
#include "nn/layers/attention.h"
#include "nn/layers/patterns.h"
#include "nn/layers/positions.h"
#include "tests/train/trainer_support.h"
#include "train/decode/model_input.h"
#include "train/loop/trainer.h"
#include "train/views/report/attention/trace_page.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(traces)

namespace {

using Rows2 = std::vector<std::vector<double>>;

/// The matrices of a trace, read from its JSON.
struct Read {
  std::map<std::string, Rows2> matrices;
  std::map<std::string, std::string> formulas, abouts;
  double scale = 0;
  std::int64_t head = 0, heads = 0;

  explicit Read(const nlohmann::json& record)
      : scale(record.at("scale")), head(record.at("head")), heads(record.at("heads")) {
    for (const char* part : {"forward", "backward"}) {
      if (!record.contains(part)) continue;
      for (const nlohmann::json& step : record.at(part)) {
        Rows2 rows;
        for (const nlohmann::json& row : step.at("values")) {
          rows.emplace_back();
          for (const nlohmann::json& v : row)
            rows.back().push_back(v.is_null() ? -std::numeric_limits<double>::infinity()
                                              : v.get<double>());
        }
        const std::string symbol = step.at("symbol");
        BOOST_TEST(step.at("shape")[0] == rows.size());
        BOOST_TEST(step.at("shape")[1] == rows.at(0).size());
        BOOST_TEST(!matrices.contains(symbol));
        matrices[symbol] = rows;
        formulas[symbol] = step.value("formula", "");
        abouts[symbol] = step.value("about", "");
      }
    }
  }
  bool has(const std::string& symbol) const { return matrices.contains(symbol); }
  const Rows2& operator[](const std::string& symbol) const { return matrices.at(symbol); }

  /// Checks that the elements of a matrix equal f(row, column), up to rounding errors.
  template <class F>
  void equals(const std::string& symbol, F f) const {
    BOOST_TEST_CONTEXT(symbol << " = " << formulas.at(symbol)) {
      const Rows2& m = matrices.at(symbol);
      double worst = 0;
      for (std::size_t i = 0; i < m.size(); ++i) {
        for (std::size_t j = 0; j < m[i].size(); ++j) {
          const double expected = f(i, j);
          if (std::isinf(m[i][j]) && std::isinf(expected)) continue;
          worst = std::max(worst, std::abs(m[i][j] - expected));
        }
      }
      BOOST_TEST(worst < 1e-12);
    }
  }
};

/// Element (i, j) of A B.
double mul(const Rows2& a, const Rows2& b, std::size_t i, std::size_t j) {
  double s = 0;
  for (std::size_t k = 0; k < b.size(); ++k) s += a[i][k] * b[k][j];
  return s;
}
/// Element (i, j) of A Bᵀ.
double mul_t(const Rows2& a, const Rows2& b, std::size_t i, std::size_t j) {
  double s = 0;
  for (std::size_t k = 0; k < a[i].size(); ++k) s += a[i][k] * b[j][k];
  return s;
}
/// Element (i, j) of Aᵀ B.
double t_mul(const Rows2& a, const Rows2& b, std::size_t i, std::size_t j) {
  double s = 0;
  for (std::size_t k = 0; k < a.size(); ++k) s += a[k][i] * b[k][j];
  return s;
}

/// Element (i, c) of x after each pair k of columns is rotated by the angle `direction` · i · θ_k.
/// With `halves`, pair k consists of columns k and k + size/2, otherwise of columns 2k and 2k + 1.
double turned(const Rows2& x, std::size_t i, std::size_t c, double direction, bool halves) {
  const std::size_t size = x[i].size(), k = halves ? c % (size / 2) : c / 2;
  const bool first = halves ? c < size / 2 : c % 2 == 0;
  const std::size_t partner = halves ? (c + size / 2) % size : c ^ 1;
  const double angle = direction * static_cast<double>(i) *
                       std::pow(10000.0, -2.0 * static_cast<double>(k) / static_cast<double>(size));
  return x[i][c] * std::cos(angle) + (first ? -1 : 1) * x[i][partner] * std::sin(angle);
}

/// The row of R for the distance i − j. Row 0 is for the distance 1 − (number of keys).
const std::vector<double>& of_distance(const Read& t, std::size_t i, std::size_t j) {
  return t["R"][i + t["K"].size() - 1 - j];
}

void check_forward(const Read& t, const ModelOptions& model, bool self) {
  const std::string memory = self ? "X" : "M";
  const bool halves = model.rotary_pairs == RotaryPairs::halves;
  for (const std::string letter : {"Q", "K", "V"}) {
    const Rows2 &x = t[letter == "Q" ? "X" : memory], &w = t["W_" + letter], &b = t["b_" + letter];
    t.equals(letter, [&](auto i, auto j) { return mul(x, w, i, j) + b[0][j]; });
  }
  std::string q = "Q", k = "K";
  if (t.has("Q′")) {
    t.equals("Q′", [&](auto i, auto c) { return turned(t["Q"], i, c, 1, halves); });
    t.equals("K′", [&](auto i, auto c) { return turned(t["K"], i, c, 1, halves); });
    q = "Q′", k = "K′";
  }
  t.equals("A", [&](auto i, auto j) { return mul_t(t[q], t[k], i, j); });
  if (t.has("R")) {
    t.equals("B", [&](auto i, auto j) {
      double s = 0;
      for (std::size_t c = 0; c < t["Q"][i].size(); ++c)
        s += (t["Q"][i][c] + (t.has("w") ? t["w"][0][c] : 0)) * of_distance(t, i, j)[c];
      return t.scale * s;
    });
  } else if (model.positions == PositionKind::alibi && self) {
    const double m =
        std::exp2(-8.0 * static_cast<double>(t.head + 1) / static_cast<double>(t.heads));
    double worst = 0;
    for (std::size_t i = 0; i < t["B"].size(); ++i)
      for (std::size_t j = 0; j < t["B"][i].size(); ++j)
        worst = std::max(worst, std::abs(t["B"][i][j] + m * std::abs(double(i) - double(j))));
    BOOST_TEST(worst < 1e-6);  // heed computes the slopes in float32
  }
  const bool plain = !t.has("C");
  const std::string scaled = plain ? "S" : "C";
  t.equals(scaled, [&](auto i, auto j) { return t.scale * t["A"][i][j]; });
  if (!plain) {
    t.equals("S", [&](auto i, auto j) {
      if (std::isinf(t["S"][i][j])) return t["S"][i][j];
      return t["C"][i][j] + (t.has("B") ? t["B"][i][j] : 0);
    });
  }
  t.equals("P", [&](auto i, auto j) {
    double total = 0;
    for (const double s : t["S"][i]) total += std::exp(s);
    return std::exp(t["S"][i][j]) / total;
  });
  t.equals("O", [&](auto i, auto j) { return mul(t["P"], t["V"], i, j); });
  t.equals("Y", [&](auto i, auto j) { return mul(t["O"], t["W_O"], i, j); });
}

void check_backward(const Read& t, const ModelOptions& model, bool self) {
  const bool halves = model.rotary_pairs == RotaryPairs::halves, rotary = t.has("Q′");
  const std::string q = rotary ? "Q′" : "Q", k = rotary ? "K′" : "K", memory = self ? "X" : "M";
  t.equals("dV", [&](auto i, auto j) { return t_mul(t["P"], t["dO"], i, j); });
  t.equals("dP", [&](auto i, auto j) { return mul_t(t["dO"], t["V"], i, j); });
  t.equals("D", [&](auto i, auto) {
    double s = 0;
    for (std::size_t j = 0; j < t["P"][i].size(); ++j) s += t["P"][i][j] * t["dP"][i][j];
    return s;
  });
  // The Jacobian of softmax, element by element.
  t.equals("dS", [&](auto i, auto j) {
    double s = 0;
    for (std::size_t l = 0; l < t["P"][i].size(); ++l)
      s += t["P"][i][l] * ((l == j ? 1 : 0) - t["P"][i][j]) * t["dP"][i][l];
    return s;
  });
  t.equals("d" + q, [&](auto i, auto c) {
    double s = mul(t["dS"], t[k], i, c);
    for (std::size_t j = 0; t.has("R") && j < t["dS"][i].size(); ++j)
      s += t["dS"][i][j] * of_distance(t, i, j)[c];
    return t.scale * s;
  });
  t.equals("d" + k, [&](auto i, auto c) { return t.scale * t_mul(t["dS"], t[q], i, c); });
  if (rotary) {
    t.equals("dQ", [&](auto i, auto c) { return turned(t["dQ′"], i, c, -1, halves); });
    t.equals("dK", [&](auto i, auto c) { return turned(t["dK′"], i, c, -1, halves); });
  }
  const auto from_kv = [&](auto i, auto c) {
    return mul_t(t["dK"], t["W_K"], i, c) + mul_t(t["dV"], t["W_V"], i, c);
  };
  t.equals("dX", [&](auto i, auto c) {
    return mul_t(t["dQ"], t["W_Q"], i, c) + (self ? from_kv(i, c) : 0.0);
  });
  if (!self) t.equals("dM", from_kv);
  t.equals("dW_Q", [&](auto i, auto j) { return t_mul(t["X"], t["dQ"], i, j); });
  t.equals("dW_K", [&](auto i, auto j) { return t_mul(t[memory], t["dK"], i, j); });
  t.equals("dW_V", [&](auto i, auto j) { return t_mul(t[memory], t["dV"], i, j); });
}

/// Compares the tape's gradient with respect to in_proj_weight with the gradients in the heads'
/// traces, summed over the heads that use the same rows of in_proj_weight.
void check_gradients(const std::vector<Read>& heads, const Array& g, std::int64_t key_heads) {
  const auto count = std::ssize(heads);
  const auto size = std::ssize(heads[0]["Q"][0]);
  const std::int64_t d = count * size, group = count / key_heads;
  double worst = 0, largest = 0;
  const auto compare = [&](std::int64_t first, const std::string& symbol, std::int64_t begin,
                           std::int64_t end) {
    for (std::int64_t c = 0; c < size; ++c) {
      for (std::int64_t r = 0; r < g.cols(); ++r) {
        double share = 0;
        for (std::int64_t h = begin; h < end; ++h) share += heads[h][symbol][r][c];
        worst = std::max(worst, std::abs(share - double{g.row(first + c)[r]}));
        largest = std::max(largest, std::abs(share));
      }
    }
  };
  for (std::int64_t h = 0; h < count; ++h) compare(h * size, "dW_Q", h, h + 1);
  for (std::int64_t h = 0; h < key_heads; ++h) {
    compare(d + h * size, "dW_K", h * group, (h + 1) * group);
    compare(d + (key_heads + h) * size, "dW_V", h * group, (h + 1) * group);
  }
  BOOST_TEST(largest > 1e-4);
  BOOST_TEST(worst < 1e-5 * std::max(largest, 0.1));
}

struct Line {
  std::string input, target;
};

using CheckSteps = std::function<void(const Read&, const ModelOptions&, bool self)>;

void check_steps(const Read& t, const ModelOptions& model, bool self) {
  check_forward(t, model, self);
  check_backward(t, model, self);
}

/// Checks the trace of every head of every layer of a model that is trained for a few steps.
void check_model(const Config& c, const std::filesystem::path& folder, const Line& line,
                 const CheckSteps& check = check_steps) {
  Run run(c, folder);
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  trainer.train();
  const LoadedModel trained = trainer.loaded_model();
  const Config& config = trainer.task().config();
  const Batch batch = trainer.task().batch_of_line(trained.tokenizers, line.input, line.target);
  Pass pass;
  const double labels = static_cast<double>(batch.label_count());
  const Tensor loss =
      trained.model.loss(model_input(batch), {config.train.label_smoothing, labels}, pass);
  Gradients gradients = backward(loss);
  for (const std::string& layer : attention_layers(trained.model, config)) {
    BOOST_TEST_CONTEXT(layer) {
      const bool self = !layer.ends_with("multihead_attn");
      std::vector<Read> heads;
      for (std::int64_t h = 0; h < config.model->heads; ++h) {
        const AttentionTrace trace = trace_attention(trained, config, batch, {layer, h, true});
        BOOST_TEST(trace.difference < 1e-5);
        BOOST_TEST(trace.loss == double{loss.value().item()});
        heads.emplace_back(nlohmann::json::parse(json_of(trace).dump()));
        check(heads.back(), config.model, self);
        BOOST_TEST(!trace_text(trace, {"", {}}).empty());
      }
      for (const NamedTensor& p : trained.model.parameters()) {
        if (p.name != layer + ".in_proj_weight") continue;
        const std::int64_t given = config.model->attention.kv_heads;
        check_gradients(heads, gradients[p.tensor], given == 0 ? config.model->heads : given);
      }
    }
  }
}

Config reversing() {
  Config c = small_run(3);
  c.model->d_model = 16;
  c.model->heads = 4;
  c.train.validate_every = c.train.save_every = 3;
  return c;
}

/// The formula of B and the remark about it or, if it is computed from R, about R.
const std::map<PositionKind, std::pair<std::string, std::string>> formulas_of_terms{
    {PositionKind::alibi, {"B_ij = −m |i − j|", "ALiBi, m = 0."}},
    {PositionKind::relative_shaw,
     {"B_ij = c Q_i R[i − j]ᵀ", "model.positions: relative_shaw, a key for each distance i − j"}},
    {PositionKind::relative_t5,
     {"B_ij = b[bucket(i − j)]",
      "model.positions: relative_t5, a learned bias for each bucket of distances"}},
    {PositionKind::relative_xl,
     {"B_ij = c (Q_i + w) R[i − j]ᵀ",
      "model.positions: relative_xl, a key for each distance i − j"}}};

void check_formula(const Read& t, PositionKind kind, bool self) {
  BOOST_TEST(t.has("B") == (self && info_of(kind).adds_to_scores()));
  BOOST_TEST(t.has("Q′") == (self && info_of(kind).map_heads != nullptr));
  if (!t.has("B")) return;
  BOOST_TEST(!t.formulas.at("B").empty());
  const auto expected = formulas_of_terms.find(kind);
  if (expected == formulas_of_terms.end()) return;
  BOOST_TEST(t.formulas.at("B") == expected->second.first);
  BOOST_TEST(t.abouts.at(t.has("R") ? "R" : "B").starts_with(expected->second.second));
}

/// S_ij += j ⟨q_i, 1⟩ / 10
struct Tilt final : ScoreTerm {
  void add(const ScoreBlock& block, real* s) const override {
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const real* const q = block.q + r * block.q_stride;
      const real sum = std::accumulate(q, q + block.size, real(0));
      for (std::int64_t k = 0; k < block.keys; ++k)
        s[r * block.keys + k] += static_cast<real>(block.key + k) * sum / 10;
    }
  }
  void backward(const ScoreBlock& block, const real* ds, real* dq,
                std::span<const Grad>) const override {
    for (std::int64_t r = 0; r < block.rows; ++r) {
      real sum = 0;
      for (std::int64_t k = 0; k < block.keys; ++k)
        sum += static_cast<real>(block.key + k) * ds[r * block.keys + k] / 10;
      for (std::int64_t c = 0; c < block.size; ++c) dq[r * block.q_stride + c] += sum;
    }
  }
  TermFormula formula(const ScoreBlock&) const override {
    return {"B_ij = j Σ_c Q_ic / 10", "a tilt"};
  }
};

/// Self-attention with a term that heed does not know.
struct TiltedAttention final : Mixer {
  MultiHeadAttention attention;
  std::vector<ScoreTermPtr> terms{std::make_shared<Tilt>()};

  TiltedAttention(const ModelOptions& options, AttentionScope scope, Init& init)
      : attention(options, scope, init) {}
  Tensor operator()(const Tensor& x, const Context& context) const override {
    Context tilted = context;
    tilted.terms = terms;
    return attention(x, tilted);
  }
  Parameters parameters() const override { return attention.parameters(); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(trace_is_correct_for_every_position_scheme) {
  const TempFolder folder;
  for (std::size_t i = 0; i < position_schemes().size(); ++i) {
    const auto kind = static_cast<PositionKind>(i);
    BOOST_TEST_CONTEXT(name_of(kind)) {
      Config c = reversing();
      c.model->positions = kind;
      c.model->shaw_distance = 2;
      check_model(c, folder / std::string(name_of(kind)), {"abcde", "edcba"},
                  [&](const Read& t, const ModelOptions& model, bool self) {
                    check_steps(t, model, self);
                    check_formula(t, kind, self);
                  });
    }
  }
  Config c = reversing();
  c.model->positions = PositionKind::rotary;
  c.model->rotary_pairs = RotaryPairs::adjacent;
  check_model(c, folder / "adjacent", {"abc", "cba"});
}

BOOST_AUTO_TEST_CASE(unknown_term_is_traced_with_its_formula_and_gradient) {
  const TempFolder folder;
  add_mixer("test.tilted", [](const ModelOptions& options, AttentionScope scope, Init& init) {
    return std::make_unique<TiltedAttention>(options, scope, init);
  });
  Config c = reversing();
  c.model->mixer = static_cast<MixerKind>(names_of(MixerKind{}).size() - 1);
  c.model->positions = PositionKind::none;
  check_model(c, folder / "tilted", {"abcde", "edcba"},
              [](const Read& t, const ModelOptions& model, bool self) {
                if (!self) return check_steps(t, model, self);
                check_forward(t, model, self);
                BOOST_TEST(t.formulas.at("B") == "B_ij = j Σ_c Q_ic / 10");
                BOOST_TEST(t.abouts.at("B") == "a tilt");
                BOOST_TEST(t.formulas.at("dQ") == "c dS K + Σ_j dS_ij ∂B_ij / ∂Q_i");
              });
}

BOOST_AUTO_TEST_CASE(trace_is_correct_for_sparse_patterns_and_shared_heads) {
  const TempFolder folder;
  for (std::size_t i = 1; i < pattern_table.size(); ++i) {
    const auto pattern = static_cast<PatternKind>(i);
    if (!info_of(pattern).scores) continue;
    BOOST_TEST_CONTEXT(name_of(pattern)) {
      Config c = reversing();
      c.model->attention.pattern = pattern;
      c.model->attention.window = 3;
      c.model->attention.top_k = 2;
      c.model->attention.block = 2;
      c.model->attention.global_blocks = c.model->attention.random_blocks = 1;
      c.model->attention.side_blocks = 0;
      check_model(c, folder / std::string(name_of(pattern)), {"abcdefgh", "hgfedcba"});
    }
  }
  for (const std::int64_t kv_heads : {1, 2}) {
    Config c = reversing();
    c.model->attention.kv_heads = kv_heads;
    c.model->attention.scale = 0.7;
    c.model->norm = NormPlace::post;
    check_model(c, folder / fmt::format("kv{}", kv_heads), {"abcd", "dcba"});
  }
}

BOOST_AUTO_TEST_CASE(trace_is_correct_for_language_model_tagger_and_classifier) {
  const TempFolder folder;
  put(folder / "text", "a b c a b c a b c\n");
  put(folder / "source", "a b c\nb a c\n");
  put(folder / "tags", "x y z\ny x z\n");
  put(folder / "classes", "x\ny\n");
  for (const TaskKind task : {TaskKind::lm, TaskKind::tag, TaskKind::classify}) {
    BOOST_TEST_CONTEXT(info_of(task).name) {
      Config c = reversing();
      c.task = task;
      c.data = {};
      c.tokenizer.kind = TokenizerKind::words;
      c.model->context = 4;
      const bool tag = task == TaskKind::tag;
      if (task == TaskKind::lm) {
        c.data.train.text = {(folder / "text").string()};
      } else {
        c.data.train = {
            {(folder / "source").string()}, {(folder / (tag ? "tags" : "classes")).string()}, {}};
      }
      check_model(c, folder / std::string(info_of(task).name),
                  {"a b c a", task == TaskKind::lm ? ""
                              : tag                ? "x y z x"
                                                   : "y"});
    }
  }
}

BOOST_AUTO_TEST_CASE(text_and_page_of_a_trace_contain_symbols_shapes_and_formulas) {
  const TempFolder folder;
  Config c = reversing();
  c.model->d_model = 64;
  Run run(c, folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  trainer.train();
  const LoadedModel trained = trainer.loaded_model();
  const Batch batch = trainer.task().batch_of_line(trained.tokenizers, "abc", "cba");
  const AttentionTrace trace = trace_attention(trained, trainer.task().config(), batch,
                                               {"decoder.layers.0.self_attn", 1, true});
  const std::string text = trace_text(trace, {"a head", {{"input", "abc"}}});
  for (const char* part :
       {"decoder.layers.0.self_attn, head 1 of 4", "Q = X W_Q + b_Q  [4 × 16]", "A = Q Kᵀ  [4 × 4]",
        "c = 1 / √16 = 0.25", "O = P V", "D_i = Σ_j P_ij dP_ij", "columns shown", "·", "<s>",
        "Backward: The loss of this line", "(model.attention.pattern: full, causal)",
        "dS_i = dP_i (diag(P_i) − P_iᵀ P_i)", "dW_K = Xᵀ dK  [64 × 16]  ∂loss / ∂W_K",
        "the mean over 4 labels"})
    BOOST_TEST(text.find(part) != std::string::npos, part << " is missing in\n" << text);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  ")) BOOST_TEST(character_count(line) <= 100u, line);
  const std::string page = trace_page(trace, {"a <head>", {{"input", "<script>"}}});
  BOOST_TEST(page.find("<h3>P = softmax(S) <span class=\"quiet\">[4 × 4]") != std::string::npos);
  BOOST_TEST(page.find("&lt;script&gt;") != std::string::npos);
  BOOST_TEST(page.find("<script") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(gradients_of_shared_keys_and_values_are_marked_as_shares) {
  const TempFolder folder;
  Config c = reversing();
  c.model->attention.kv_heads = 2;
  c.model->positions = PositionKind::alibi;
  Run run(c, folder / "run");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  trainer.train();
  const LoadedModel trained = trainer.loaded_model();
  const auto text = [&](const std::string& input, const std::string& layer) {
    const Batch batch = trainer.task().batch_of_line(trained.tokenizers, input, input);
    return trace_text(trace_attention(trained, trainer.task().config(), batch, {layer, 3, true}),
                      {"", {}});
  };
  const std::string some = text("ab", "encoder.layers.0.self_attn");
  for (const char* part : {"key head 1 of 2 (counted from 0); the layer has 4 query heads.",
                           "this head's share of ∂loss / ∂W_K, a matrix shared by 2 heads",
                           "this head's share of ∂loss / ∂W_V, a matrix shared by 2 heads",
                           "  ∂loss / ∂W_Q", "ALiBi, m = 0.00390625"})
    BOOST_TEST(some.find(part) != std::string::npos, part << " is missing in\n" << some);
  const std::string one =
      text("", "decoder.layers.0.self_attn");  // a single row does not determine m
  BOOST_TEST(one.find("ALiBi\n") != std::string::npos, one);
  BOOST_TEST(one.find("the mean over 1 label, label smoothing") != std::string::npos, one);
}

BOOST_AUTO_TEST_CASE(hard_attention_and_missing_labels_are_refused) {
  const TempFolder folder;
  Config c = reversing();
  c.model->attention.map = ScoreMap::hard;
  Run run(c, folder / "hard");
  Trainer trainer(run.config, run.paths(), run.data, run.run_log);
  trainer.train();
  const LoadedModel trained = trainer.loaded_model();
  const Batch batch = trainer.task().batch_of_line(trained.tokenizers, "abc", "cba");
  const auto trace = [&](const Config& config, const Batch& of, bool backward) {
    return error_of(Exit::usage, [&] {
      trace_attention(trained, config, of, {"encoder.layers.0.self_attn", 0, backward});
    });
  };
  BOOST_TEST(trace(trainer.task().config(), batch, false).find("map is hard") != std::string::npos);
  Batch unlabelled = batch;
  std::ranges::fill(unlabelled.labels, no_label);
  Config soft = trainer.task().config();
  soft.model->attention.map = ScoreMap::softmax;
  BOOST_TEST(trace(soft, unlabelled, true).find("--target") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
