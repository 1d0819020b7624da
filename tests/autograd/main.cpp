#define BOOST_TEST_MODULE heed_autograd
#include <boost/test/included/unit_test.hpp>
