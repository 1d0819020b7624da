/* Makes OpenBLAS choose the kernel BLAS_SHIM_KERNEL where it would choose one by itself, as an OpenBLAS does that does
 * not know its processor: it asks getenv for OPENBLAS_CORETYPE when it is loaded. Preloaded into heed; heed's own calls
 * of getenv see the environment as it is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

extern char** environ;

static char* find(const char* name) {
  const size_t length = strlen(name);
  for (char** entry = environ; entry != NULL && *entry != NULL; ++entry)
    if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  return NULL;
}

char* getenv(const char* name) {
  char* const value = find(name);
  Dl_info caller;
  if (strcmp(name, "OPENBLAS_CORETYPE") != 0 ||
      dladdr(__builtin_return_address(0), &caller) == 0 || caller.dli_fname == NULL ||
      strstr(caller.dli_fname, "openblas") == NULL)
    return value;
  return value == NULL || strcmp(value, "Wrong") == 0 ? find("BLAS_SHIM_KERNEL") : value;
}
