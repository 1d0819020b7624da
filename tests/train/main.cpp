#define BOOST_TEST_MODULE heed_train
#include <boost/test/included/unit_test.hpp>
