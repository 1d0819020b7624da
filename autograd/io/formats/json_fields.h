#pragma once
/// JSON objects of other programs, whose keys must all be understood.
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace heed {

/// An object of a JSON file, whose keys must all be read: a key that nothing reads could change what
/// the file means.
class JsonFields {
 public:
  /// `where` begins messages. Throws Error(bad_input) if the value is no object.
  JsonFields(const nlohmann::json& value, std::string where);
  /// The value of a key; null if it is missing.
  const nlohmann::json& at(const char* key);
  std::string text(const char* key);
  bool flag(const char* key, bool otherwise);
  /// Throws Error(bad_input) unless the value is missing, null or one of these.
  void expect(const char* key, std::initializer_list<nlohmann::json> values);
  /// Throws Error(bad_input), naming the key, if a key has not been read.
  void done() const;
  [[noreturn]] void refuse(const std::string& what) const;
  const std::string& where() const { return where_; }

 private:
  const nlohmann::json& object_;
  std::string where_;
  std::vector<std::string> read_;
};

}  // namespace heed
