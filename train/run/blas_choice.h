#pragma once
/// Which kernel OpenBLAS runs, and who chose it. The program restarts itself with OPENBLAS_CORETYPE set if OpenBLAS has
/// chosen a kernel that uses less than the processor has: it chooses once, when it is loaded, before main.
#include <string>

namespace heed {

/// "OpenBLAS"; "heed", if this process or the heed that started it was restarted for a better kernel; or "user", by
/// OPENBLAS_CORETYPE.
std::string blas_kernel_chooser();

/// Restarts this program with a better kernel, if there is one. After a restart, prints a line that says so; prints a
/// warning if the user has chosen a kernel that is far too slow, and keeps it. `quiet`: prints neither. Throws Error(usage) if
/// the processor cannot run the kernel that the user has chosen. argv: of main.
void use_best_blas_kernel(char** argv, bool quiet);

}  // namespace heed
