/// The main program of a fuzz target without libFuzzer: replays every file of a corpus once.
///
///   fuzz_NAME FOLDER
///
/// A corpus must contain both accepted and refused inputs; otherwise the run proves nothing.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>

#include "tests/fuzz/target.h"
#include "tests/patience.h"

namespace {

/// Sanitizers reserve terabytes of address space, so builds with them have no limit.
void limit_memory() {
#if !defined(HEED_FUZZ_SANITIZED)
  constexpr rlim_t max_memory = 1 << 10;  // MiB of address space: huge shapes must end in an Error
  const rlimit limit{max_memory << 20, max_memory << 20};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || !std::filesystem::is_directory(argv[1])) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  limit_memory();
  int accepted = 0, refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    const std::string bytes = heed::fuzz::get(entry.path());
    std::fprintf(stderr, "%s\n", entry.path().c_str());  // names the input that crashes
    alarm(heed::test::patience);                         // ends a hang
    ++(heed::fuzz::accepts(bytes) ? accepted : refused);
    alarm(0);
  }
  std::printf("%d accepted, %d refused\n", accepted, refused);
  return accepted > 0 && refused > 0 ? 0 : 1;
}
