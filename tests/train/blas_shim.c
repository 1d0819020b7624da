/* A getenv that is preloaded into heed, to simulate an OpenBLAS that does not recognise the processor. OpenBLAS reads
 * OPENBLAS_CORETYPE when it is loaded. If the variable is unset (or is the invalid name "Wrong"), OpenBLAS receives the
 * kernel BLAS_SHIM_KERNEL instead of choosing one. Every other caller receives the value in the environment. */
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
