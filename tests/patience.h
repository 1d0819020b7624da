#pragma once

namespace heed::test {

/// Seconds that a test waits for an event that is due soon on any machine. The limit does not test
/// speed: it only ends a test that hangs. The Python and shell tests read it from this file.
constexpr unsigned patience = 600;

}  // namespace heed::test
