/* What `__init__.py` expects to find: a library with another number is not used. */

#include <stdint.h>


int32_t lockcheck_abi(void);

int32_t lockcheck_abi(void) { return 9; }
