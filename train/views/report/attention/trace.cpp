#include "train/views/report/attention/trace.h"
#include "autograd/tape/observer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "autograd/base/error.h"
#include "autograd/tape/profile.h"
#include "nn/layers/patterns.h"
#include "nn/layers/positions.h"
#include "nn/options.h"
#include "train/decode/model_input.h"

HEED_BEGIN

namespace {

// ---- matrices ----------------------------------------------------------------------------------

/// The matrix of the elements f(row, column).
template <class Element>
Matrix matrix_of(std::int64_t rows, std::int64_t columns, Element f) {
  Matrix m(rows, columns);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) m(r, c) = f(r, c);
  return m;
}
Matrix transposed(const Matrix& a) {
  return matrix_of(a.columns, a.rows, [&](auto r, auto c) { return a(c, r); });
}
Matrix product(const Matrix& a, const Matrix& b) {
  return matrix_of(a.rows, b.columns, [&](auto r, auto c) {
    double sum = 0;
    for (std::int64_t k = 0; k < a.columns; ++k) sum += a(r, k) * b(k, c);
    return sum;
  });
}
Matrix scaled(const Matrix& a, double by) {
  return matrix_of(a.rows, a.columns, [&](auto r, auto c) { return a(r, c) * by; });
}
/// a + b; a single row b is added to each row of a.
Matrix sum(const Matrix& a, const Matrix& b) {
  return matrix_of(a.rows, a.columns,
                   [&](auto r, auto c) { return a(r, c) + b(b.rows == 1 ? 0 : r, c); });
}
Matrix softmax(const Matrix& s) {
  Matrix p(s.rows, s.columns);
  for (std::int64_t r = 0; r < s.rows; ++r) {
    double largest = -std::numeric_limits<double>::infinity(), total = 0;
    for (std::int64_t c = 0; c < s.columns; ++c) largest = std::max(largest, s(r, c));
    if (std::isinf(largest)) continue;  // the row is fully masked
    for (std::int64_t c = 0; c < s.columns; ++c) total += p(r, c) = std::exp(s(r, c) - largest);
    for (std::int64_t c = 0; c < s.columns; ++c) p(r, c) /= total;
  }
  return p;
}
double largest_difference(const Matrix& a, const Matrix& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i)
    largest = std::max(largest, std::abs(a.values[i] - b.values[i]));
  return largest;
}
/// Copies rows; row(r) is the address of row r.
template <class Row>
Matrix rows_at(std::int64_t rows, std::int64_t columns, Row row) {
  return matrix_of(rows, columns, [&](auto r, auto c) { return double{row(r)[c]}; });
}
Matrix matrix_from(const Array& a) {
  return rows_at(a.rows(), a.cols(), [&](auto i) { return a.row(i); });
}

// ---- the cotangents of the op ------------------------------------------------------------------

/// Records dO of each call of attention, the last call first.
struct OutputGradients final : OpObserver {
  std::vector<Array> found;

  void run_backward(Node& node, const Array& dy, std::span<const Grad> dx) override {
    const std::string name = op_name(node.op());
    if (name == "SelfAttention" || name == "CrossAttention") found.push_back(dy);
    node.backward(dy, dx);
  }
};

// ---- the calculation ---------------------------------------------------------------------------

class Calculation {
 public:
  Calculation(const AttentionMaps& maps, const LayerWeights& layer, const Model& model,
              const ModelOptions& options, std::int64_t head)
      : r_(layer.record),
        options_(options),
        self_(layer.self),
        causal_(layer.self && layer.queries_are_target),
        h_(head),
        kh_(r_.layout.key_head(head)),
        size_(r_.layout.size),
        queries_(maps.queries(layer)),
        keys_(maps.keys(layer)),
        scale_(r_.scale),
        scheme_(info_of(self_ ? options.positions : PositionKind::none)) {
    if (scheme_.head_map != nullptr) map_ = scheme_.head_map(options);
    for (const NamedTensor& p : model.parameters()) {
      if (p.name.starts_with(layer.name + "."))
        parameters_.push_back({p.name.substr(layer.name.size() + 1), p.tensor});
    }
    trace_.layer = layer.name;
    trace_.head = head;
    trace_.heads = r_.heads;
    trace_.scale = scale_;
    forward(layer.record.of(0, head));
  }

  void backward(const Array& d_output) {
    into_ = &trace_.backward;
    const Matrix dO = rows_at(n(), size_, [&](auto i) { return d_output.row(i) + h_ * size_; });
    add("dO", "∂loss / ∂O", "the gradient of the layer's output, times W_Oᵀ", queries_, {}, dO);
    const Matrix &p = at("P"), &q = at(turned("Q")), &k = at(turned("K"));
    const Matrix dV = product(transposed(p), dO), dP = product(dO, transposed(at("V")));
    add("dV", "Pᵀ dO", "", keys_, {}, dV);
    add("dP", "dO Vᵀ", "", queries_, keys_, dP);
    const Matrix d = matrix_of(n(), 1, [&](auto i, auto) {
      double total = 0;
      for (std::int64_t j = 0; j < m(); ++j) total += p(i, j) * dP(i, j);
      return total;
    });
    add("D", "D_i = Σ_j P_ij dP_ij", "the mean of each row of dP, weighted by P", queries_, {"D"},
        d);
    const Matrix dS =
        matrix_of(n(), m(), [&](auto i, auto j) { return p(i, j) * (dP(i, j) - d(i, 0)); });
    add("dS", "P ⊙ (dP − D)", "gradient of softmax: dS_i = dP_i (diag(P_i) − P_iᵀ P_i)", queries_,
        keys_, dS);
    Matrix dQ = scaled(product(dS, k), scale_), dK = scaled(product(transposed(dS), q), scale_);
    const std::string from_terms = add_from_terms(dS, dQ);
    add("d" + turned("Q"), fmt::format("c dS {}{}", turned("K"), from_terms), "", queries_, {}, dQ);
    add("d" + turned("K"), "c dSᵀ " + turned("Q"), "", keys_, {}, dK);
    if (map_) {
      dQ = mapped(dQ, -1);
      dK = mapped(dK, -1);
      const auto how = [&](const char* i) { return fmt::format(fmt::runtime(map_->backward), i); };
      add("dQ", "dQ′_i " + how("i"), "", queries_, {}, dQ);
      add("dK", "dK′_j " + how("j"), "", keys_, {}, dK);
    }
    const Matrix from_q = product(dQ, transposed(at("W_Q"))),
                 from_kv =
                     sum(product(dK, transposed(at("W_K"))), product(dV, transposed(at("W_V"))));
    const std::string about = "this head's share of ∂loss / ∂";
    if (self_) {
      add("dX", "dQ W_Qᵀ + dK W_Kᵀ + dV W_Vᵀ", about + "X", queries_, {}, sum(from_q, from_kv));
    } else {
      add("dX", "dQ W_Qᵀ", about + "X", queries_, {}, from_q);
      add("dM", "dK W_Kᵀ + dV W_Vᵀ", about + "M", keys_, {}, from_kv);
    }
    const std::int64_t sharing = r_.layout.heads / r_.layout.key_heads;
    const auto whose = [&](const std::string& symbol) {
      return sharing == 1
                 ? "∂loss / ∂" + symbol
                 : fmt::format("{}{}, a matrix shared by {} heads", about, symbol, sharing);
    };
    const std::string key_rows = self_ ? "X" : "M";
    add("dW_Q", "Xᵀ dQ", "∂loss / ∂W_Q", {}, {}, product(transposed(at("X")), dQ));
    add("dW_K", key_rows + "ᵀ dK", whose("W_K"), {}, {}, product(transposed(at(key_rows)), dK));
    add("dW_V", key_rows + "ᵀ dV", whose("W_V"), {}, {}, product(transposed(at(key_rows)), dV));
  }

  AttentionTrace result() { return std::move(trace_); }

 private:
  std::int64_t n() const { return std::ssize(queries_); }
  std::int64_t m() const { return std::ssize(keys_); }
  std::string turned(const std::string& symbol) const { return map_ ? symbol + "′" : symbol; }

  void add(const std::string& symbol, const std::string& formula, const std::string& about,
           const std::vector<std::string>& rows, const std::vector<std::string>& columns,
           Matrix matrix) {
    into_->push_back({symbol, formula, about, rows, columns, std::move(matrix)});
  }
  const TraceStep* find(const std::string& symbol) const {
    const auto at = std::ranges::find(trace_.forward, symbol, &TraceStep::symbol);
    return at == trace_.forward.end() ? nullptr : &*at;
  }
  bool has(const std::string& symbol) const { return find(symbol) != nullptr; }
  const Matrix& at(const std::string& symbol) const { return find(symbol)->matrix; }
  Array parameter(std::string_view name) const {
    const auto found = std::ranges::find(parameters_, name, &NamedTensor::name);
    if (found == parameters_.end()) throw Error(Exit::failed, "{} has no {}", trace_.layer, name);
    return found->tensor.value();
  }

  /// Adds W and b of the query, key or value projection, whose rows in in_proj begin at `first`.
  void add_projection(const std::string& letter, std::int64_t first) {
    const Array w = parameter("in_proj_weight"), b = parameter("in_proj_bias");
    add("W_" + letter, "",
        fmt::format("in_proj_weight, rows {} to {}, transposed", first, first + size_ - 1), {}, {},
        matrix_of(w.cols(), size_, [&](auto r, auto c) { return double{w.row(first + c)[r]}; }));
    const bool with_u = letter == "Q" && !scheme_.query_bias.empty();
    const Array u = with_u ? parameter("positions.u") : Array();
    add("b_" + letter, with_u ? "b + u" : "",
        with_u ? fmt::format("in_proj_bias plus {}", scheme_.query_bias) : "in_proj_bias", {"b"},
        {}, matrix_of(1, size_, [&](auto, auto c) {
          return double{b.data()[first + c]} + (with_u ? double{u.data()[first + c]} : 0.0);
        }));
  }
  void project(const std::string& letter, const std::string& from, const std::string& about,
               const std::vector<std::string>& names) {
    add(letter, fmt::format("{0} W_{1} + b_{1}", from, letter), about, names, {},
        sum(product(at(from), at("W_" + letter)), at("b_" + letter)));
  }

  void forward(const Array& model_weights) {
    trace_.forward.reserve(32);  // no reallocation: references from `at` remain valid
    const std::int64_t width = r_.layout.heads * size_, kv = r_.layout.key_heads * size_;
    const std::string key_rows = self_ ? "X" : "M";
    add("X", "",
        options_.norm == NormPlace::pre ? "the input of the layer, after the norm"
                                        : "the input of the layer",
        queries_, {}, matrix_from(r_.input));
    if (!self_) add("M", "", "the encoder output", keys_, {}, matrix_from(r_.encoder_output));
    add_projection("Q", h_ * size_);
    add_projection("K", width + kh_ * size_);
    add_projection("V", width + kv + kh_ * size_);
    project("Q", "X", "a query for each row", queries_);
    project("K", key_rows, "a key for each row", keys_);
    project("V", key_rows, "a value for each row", keys_);
    if (r_.layout.key_heads < r_.layout.heads)
      trace_.notes.push_back(fmt::format(
          "This head reads the keys and values of key head {} of {} (counted from 0); the "
          "layer has {} query heads.",
          kh_, r_.layout.key_heads, r_.layout.heads));
    if (map_) map_heads();
    const std::string q = turned("Q"), k = turned("K");
    add("A", fmt::format("{} {}ᵀ", q, k), "the product of each query with each key", queries_,
        keys_, product(at(q), transposed(at(k))));
    scores(model_weights);
    add("P", "softmax(S)", "each row: exp(S_ij) / Σ_j exp(S_ij)", queries_, keys_,
        softmax(at("S")));
    add("O", "P V", "the weighted sums of the values", queries_, {}, product(at("P"), at("V")));
    const Array out = parameter("out_proj.weight");
    add("W_O", "",
        fmt::format("out_proj.weight, columns {} to {}, transposed", h_ * size_,
                    (h_ + 1) * size_ - 1),
        {}, {}, matrix_of(size_, out.rows(), [&](auto r, auto c) {
          return double{out.row(c)[h_ * size_ + r]};
        }));
    add("Y", "O W_O",
        fmt::format("this head's share of the layer's output, which also includes "
                    "out_proj.bias (heads: {})",
                    r_.heads),
        queries_, {}, product(at("O"), at("W_O")));
    trace_.difference = std::max(largest_difference(at("P"), matrix_from(model_weights)),
                                 largest_difference(at("O"), rows_at(n(), size_, [&](auto i) {
                                                      return r_.output.row(i) + h_ * size_;
                                                    })));
  }

  /// Adds the scores: S = c A or, with score terms of positions or masked keys, C = c A and then S.
  void scores(const Array& model_weights) {
    for (const ScoreTermPtr& term : r_.terms) add_term(*term);
    const bool top_k = self_ && info_of(options_.attention.pattern).largest;
    const Array& reads = r_.reads[0];
    const auto hidden = [&](auto i, auto j) {
      return reads.row(i)[j] == 0 || (top_k && model_weights.row(i)[j] == 0);
    };
    bool hides = false;
    for (std::int64_t i = 0; i < n(); ++i)
      for (std::int64_t j = 0; j < m(); ++j) hides = hides || hidden(i, j);
    const bool plain = !hides && !has("B");
    const double root = 1 / std::sqrt(static_cast<double>(size_));
    const std::string about = std::abs(scale_ - root) < 1e-6 * root
                                  ? fmt::format("c = 1 / √{} = {:.6g}", size_, scale_)
                                  : fmt::format("c = {:.6g} (model.attention.scale)", scale_);
    add(plain ? "S" : "C", "c A", about, queries_, keys_, scaled(at("A"), scale_));
    if (plain) return;
    Matrix s = has("B") ? sum(at("C"), at("B")) : at("C");
    for (std::int64_t i = 0; i < n(); ++i)
      for (std::int64_t j = 0; j < m(); ++j)
        if (hidden(i, j)) s(i, j) = -std::numeric_limits<double>::infinity();
    std::string mask = hides ? "· is −∞: a key that the query does not read" : "";
    if (hides && self_)
      mask += fmt::format(" (model.attention.pattern: {}{})", name_of(options_.attention.pattern),
                          causal_ ? ", causal" : "");
    add("S", has("B") ? hides ? "C + B, masked" : "C + B" : "C, masked", mask, queries_, keys_,
        std::move(s));
  }

  /// The scores of the head.
  ScoreBlock block() const {
    return {0, h_, r_.heads, 0, n(), 0, m(), r_.query(0, h_), r_.q.cols(), size_, r_.scale};
  }
  /// Adds B, the values that a score term adds to the scores.
  void add_term(const ScoreTerm& term) {
    const TermFormula f = term.formula(block());
    const bool trained = scheme_.adds_to_scores() && !term.inputs().empty();
    const std::string about =
        (trained ? fmt::format("model.positions: {}, ", scheme_.name) : "") + f.about;
    if (f.keys.defined()) return add_keys(f, about);
    Array b = Array::zeros({n(), m()});
    term.add(block(), b.data());
    add("B", f.formula, about, queries_, keys_, matrix_from(b));
  }
  /// Adds R, the head's keys for distances, and B, computed from R.
  void add_keys(const TermFormula& f, const std::string& about) {
    std::vector<std::string> names;
    for (std::int64_t d = 1 - m(); d < n(); ++d) names.push_back(fmt::format("{}", d));
    add("R", "", about + (causal_ ? "; distances below 0 belong to keys that are not read" : ""),
        names, {}, rows_at(f.keys.rows(), size_, [&](auto row) {
          return f.keys.row(f.keys.rows() - 1 - row);
        }));
    Matrix q = at("Q");
    if (f.shift.defined()) {
      add("w", f.shift_formula, "added to the query in its products with R", {"w"}, {},
          matrix_from(f.shift));
      q = sum(q, at("w"));
    }
    const Matrix& distances = at("R");
    add("B", f.formula, "", queries_, keys_, matrix_of(n(), m(), [&](auto i, auto j) {
          double total = 0;
          for (std::int64_t c = 0; c < size_; ++c)
            total += q(i, c) * distances(row_of_distance(i - j), c);
          return scale_ * total;
        }));
  }
  std::int64_t row_of_distance(std::int64_t distance) const { return distance + m() - 1; }

  /// Adds the gradients of the queries in the score terms to dQ. Returns their formula.
  std::string add_from_terms(const Matrix& dS, Matrix& dQ) const {
    if (has("R")) {
      const Matrix& distances = at("R");
      dQ = sum(dQ, matrix_of(n(), size_, [&](auto i, auto c) {
                 double total = 0;
                 for (std::int64_t j = 0; j < m(); ++j)
                   total += dS(i, j) * distances(row_of_distance(i - j), c);
                 return scale_ * total;
               }));
      return " + c Σ_j dS_ij R[i − j]";
    }
    const std::vector<real> ds(dS.values.begin(), dS.values.end());
    Array dq = Array::zeros({n(), r_.q.cols()});
    for (const ScoreTermPtr& term : r_.terms) {
      std::vector<Grad> none;
      for (std::size_t i = 0; i < term->inputs().size(); ++i) none.push_back(Grad::not_required(i));
      term->backward(block(), ds.data(), dq.data(), none);
    }
    if (std::ranges::all_of(dq.values(), [](real v) { return v == 0; })) return "";
    dQ = sum(dQ, rows_at(n(), size_, [&](auto i) { return dq.row(i); }));
    return " + Σ_j dS_ij ∂B_ij / ∂Q_i";
  }

  void map_heads() {
    add("Q′", "Q′_i = Q_i, " + map_->forward,
        fmt::format("{} positions: i counts from 0", scheme_.name), queries_, {},
        mapped(at("Q"), 1));
    add("K′", "K′_i = K_i, " + map_->forward, "", keys_, {}, mapped(at("K"), 1));
  }
  /// x with row i mapped as a head at position i or, if `direction` is −1, as its gradient.
  Matrix mapped(Matrix x, double direction) const {
    for (std::int64_t i = 0; i < x.rows; ++i) map_->apply(&x(i, 0), i, direction);
    return x;
  }

  const AttentionRecord& r_;
  const ModelOptions& options_;
  const bool self_, causal_;
  const std::int64_t h_, kh_, size_;
  const std::vector<std::string>&queries_, &keys_;
  const double scale_;
  const PositionScheme& scheme_;
  std::optional<HeadMap> map_ = {};  ///< the map of queries and keys by their positions
  Parameters parameters_;
  AttentionTrace trace_;
  std::vector<TraceStep>* into_ = &trace_.forward;
};

nlohmann::json json_of(const std::vector<TraceStep>& steps) {
  nlohmann::json all = nlohmann::json::array();
  for (const TraceStep& step : steps) {
    nlohmann::json rows = nlohmann::json::array();
    for (std::int64_t r = 0; r < step.matrix.rows; ++r) {
      nlohmann::json row = nlohmann::json::array();
      for (std::int64_t c = 0; c < step.matrix.columns; ++c) {
        const double v = step.matrix(r, c);
        row.push_back(std::isinf(v) ? nlohmann::json() : nlohmann::json(v));
      }
      rows.push_back(std::move(row));
    }
    nlohmann::json one{{"symbol", step.symbol},
                       {"shape", {step.matrix.rows, step.matrix.columns}},
                       {"values", std::move(rows)}};
    if (!step.formula.empty()) one["formula"] = step.formula;
    if (!step.about.empty()) one["about"] = step.about;
    if (!step.rows.empty()) one["rows"] = step.rows;
    if (!step.columns.empty()) one["columns"] = step.columns;
    all.push_back(std::move(one));
  }
  return all;
}

/// The message for --backward with a line that has no loss.
std::string without_loss(TaskKind task) {
  const std::string needs = "--backward needs the loss of this line: ";
  const Architecture architecture = info_of(task).architecture;
  if (architecture == Architecture::decoder)
    return needs + "give --input at least two tokens, because the first token is not predicted";
  if (architecture == Architecture::encoder_of_tokens)
    return needs +
           fmt::format("task {} has a loss only at randomly masked tokens", info_of(task).name);
  return needs + "give its output or labels with --target";
}

}  // namespace

AttentionTrace trace_attention(const LoadedModel& trained, const Config& config, const Batch& batch,
                               const TraceRequest& request) {
  if (config.model->attention.map != ScoreMap::softmax)
    throw Error(Exit::usage, "model.attention.map is {}: heed trace supports only softmax",
                name_of(config.model->attention.map));
  const std::int64_t labels = batch.label_count();
  if (request.backward && labels == 0) throw Error(Exit::usage, without_loss(config.task));
  double loss = 0;
  OutputGradients gradients;
  const auto run = [&] {
    Pass pass;
    const Tensor y = trained.model.loss(
        model_input(batch), {config.train.label_smoothing, static_cast<double>(labels)}, pass);
    loss = double{y.item()};
    backward(y);
  };
  const AttentionMaps maps =
      attention_maps(trained, config, batch,
                     request.backward ? std::function<void()>(run) : std::function<void()>());
  const auto layer = std::ranges::find(maps.layers, request.layer, &LayerWeights::name);
  if (layer == maps.layers.end())
    throw Error(Exit::failed, "the model did not run {}", request.layer);
  if (maps.queries(*layer).empty())
    throw Error(Exit::usage, "--input: a line without tokens has no attention weights");
  Calculation calculation(maps, *layer, trained.model, config.model, request.head);
  if (!request.backward) return calculation.result();
  if (gradients.found.size() != maps.layers.size())
    throw Error(Exit::failed, "{} of {} calls of attention have a gradient", gradients.found.size(),
                maps.layers.size());
  calculation.backward(gradients.found[maps.layers.end() - layer - 1]);
  AttentionTrace trace = calculation.result();
  trace.loss = loss;
  trace.labels = labels;
  trace.label_smoothing = config.train.label_smoothing;
  return trace;
}

nlohmann::json json_of(const AttentionTrace& trace) {
  nlohmann::json record{{"layer", trace.layer},
                        {"head", trace.head},
                        {"heads", trace.heads},
                        {"scale", trace.scale},
                        {"forward", json_of(trace.forward)},
                        {"difference", trace.difference}};
  if (!trace.notes.empty()) record["notes"] = trace.notes;
  if (!trace.backward.empty()) {
    record["backward"] = json_of(trace.backward);
    record["loss"] = trace.loss;
    record["labels"] = trace.labels;
    record["label_smoothing"] = trace.label_smoothing;
  }
  return record;
}

HEED_END
