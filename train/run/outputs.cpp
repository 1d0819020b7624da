#include "train/run/outputs.h"

#include "autograd/base/error.h"
#include "autograd/io/files.h"
#include "autograd/io/formats/json_text.h"
#include "train/run/jsonl.h"

namespace heed {

void write_outputs(const RunFolder& run, const std::vector<SampleOutput>& outputs) {
  if (outputs.empty()) return remove_tree(run.outputs());
  std::string text;
  for (const SampleOutput& sample : outputs) {
    nlohmann::json record{
        {"source", sample.source}, {"target", sample.target}, {"output", sample.output}};
    if (sample.probability) record["probability"] = *sample.probability;
    text += record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }
  write_file_durably(run.outputs(), text);
}

std::vector<SampleOutput> read_outputs(const RunFolder& run) {
  std::vector<SampleOutput> outputs;
  for (const nlohmann::json& record : read_jsonl(run.outputs())) {
    try {
      SampleOutput sample{record.at("source"), record.at("target"), record.at("output"), {}};
      if (record.contains("probability")) sample.probability = record.at("probability");
      outputs.push_back(std::move(sample));
    } catch (const nlohmann::json::exception& e) {
      throw Error(Exit::bad_input, "{}:{}: not the output of a sample: {}", run.outputs().string(),
                  outputs.size() + 1, plain_reason(e));
    }
  }
  return outputs;
}

}  // namespace heed
