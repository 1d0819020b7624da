#pragma once

namespace heed::test {

/// Seconds that a test waits for something that comes soon on any machine. It says nothing about
/// speed: it only ends a test that hangs. The tests in Python and in shell read it from here.
constexpr unsigned patience = 600;

}  // namespace heed::test
