#pragma once
/// TensorBoard's event files.
///
/// A file is a sequence of TFRecords, each
///   length (u64) · masked CRC-32C of the length (u32) · bytes · masked CRC-32C of the bytes (u32)
/// in little-endian order, where the masked CRC is ((crc >> 15) | (crc << 17)) + 0xa282ead8.
/// Format: tensorflow.org/tutorials/load_data/tfrecord; CRC-32C: RFC 3720, appendix B.4.
///
/// The bytes are a message `Event` of tensorboard/compat/proto/event.proto, in the wire format of
/// Protocol Buffers (protobuf.dev/programming-guides/encoding). These fields are written:
///
///   Event            wall_time = 1 double, step = 2 int64, file_version = 3 string,
///                    summary = 5 Summary, session_log = 7 SessionLog
///   SessionLog       status = 1 enum (START = 1)
///   Summary          value = 1 repeated Value
///   Summary.Value    tag = 1 string, simple_value = 2 float, tensor = 8 TensorProto,
///                    metadata = 9 SummaryMetadata
///   SummaryMetadata  plugin_data = 1 {plugin_name = 1 string}, data_class = 4 enum (TENSOR = 2)
///   TensorProto      dtype = 1 enum (DT_STRING = 7), tensor_shape = 2 {dim = 2 {size = 1 int64}},
///                    string_val = 8 repeated bytes
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "train/run/append_file.h"

namespace heed {

/// CRC-32C (Castagnoli), as in iSCSI.
std::uint32_t crc32c(std::string_view bytes);

/// A value of a summary. TensorBoard shows the values of a tag as a curve.
struct TaggedScalar {
  std::string tag;
  double value = 0;  ///< stored as a float
};

/// Appends events to a new file. Throws the errors of AppendFile.
class EventFile {
 public:
  /// Creates FOLDER/events.out.tfevents.<seconds since 1970>.heed. The name sorts after those of
  /// the existing files, because TensorBoard reads the files of a folder in the order of their
  /// names. The first events begin a session at `first_step`, so that TensorBoard drops the steps
  /// of earlier files from `first_step` on.
  EventFile(const std::filesystem::path& folder, std::int64_t first_step);

  /// Appends an event with the values of one step; appends nothing if there are no values.
  void scalars(std::int64_t step, std::span<const TaggedScalar> values);
  /// Appends a text, which TensorBoard shows as Markdown.
  void text(std::int64_t step, std::string_view tag, std::string_view markdown);
  void sync() { file_.sync(); }

 private:
  void append(std::string_view fields, std::int64_t step);

  AppendFile file_;
};

}  // namespace heed
