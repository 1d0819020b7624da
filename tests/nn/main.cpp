#define BOOST_TEST_MODULE heed_nn
#include <boost/test/included/unit_test.hpp>
