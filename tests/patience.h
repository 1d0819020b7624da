#pragma once

namespace heed::test {

/// Maximum number of seconds that a test waits for an event. Even a slow machine needs far less:
/// the limit does not test speed, it only ends a test that hangs. The Python and shell tests read
/// it from this file.
constexpr unsigned patience = 600;

}  // namespace heed::test
