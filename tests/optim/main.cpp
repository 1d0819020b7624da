#define BOOST_TEST_MODULE heed_optim
#include <boost/test/included/unit_test.hpp>
