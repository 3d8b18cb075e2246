// The contract is legal C++ without any other header.
#include "rtp.h"

static_assert(RTP_OK == 0 && RTP_ABI_VERSION > 0);
