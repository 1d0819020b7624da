#pragma once

namespace heed::test {

/// Maximum number of seconds that a test waits for an event. Even a slow machine needs far less:
/// the limit ends a test that hangs and does not test speed. The Python and shell tests read it
/// from this file.
constexpr unsigned patience = 600;

}  // namespace heed::test
