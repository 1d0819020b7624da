// Models that label each source row or each sequence, or that predict masked tokens.
#include "nn/models/classifier.h"

#include "autograd/gradcheck.h"
#include "tests/nn/support.h"

HEED_BEGIN

BOOST_AUTO_TEST_SUITE(classifier)

namespace {

constexpr std::int64_t vocabulary = 7, labels = 5;

/// Three lines with a label for each token.
struct Labelled {
  Pairs pairs{{3, 1, 4}, {3, 1, 4}, labels};
  ModelInput input() const { return {pairs.source_side(), {}, pairs.target_out}; }
};

}  // namespace

BOOST_AUTO_TEST_CASE(row_classifier_passes_gradcheck) {
  const Labelled lines;
  for (const NormPlace norm : {NormPlace::pre, NormPlace::post}) {
    for (const double dropout : {0.0, 0.3}) {
      ModelOptions o = small_options();
      o.norm = norm;
      o.positions = dropout > 0 ? PositionKind::learned : PositionKind::sinusoidal;
      o.max_positions = 4;
      o.dropout = dropout;
      const std::unique_ptr<Model> model =
          make_classifier(o, Labelling::rows, vocabulary, labels, 1);
      randomise(model->parameters());
      const auto loss = [&] {
        Pass pass{dropout > 0, 5, 17, 2};
        return model->loss(lines.input(), {0.1, 7.0}, pass);
      };
      BOOST_TEST(gradcheck_parameters(loss, model->parameters()));
    }
  }
}

BOOST_AUTO_TEST_CASE(loss_of_classifier_equals_cross_entropy_of_logits) {
  const Labelled lines;
  const std::unique_ptr<Classifier> model =
      make_classifier(small_options(), Labelling::rows, vocabulary, labels, 1);
  randomise(model->parameters());
  Pass pass;
  LossCounts counts, plain_counts;
  const Tensor loss = model->loss(lines.input(), {0.1, 3.0, &counts}, pass);
  const Tensor logits = model->logits(lines.input(), pass);
  BOOST_TEST((logits.shape() == Shape{8, labels}));
  const Tensor plain =
      cross_entropy(logits, lines.pairs.target_out, static_cast<real>(0.1), 3.0, &plain_counts);
  BOOST_TEST(std::abs(loss.item() / plain.item() - 1) < 1e-12);
  BOOST_TEST(counts.tokens == 8);
  BOOST_TEST(counts.correct == plain_counts.correct);
}

BOOST_AUTO_TEST_CASE(logits_of_line_do_not_depend_on_batch) {
  const Labelled lines;
  const std::unique_ptr<Classifier> model =
      make_classifier(small_options(), Labelling::rows, vocabulary, labels, 1);
  randomise(model->parameters());
  Pass pass;
  const Array together = model->logits(lines.input(), pass).value();
  for (std::int64_t i = 0; i < 3; ++i) {
    const Pairs one = lines.pairs.only(i);
    const Array alone = model->logits({one.source_side(), {}, one.target_out}, pass).value();
    const auto& at = lines.pairs.source_offsets;
    BOOST_TEST(difference(alone, together.sliced(at[i], at[i + 1])) < 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(encoder_architecture_creates_a_row_classifier) {
  const ModelOptions o = small_options();
  const Parameters made =
                       make_model(Architecture::encoder, o, {vocabulary, labels}, 1)->parameters(),
                   same = make_classifier(o, Labelling::rows, vocabulary, labels, 1)->parameters();
  BOOST_TEST(made.size() == same.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    BOOST_TEST(made[i].name == same[i].name);
    BOOST_TEST(same_bits(made[i].tensor.value(), same[i].tensor.value()));
  }
}

// If evaluation used the statistics of the batch, the logits of a line would depend on other lines.
BOOST_AUTO_TEST_CASE(batch_norm_in_evaluation_uses_running_means) {
  ModelOptions o = small_options();
  o.norm_kind = NormKind::batch;
  const std::unique_ptr<Classifier> model =
      make_classifier(o, Labelling::rows, vocabulary, labels, 1);
  randomise(model->parameters());
  const Labelled lines;
  const auto logits_of = [&](const Pairs& pairs) {
    Pass pass;
    return model->logits({pairs.source_side(), {}, {}}, pass).value();
  };
  const Array together = logits_of(lines.pairs);
  for (std::int64_t i = 0; i < 3; ++i) {
    BOOST_TEST(difference(logits_of(lines.pairs.only(i)),
                          rows_of_sequence(together, lines.pairs.source_offsets, i)) < 1e-12);
  }
  for (NamedTensor& t : model->state()) {
    if (t.name.ends_with("running_mean")) t.tensor.mutable_value().values()[0] += 1;
  }
  BOOST_TEST(difference(logits_of(lines.pairs), together) > 1e-3);
}

// running += 0.1 (batch − running), with the variance Σ (x − mean)² / (n − 1), as in PyTorch. The
// variance of a single row counts as 0. Training normalises with Σ (x − mean)² / n, evaluation with
// the running statistics.
BOOST_AUTO_TEST_CASE(outputs_and_running_statistics_of_batch_norm_equal_their_definition) {
  ModelOptions o = small_options();
  o.norm_kind = NormKind::batch;
  o.norm_eps = 0.03;
  Init init(1);
  const Norm norm(o, init);
  randomise(norm.parameters());
  std::vector<double> mean(o.d_model, 0), variance(o.d_model, 1);
  for (const std::int64_t rows : {5, 3, 1, 2}) {
    const Array x = normal({rows, o.d_model}, static_cast<std::uint32_t>(rows));
    const auto n = static_cast<double>(rows);
    Pass pass{true, 5, 17, 0}, evaluation;
    const Array in_training = norm(Tensor(x), pass).value();
    norm.statistics->update_running();
    const Array in_evaluation = norm(Tensor(x), evaluation).value();
    for (std::int64_t c = 0; c < o.d_model; ++c) {
      double sum = 0, squares = 0;
      for (std::int64_t r = 0; r < rows; ++r) sum += x.row(r)[c];
      for (std::int64_t r = 0; r < rows; ++r) squares += std::pow(x.row(r)[c] - sum / n, 2);
      mean[c] = 0.9 * mean[c] + 0.1 * sum / n;
      variance[c] = 0.9 * variance[c] + 0.1 * (rows > 1 ? squares / (n - 1) : 0);
      BOOST_TEST(std::abs(norm.statistics->running_mean.value().data()[c] - mean[c]) < 1e-14);
      BOOST_TEST(std::abs(norm.statistics->running_var.value().data()[c] - variance[c]) < 1e-14);
      const auto normalised = [&](double value, double centre, double spread) {
        return (value - centre) / std::sqrt(spread + 0.03) * norm.weight.value().data()[c] +
               norm.bias.value().data()[c];
      };
      for (std::int64_t r = 0; r < rows; ++r) {
        const double value = x.row(r)[c];
        BOOST_TEST(std::abs(in_training.row(r)[c] - normalised(value, sum / n, squares / n)) <
                   1e-13);
        BOOST_TEST(std::abs(in_evaluation.row(r)[c] - normalised(value, mean[c], variance[c])) <
                   1e-13);
      }
    }
  }
}

/// Labels only for the first row of each line.
std::vector<std::int32_t> labels_of_lines() {
  return {4, ignored_target, ignored_target, 0, 2, ignored_target, ignored_target, ignored_target};
}

BOOST_AUTO_TEST_CASE(sequence_classifier_passes_gradcheck) {
  Labelled lines;
  lines.pairs.target_out = labels_of_lines();
  for (const Pool pool : {Pool::first, Pool::mean}) {
    for (const double dropout : {0.0, 0.3}) {
      ModelOptions o = small_options();
      o.pool = pool;
      o.dropout = dropout;
      o.segments = 2;
      const auto model = make_classifier(o, Labelling::sequences, vocabulary, labels, 1);
      randomise(model->parameters());
      const auto loss = [&] {
        Pass pass{dropout > 0, 5, 17, 2};
        return model->loss(lines.input(), {0.1, 3.0}, pass);
      };
      BOOST_TEST(gradcheck_parameters(loss, model->parameters()));
      Pass pass;
      BOOST_TEST((model->logits(lines.input(), pass).shape() == Shape{3, labels}));
    }
  }
}

BOOST_AUTO_TEST_CASE(pooled_row_is_first_row_or_mean) {
  const Labelled lines;
  for (const Pool pool : {Pool::first, Pool::mean}) {
    ModelOptions o = small_options();
    o.pool = pool;
    const auto rows = make_classifier(o, Labelling::rows, vocabulary, labels, 1),
               whole = make_classifier(o, Labelling::sequences, vocabulary, labels, 1);
    randomise(rows->parameters());
    randomise(whole->parameters());  // equal values in both models
    Pass pass;
    const Array each = rows->logits(lines.input(), pass).value(),
                one = whole->logits(lines.input(), pass).value();
    for (std::int64_t s = 0; s < 3; ++s) {
      const std::int64_t begin = lines.pairs.source_offsets[s],
                         end = pool == Pool::first ? begin + 1 : lines.pairs.source_offsets[s + 1];
      for (std::int64_t c = 0; c < labels; ++c) {
        double mean = 0;  // the projection is linear, so it commutes with the mean
        for (std::int64_t r = begin; r < end; ++r)
          mean += each.row(r)[c] / static_cast<double>(end - begin);
        BOOST_TEST(std::abs(one.row(s)[c] - mean) < 1e-12);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(token_classifier_passes_gradcheck) {
  Labelled lines;
  lines.pairs.target_out = {ignored_target, 3, ignored_target, 1, ignored_target,
                            ignored_target, 6, ignored_target};
  for (const bool tied : {true, false}) {
    ModelOptions o = small_options();
    o.tie_embeddings = tied;
    o.norm = NormPlace::post;
    o.positions = PositionKind::learned;
    o.max_positions = 4;
    o.dropout = 0.2;
    const auto model = make_classifier(o, Labelling::tokens, vocabulary, vocabulary, 1);
    randomise(model->parameters());
    const auto loss = [&] {
      Pass pass{true, 5, 17, 2};
      return model->loss(lines.input(), {0.1, 3.0}, pass);
    };
    BOOST_TEST(gradcheck_parameters(loss, model->parameters()));
    const auto has_output = [](const NamedTensor& t) { return t.name.starts_with("output"); };
    BOOST_TEST(std::ranges::any_of(model->parameters(), has_output) == !tied);
  }
}

// Skipping the projection of rows without a label does not change the loss.
BOOST_AUTO_TEST_CASE(rows_without_label_do_not_affect_loss) {
  Labelled lines;
  lines.pairs.target_out = {ignored_target, 3, ignored_target, 1, ignored_target,
                            ignored_target, 4, ignored_target};
  const auto model = make_classifier(small_options(), Labelling::rows, vocabulary, labels, 1);
  randomise(model->parameters());
  Pass pass;
  LossCounts counts;
  const double loss = model->loss(lines.input(), {0.1, 3.0, &counts}, pass).item();
  const Array logits = model->logits(lines.input(), pass).value();
  Array three({3, labels});
  const std::vector<std::int32_t> at{1, 3, 6}, right{3, 1, 4};
  for (std::size_t i = 0; i < 3; ++i)
    std::copy_n(logits.row(at[i]), labels, three.row(static_cast<std::int64_t>(i)));
  BOOST_TEST(std::abs(loss - cross_entropy(Tensor(three), right, 0.1, 3.0).item()) < 1e-12);
  BOOST_TEST(counts.tokens == 3);
}

// R-Drop reads every row twice, the second time behind all others. Distillation reads the rows of a
// teacher as well.
BOOST_AUTO_TEST_CASE(rows_without_label_do_not_affect_rdrop_and_distillation) {
  Init init(3);
  const std::vector<std::int32_t> all{ignored_target, 3, ignored_target, 1, 4}, some{3, 1, 4},
      labelled{1, 3, 4}, labelled_twice{1, 3, 4, 6, 8, 9};
  const Linear output(6, labels, init), taught_output(4, labels, init);
  const Tensor taught(normal({5, 4}, 2));
  for (const bool rdrop : {true, false}) {
    const Tensor x = Tensor::variable(normal({rdrop ? 10 : 5, 6}, 1));
    LossOptions options{0.1, 3.0}, of_labelled{0.1, 3.0};
    if (rdrop) {
      options.rdrop = of_labelled.rdrop = 2;
    } else {
      options.distillation = {{taught, taught_output}, 0.4, 2};
      of_labelled.distillation = {{index_select(taught, labelled), taught_output}, 0.4, 2};
    }
    const Tensor loss = deferred_loss({x, output}, all, options),
                 expected =
                     deferred_loss({index_select(x, rdrop ? labelled_twice : labelled), output},
                                   some, of_labelled);
    BOOST_TEST(std::abs(loss.item() - expected.item()) < 1e-14);
    BOOST_TEST(difference(backward(loss)[x], backward(expected)[x]) < 1e-14);
  }
}

BOOST_AUTO_TEST_CASE(residual_dropout_drops_values_of_pooled_rows) {
  const Labelled lines;
  for (const Pool pool : {Pool::first, Pool::mean}) {
    ModelOptions o = small_options();
    o.pool = pool;
    o.dropout.residual = 0.4;
    const auto rows = make_classifier(o, Labelling::rows, vocabulary, labels, 1),
               whole = make_classifier(o, Labelling::sequences, vocabulary, labels, 1);
    Pass pass{true, 5, 17, 2}, of_rows = pass;
    const Array pooled = whole->deferred_logits(lines.input(), pass).rows.value(),
                each = rows->deferred_logits(lines.input(), of_rows).rows.value();
    Array expected = Array::zeros(pooled.shape());
    for (std::int64_t s = 0; s < 3; ++s) {
      const std::int64_t begin = lines.pairs.source_offsets[s],
                         end = pool == Pool::first ? begin + 1 : lines.pairs.source_offsets[s + 1];
      for (std::int64_t r = begin; r < end; ++r) {
        for (std::int64_t c = 0; c < expected.cols(); ++c)
          expected.row(s)[c] += each.row(r)[c] / static_cast<double>(end - begin);
      }
    }
    expected = dropout(Tensor(expected), 0.4, of_rows.next_key()).value();
    BOOST_TEST(difference(pooled, expected) < 1e-12);
  }
}

/// Random features for the source rows of `pairs`.
struct Features {
  std::vector<float> values;
  std::vector<std::int32_t> offsets;
  explicit Features(const Pairs& pairs, std::int64_t width)
      : offsets(pairs.source_offsets), width_(width) {
    const Array random = normal({offsets.back(), width}, 77);
    values.assign(random.values().begin(), random.values().end());
  }
  SideView side() const { return {{}, offsets, values, width_}; }

 private:
  std::int64_t width_;
};

BOOST_AUTO_TEST_CASE(models_with_feature_input_pass_gradcheck) {
  Labelled lines;
  const Features features(lines.pairs, 5);
  ModelOptions o = small_options();
  o.input_width = 5;
  o.positions = PositionKind::learned;
  o.max_positions = 4;
  const auto seq2seq = make_seq2seq(o, 0, 7, true, 1);
  randomise(seq2seq->parameters());
  const auto whole = [&] {
    Pass pass;
    ModelInput input = lines.pairs.input();
    input.source = features.side();
    input.labels = input.labels.first(input.target.ids.size());
    return seq2seq->loss(input, {0.1, 7.0}, pass);
  };
  lines.pairs.target_out.resize(lines.pairs.target_in.size(), 2);
  BOOST_TEST(gradcheck_parameters(whole, seq2seq->parameters()));
  lines.pairs.target_out = labels_of_lines();
  for (const Pool pool : {Pool::first, Pool::mean}) {
    o.pool = pool;
    const auto model = make_classifier(o, Labelling::sequences, 0, labels, 1);
    randomise(model->parameters());
    const auto loss = [&] {
      Pass pass;
      return model->loss({features.side(), {}, lines.pairs.target_out}, {0.1, 3.0}, pass);
    };
    BOOST_TEST(gradcheck_parameters(loss, model->parameters()));
    BOOST_TEST(model->parameters()[0].name == "input.weight");
  }
}

// The rows up to and including the first </s>, which here is token 3, are in segment 0, all later rows in
// segment 1. A sequence in which each row has a label contains no </s>.
BOOST_AUTO_TEST_CASE(segment_0_ends_after_first_end_token) {
  for (const Labelling labelling : {Labelling::tokens, Labelling::rows}) {
    ModelOptions o = small_options();
    o.segments = 2;
    o.tie_embeddings = false;
    const auto model = make_classifier(o, labelling, vocabulary, labels, 1);
    randomise(model->parameters());
    const std::vector<std::int32_t> ids{1, 2, 3, 6, 3, 1, 2, 3}, offsets{0, 5, 8};
    Tensor table;
    for (const NamedTensor& t : model->parameters())
      if (t.name == "segments.weight") table = t.tensor;
    BOOST_REQUIRE((table.shape() == Shape{2, o.d_model}));
    Pass pass;
    const auto logits = [&] { return model->logits({{ids, offsets}, {}, {}}, pass).value(); };
    const Array before = logits();
    for (std::int64_t c = 0; c < o.d_model; ++c)
      table.mutable_value().row(1)[c] += static_cast<real>(1 + c % 3);
    const Array after = logits();
    BOOST_TEST(difference(after.sliced(5, 8), before.sliced(5, 8)) == 0);  // no segment 1
    BOOST_TEST((difference(after.sliced(0, 5), before.sliced(0, 5)) > 1e-3) ==
               (labelling == Labelling::tokens));
  }
}

// Without blocks, the logits of a row depend on its own segment only.
BOOST_AUTO_TEST_CASE(each_text_up_to_the_last_segment_has_a_segment_of_its_own) {
  ModelOptions o = small_options();
  o.segments = 3;
  o.encoder_layers = 0;
  const auto model = make_classifier(o, Labelling::tokens, vocabulary, vocabulary, 1);
  randomise(model->parameters());
  const std::vector<std::int32_t> ids{1, 3, 2, 6, 3, 3, 1, 3, 5, 3}, offsets{0, 8, 10},
      expected{0, 0, 1, 1, 1, 2, 2, 2, 0, 0};
  Tensor table;
  for (const NamedTensor& t : model->parameters())
    if (t.name == "segments.weight") table = t.tensor;
  BOOST_REQUIRE((table.shape() == Shape{3, o.d_model}));
  Pass pass;
  const auto logits = [&] { return model->logits({{ids, offsets}, {}, {}}, pass).value(); };
  for (std::int32_t segment = 0; segment < 3; ++segment) {
    const Array before = logits();
    for (std::int64_t c = 0; c < o.d_model; ++c)
      table.mutable_value().row(segment)[c] += static_cast<real>(1 + c % 3);
    const Array after = logits();
    for (std::int64_t row = 0; row < 10; ++row) {
      const bool changed = !same_bits(before.sliced(row, row + 1), after.sliced(row, row + 1));
      BOOST_TEST(changed == (expected[static_cast<std::size_t>(row)] == segment),
                 "segment " << segment << ", row " << row);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

HEED_END
