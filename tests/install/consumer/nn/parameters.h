#pragma once
#error "one of heed's headers has included the user's nn/parameters.h"
