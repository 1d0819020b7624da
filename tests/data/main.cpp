#define BOOST_TEST_MODULE heed_data
#include <boost/test/included/unit_test.hpp>
