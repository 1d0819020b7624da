#include "train/exchange/export.h"

HEED_BEGIN

const std::vector<ExportFormat>& export_formats() {
  static const std::vector<ExportFormat> formats{huggingface_format(), onnx_format(), gguf_format(),
                                                 ctranslate2_format(), page_format()};
  return formats;
}

HEED_END
