#include "train/exchange/export.h"

HEED_BEGIN

const std::vector<ExportFormat>& export_formats() {
  static const std::vector<ExportFormat> formats{huggingface_format(), onnx_format(), gguf_format(),
                                                 ctranslate2_format(), page_format()};
  return formats;
}

std::string shell_word(const std::string& path) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-+=:,@%";
  const std::string word = path.starts_with('-') ? "./" + path : path;  // no option
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

HEED_END
