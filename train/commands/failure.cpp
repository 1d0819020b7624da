#include "train/commands/failure.h"

#include <new>
#include <system_error>

#include "autograd/io/formats/json_text.h"

namespace heed {

Error error_of(const std::exception& thrown) {
  if (const auto* const error = dynamic_cast<const Error*>(&thrown)) return *error;
  if (const auto* const json = dynamic_cast<const nlohmann::json::exception*>(&thrown))
    return {Exit::bad_input, "a JSON file contains an unexpected value: " + plain_reason(*json)};
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr) return {Exit::io, "out of memory"};
  // std::system_error: thrown by fmt, the file system or threads
  const bool system = dynamic_cast<const std::system_error*>(&thrown) != nullptr;
  return {system ? Exit::io : Exit::failed, std::string(thrown.what())};
}

}  // namespace heed
