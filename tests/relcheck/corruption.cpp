/// Checkpoints damaged in ways that disks or users may cause: heed must detect all damage, name the
/// file and fall back to the previous checkpoint.
#include <algorithm>
#include <cstring>
#include <random>
#include <string_view>

#include "autograd/io/formats/safetensors.h"
#include "tests/relcheck/corruption.h"
#include "train/run/checkpoint_folder.h"

namespace heed::relcheck {
namespace {
namespace fs = std::filesystem;

/// Checks that heed refuses the damaged newest checkpoint of a run, and counts the results.
class Damages {
 public:
  /// Every `every`-th check also looks up the newest valid checkpoint of the run.
  Damages(fs::path run, std::size_t every) : run_(std::move(run)), every_(every) {}

  const fs::path& run() const { return run_; }
  fs::path newest() const { return checkpoint_of(run_, kNewest); }
  fs::path file(const std::string& name) const { return newest() / name; }

  /// Checks that the damaged newest checkpoint is refused with a message that names `named`.
  void expect_refused(const fs::path& named, const std::string& how) {
    ++tried_;
    std::string message = "accepted";
    bool refused = false;
    try {
      open_checkpoint(newest());
    } catch (const Error& error) {
      message = error.what();
      refused = error.code == Exit::bad_input && contains(message, named.string());
    }
    detected_ += refused;
    if (!refused) note(how, message);
    if (tried_ % every_ == 1 || every_ == 1) expect_older(named, how);
  }

  /// Prints two lines and resets the counts. The restored checkpoint must be accepted; otherwise
  /// the refusals would prove nothing.
  void report(Measures& measures, const std::string& name) {
    measures.all_of("damage: " + name + ": refused", detected_, tried_);
    measures.all_of("damage: " + name + ": fell back to the previous checkpoint", fell_back_,
                    lookups_);
    try {
      open_checkpoint(newest());
    } catch (const Error& error) {
      measures.line("damage: " + name + ": restored", "refused", "accepted", false);
      Measures::note(error.what());
    }
    tried_ = detected_ = lookups_ = fell_back_ = noted_ = 0;
  }

 private:
  void expect_older(const fs::path& named, const std::string& how) {
    ++lookups_;
    const CheckpointFolder::Newest found = CheckpointFolder(run_).newest_valid();
    const bool right = found.checkpoint && found.checkpoint->step == kOlder &&
                       found.skipped.size() == 1 && contains(found.skipped[0], named.string());
    fell_back_ += right;
    if (!right) note(how, "did not fall back to the previous checkpoint");
  }
  void note(const std::string& how, const std::string& what) {
    if (++noted_ <= 5) Measures::note(fmt::format("{}: {}", how, what));
  }

  fs::path run_;
  std::size_t every_;
  std::size_t tried_ = 0, detected_ = 0, lookups_ = 0, fell_back_ = 0, noted_ = 0;
};

/// The size of a safetensors file's header, including its length field.
std::uint64_t header_end(const std::string& bytes) {
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  return sizeof length + length;
}

bool is_tensors(const std::string& name) { return name.ends_with(".safetensors"); }

/// The file offsets at which tensors begin or end.
std::vector<std::uint64_t> tensor_edges(const fs::path& path, const std::string& bytes) {
  std::vector<std::uint64_t> edges{header_end(bytes)};
  const SafetensorsFile file = SafetensorsFile::read(path);
  for (const TensorView& tensor : file.tensors())
    edges.push_back(edges.back() + tensor.bytes.size());
  return edges;
}

/// Truncates safetensors files at every byte of the header, at each tensor's edges and one byte
/// before and after each edge, and state.json at every byte.
void cut(Damages& damages, Measures& measures) {
  for (const std::string& name : kCheckpointFiles) {
    const fs::path file = damages.file(name);
    const std::string bytes = get(file);
    std::vector<std::uint64_t> lengths;
    const std::uint64_t dense = is_tensors(name) ? header_end(bytes) : bytes.size();
    for (std::uint64_t length = 0; length < dense; ++length) lengths.push_back(length);
    if (is_tensors(name)) {
      for (const std::uint64_t edge : tensor_edges(file, bytes)) {
        for (const std::uint64_t length : {edge - 1, edge, edge + 1})
          if (length < bytes.size()) lengths.push_back(length);
      }
    }
    for (const std::uint64_t length : lengths) {
      put(file, bytes.substr(0, length));
      damages.expect_refused(file, fmt::format("{} truncated at byte {}", name, length));
    }
    put(file, bytes);
  }
  damages.report(measures, "truncated");
}

void flip(Damages& damages, const fs::path& file, std::uint64_t bit) {
  flip_bit(file, bit);
  damages.expect_refused(file, fmt::format("bit {} of {}", bit, file.filename().string()));
  flip_bit(file, bit);
}

void flip_headers(Damages& damages, Measures& measures) {
  for (const std::string& name : kCheckpointFiles) {
    const fs::path file = damages.file(name);
    const std::string bytes = get(file);
    const std::uint64_t end = is_tensors(name) ? header_end(bytes) : bytes.size();
    for (std::uint64_t bit = 0; bit < 8 * end; ++bit) flip(damages, file, bit);
  }
  damages.report(measures, "every bit of headers and state.json");
}

void flip_data(Damages& damages, Measures& measures, int count) {
  std::mt19937_64 random(20260101);
  for (const std::string& name : kCheckpointFiles) {
    if (!is_tensors(name)) continue;
    const fs::path file = damages.file(name);
    const std::string bytes = get(file);
    std::uniform_int_distribution<std::uint64_t> bit(8 * header_end(bytes), 8 * bytes.size() - 1);
    for (int i = 0; i < count; ++i) flip(damages, file, bit(random));
  }
  damages.report(measures, fmt::format("{} data bits per file", count));
}

/// A power cut may leave sectors of zeros in a file of the right length.
void lose_pages(Damages& damages, Measures& measures) {
  constexpr std::size_t page = 512;  // a sector: the smallest unit that a disk loses
  for (const std::string& name : kCheckpointFiles) {
    const fs::path file = damages.file(name);
    const std::string bytes = get(file);
    for (std::size_t at = 0; at < bytes.size(); at += page) {
      const std::size_t length = std::min(page, bytes.size() - at);
      std::string torn = bytes;
      torn.replace(at, length, length, '\0');
      if (torn == bytes) continue;
      put(file, torn);
      damages.expect_refused(file, fmt::format("{}: zeros at byte {}", name, at));
    }
    put(file, std::string(bytes.size(), '\0'));
    damages.expect_refused(file, name + ": all zeros");
    put(file, bytes);
  }
  damages.report(measures, "sectors of zeros");
}

void append(Damages& damages, Measures& measures) {
  for (const std::string& name : kCheckpointFiles) {
    const fs::path file = damages.file(name);
    const std::string bytes = get(file);
    for (const std::string& more :
         {std::string(1, '\0'), std::string(" "), std::string("\n"), std::string("x"),
          std::string("{}"), std::string(8, '\0'), std::string(4096, '\0'), bytes}) {
      put(file, bytes + more);
      damages.expect_refused(file,
                             fmt::format("{}: number of bytes appended: {}", name, more.size()));
      put(file, more.substr(0, 1) + bytes);
      damages.expect_refused(file, name + ": a byte prepended");
    }
    put(file, bytes);
  }
  damages.report(measures, "bytes added");
}

void exchange(const fs::path& a, const fs::path& b) {
  const fs::path temporary = a.parent_path() / ".temporary";
  fs::rename(a, temporary);
  fs::rename(b, a);
  fs::rename(temporary, b);
}

void swap_files(Damages& damages, Measures& measures) {
  const auto swapped = [&](const fs::path& a, const fs::path& b, const fs::path& named) {
    exchange(a, b);
    damages.expect_refused(named, fmt::format("{} and {} swapped", a.string(), b.string()));
    exchange(a, b);
  };
  const fs::path partner = checkpoint_of(damages.run(), kPartner);
  const std::vector<std::string>& names = kCheckpointFiles;
  for (const std::string& name : names) {
    for (const std::string& other : names) {
      // The message names the file that heed reads first.
      const bool state = name == "state.json" || other == "state.json";
      if (name < other)
        swapped(damages.file(name), damages.file(other),
                damages.file(state ? "state.json" : std::min(name, other)));
    }
    // Files swapped between checkpoints: checksums do not match the files, or the step does not
    // match the folder.
    swapped(damages.file(name), partner / name,
            name == "state.json" ? damages.newest() : damages.file(name));
  }
  swapped(damages.newest(), partner, damages.newest());
  damages.report(measures, "files swapped");
}

void replace(Damages& damages, Measures& measures) {
  const fs::path backup = damages.run() / "backup";
  for (const std::string& name : kCheckpointFiles) {
    for (const Replacement& replacement : replacements()) {
      const fs::path file = damages.file(name);
      fs::rename(file, backup);
      replacement.put(file);
      // Another checkpoint's state.json contains a step that does not match this folder.
      const bool whole = name == "state.json" && contains(replacement.name, "another");
      damages.expect_refused(whole ? damages.newest() : file,
                             fmt::format("{} in place of {}", replacement.name, name));
      fs::remove_all(file);
      fs::rename(backup, file);
    }
  }
  damages.report(measures, "files replaced by something else");
}

void measure_library(Measures& measures, const fs::path& run, bool large) {
  Damages damages(run, large ? 16 : 64);
  flip_data(damages, measures, large ? 50'000 : 10'000);
  if (!large) {
    cut(damages, measures);
    flip_headers(damages, measures);
  }
  Damages few(run, 1);
  lose_pages(few, measures);
  append(few, measures);
  swap_files(few, measures);
  replace(few, measures);
}

}  // namespace
}  // namespace heed::relcheck

int main(int argc, char** argv) {
  using namespace heed::relcheck;
  const bool is_long = argc > 1 && std::string_view(argv[1]) == "--long";
  Measures measures;
  {
    const Scratch scratch;
    const auto run = train_small_run(scratch.path, false);
    measure_library(measures, run, false);
    measure_commands(measures, run);
  }
  if (is_long) {
    Measures::note("a larger checkpoint");
    const Scratch scratch;
    measure_library(measures, train_small_run(scratch.path, true), true);
  }
  return measures.exit_status();
}
