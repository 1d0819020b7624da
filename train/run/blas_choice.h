#pragma once
/// The choice of OpenBLAS's kernel, by OpenBLAS, heed or the user. OpenBLAS chooses a kernel once,
/// when it is loaded, before main. If that kernel does not use all vector instructions of the
/// processor, the program restarts itself with OPENBLAS_CORETYPE set.
#include <string>

namespace heed {

/// Who chose the kernel: "user" if it is the kernel that the user requested with OPENBLAS_CORETYPE;
/// "heed" if this process, or the heed process that started it, was restarted with a better kernel;
/// otherwise "OpenBLAS".
std::string blas_kernel_chooser();

/// Ends the process with status 4 if the limit of the address space is too low for the threads that
/// OpenBLAS has started when it was loaded. They then try for ever to map their buffers, and exit()
/// would wait for them.
void require_memory_of_blas();

/// Restarts this program with a better kernel, if there is one, unless the user has chosen a
/// kernel. Unless `quiet`, prints a note after a restart, and a warning if the kernel of this
/// process is slow. Throws Error(usage) if the processor cannot run the kernel that the user has
/// chosen. `argv`: the argument of main.
void use_best_blas_kernel(char** argv, bool quiet);

}  // namespace heed
