#pragma once
#error "a header of heed's has included the user's nn/parameters.h"
