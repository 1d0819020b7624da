#pragma once
/// The kernel of OpenBLAS, which OpenBLAS, heed or the user chooses. OpenBLAS chooses a kernel
/// once, when it is loaded, before main. If that kernel does not use all vector instructions of the
/// processor, the program restarts itself with OPENBLAS_CORETYPE set.
#include <string>

namespace heed {

/// "OpenBLAS"; "heed" if this process, or the heed process that started it, was restarted with a
/// better kernel; "user" if the user set OPENBLAS_CORETYPE.
std::string blas_kernel_chooser();

/// Restarts this program with a better kernel, if there is one. After a restart, prints a note
/// about it. A slow kernel chosen by the user is kept, with a warning. `quiet`: prints neither.
/// Throws Error(usage) if the processor cannot run the kernel that the user has chosen. `argv` is
/// main's.
void use_best_blas_kernel(char** argv, bool quiet);

}  // namespace heed
