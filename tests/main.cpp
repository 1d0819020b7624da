// Boost.Test itself and its main(), compiled once for all test programs.
#define BOOST_TEST_MODULE heed
#include <boost/test/included/unit_test.hpp>
