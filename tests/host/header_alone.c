/* The contract is legal C without any other header. */
#include "rtp.h"

typedef char table_is_complete[sizeof(rtp_host) > sizeof(void *) ? 1 : -1];
