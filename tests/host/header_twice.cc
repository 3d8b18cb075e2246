// A second inclusion changes nothing.
#include "rtp.h"

uint32_t (*const version_of_core)() = rtp_abi_version;
