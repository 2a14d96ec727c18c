/* The number that `__init__.py` expects: a library with another one is not used. */

#include <stdint.h>


int32_t lockcheck_abi(void);

int32_t lockcheck_abi(void) { return 11; }
