#include "autograd/base/error.h"
#include "autograd/kernels/fast/gemm/bf16.h"
#include "autograd/memory/block.h"

#if defined(HEED_ONEDNN) && !defined(HEED_DOUBLE)
#include <oneapi/dnnl/dnnl_version.h>
#if DNNL_VERSION_MAJOR == 2 || DNNL_VERSION_MAJOR == 3  // Debian 12 and 13
#define HEED_BF16_GEMM
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>

#include <array>
#include <vector>
#endif
#endif

HEED_BEGIN
namespace kernels {

namespace {
thread_local bool enabled_here = false;
/// Minimum number of multiplications: below it, rounding the operands costs more than bf16 saves.
constexpr std::int64_t min_work = std::int64_t{1} << 22;
constexpr std::int64_t min_extent = 16;
}  // namespace

Bf16Scope::Bf16Scope(bool enabled) : scope_(enabled_here, enabled && bf16_obstacle().empty()) {}

bool supports_bf16(std::int64_t m, std::int64_t n, std::int64_t k, real alpha, real beta) {
  return enabled_here && alpha == 1 && (beta == 0 || beta == 1) && m >= min_extent &&
         n >= min_extent && k >= min_extent && m * n * k >= min_work;
}

#ifdef HEED_BF16_GEMM

namespace {

/// oneDNN's functions, resolved at run time: the library takes as long to load as all of heed, and
/// few runs need it.
struct OneDnn {
  std::string obstacle;
  void* handle = open();
  decltype(&dnnl_get_effective_cpu_isa) cpu_isa = find("dnnl_get_effective_cpu_isa");
  decltype(&dnnl_engine_create) engine_create = find("dnnl_engine_create");
  decltype(&dnnl_stream_create) stream_create = find("dnnl_stream_create");
#if DNNL_VERSION_MAJOR == 2
  decltype(&dnnl_memory_desc_init_by_strides) memory_desc =
      find("dnnl_memory_desc_init_by_strides");
  decltype(&dnnl_matmul_desc_init) matmul_desc = find("dnnl_matmul_desc_init");
  decltype(&dnnl_primitive_desc_create) primitive_desc_create = find("dnnl_primitive_desc_create");
#else
  decltype(&dnnl_memory_desc_create_with_strides) memory_desc =
      find("dnnl_memory_desc_create_with_strides");
  decltype(&dnnl_memory_desc_destroy) memory_desc_destroy = find("dnnl_memory_desc_destroy");
  decltype(&dnnl_matmul_primitive_desc_create) primitive_desc_create =
      find("dnnl_matmul_primitive_desc_create");
#endif
  decltype(&dnnl_memory_create) memory_create = find("dnnl_memory_create");
  decltype(&dnnl_memory_destroy) memory_destroy = find("dnnl_memory_destroy");
  decltype(&dnnl_post_ops_create) post_ops_create = find("dnnl_post_ops_create");
  decltype(&dnnl_post_ops_append_sum) post_ops_sum = find("dnnl_post_ops_append_sum");
  decltype(&dnnl_primitive_attr_create) attr_create = find("dnnl_primitive_attr_create");
  decltype(&dnnl_primitive_attr_set_post_ops) attr_set_post_ops =
      find("dnnl_primitive_attr_set_post_ops");
  decltype(&dnnl_primitive_create) primitive_create = find("dnnl_primitive_create");
  decltype(&dnnl_primitive_execute) execute = find("dnnl_primitive_execute");
  decltype(&dnnl_post_ops_destroy) post_ops_destroy = find("dnnl_post_ops_destroy");
  decltype(&dnnl_primitive_attr_destroy) attr_destroy = find("dnnl_primitive_attr_destroy");
  decltype(&dnnl_primitive_desc_destroy) primitive_desc_destroy =
      find("dnnl_primitive_desc_destroy");
  decltype(&dnnl_primitive_destroy) primitive_destroy = find("dnnl_primitive_destroy");
  decltype(&dnnl_stream_destroy) stream_destroy = find("dnnl_stream_destroy");
  // This function belongs to the OpenMP library that oneDNN loaded.
  void (*set_threads)(int) = find("omp_set_num_threads");
  dnnl_engine_t engine = nullptr;

  static const OneDnn& get() {
    static const OneDnn library;
    return library;
  }

 private:
  /// The address of a function, which converts to a pointer of the function's type.
  struct Symbol {
    void* address;
    template <class Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(address);
    }
  };

  OneDnn() {
    if (!obstacle.empty()) return;
    constexpr auto needed = static_cast<unsigned>(dnnl_cpu_isa_avx512_core_bf16);
    if ((static_cast<unsigned>(cpu_isa()) & needed) != needed) {
      obstacle = "this processor has no instructions for bf16";
    } else if (engine_create(&engine, dnnl_cpu, 0) != dnnl_success) {
      obstacle = "oneDNN cannot be initialised";
    }
  }
  void* open() {
    const std::string file = "libdnnl.so." + std::to_string(DNNL_VERSION_MAJOR);
    void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) obstacle = "oneDNN (" + file + ") cannot be loaded";
    return library;
  }
  Symbol find(const char* name) {
    if (handle == nullptr) return {nullptr};
    void* const address = dlsym(handle, name);
    if (address == nullptr) obstacle = std::string("oneDNN has no ") + name;
    return {address};
  }
};

void check(dnnl_status_t status, const char* what) {
  if (status == dnnl_success) return;
  throw Error(Exit::failed, std::string("oneDNN: ") + what + " failed");
}

/// Describes a matrix [rows, cols], stored transposed or not. If the size is known only at run
/// time, the description specifies only which stride is 1.
class MatrixDescription {
 public:
  MatrixDescription(dnnl_data_type_t type, Trans stored, std::int64_t rows, std::int64_t cols,
                    std::int64_t distance) {
    const dnnl_dims_t extents{rows, cols};
    const dnnl_dims_t strides{stored == Trans::yes ? 1 : distance,
                              stored == Trans::yes ? distance : 1};
    check(OneDnn::get().memory_desc(&description_, 2, extents, type, strides),
          "describing a matrix");
  }
  MatrixDescription(const MatrixDescription&) = delete;
  MatrixDescription& operator=(const MatrixDescription&) = delete;
#if DNNL_VERSION_MAJOR == 2  // a struct; a handle in version 3
  const dnnl_memory_desc_t* get() const { return &description_; }
#else
  ~MatrixDescription() { OneDnn::get().memory_desc_destroy(description_); }
  const_dnnl_memory_desc_t get() const { return description_; }
#endif

 private:
  dnnl_memory_desc_t description_{};
};

/// The products of one thread: for each storage order of the operands, with and without
/// accumulation, one primitive for products of any size.
class Products {
 public:
  Products() {
    const OneDnn& dnnl = OneDnn::get();
    dnnl.set_threads(1);  // a setting of this thread; work is parallelised above the ops
    check(dnnl.stream_create(&stream_, dnnl.engine, dnnl_stream_default_flags),
          "creating a stream");
  }

  ~Products() {
    for (const dnnl_primitive_t p : primitives_) {
      if (p != nullptr) OneDnn::get().primitive_destroy(p);
    }
    OneDnn::get().stream_destroy(stream_);
  }
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  void run(Trans trans_a, Trans trans_b, bool accumulate, const MatrixDescription& a, void* a_data,
           const MatrixDescription& b, void* b_data, const MatrixDescription& c, void* c_data) {
    const Memory source(a, a_data), weights(b, b_data), target(c, c_data);
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, source.memory},
                                         {DNNL_ARG_WEIGHTS, weights.memory},
                                         {DNNL_ARG_DST, target.memory}};
    check(OneDnn::get().execute(primitive(trans_a, trans_b, accumulate), stream_, 3, arguments),
          "a product");
  }

 private:
  struct Memory {
    Memory(const MatrixDescription& described, void* data) {
      check(OneDnn::get().memory_create(&memory, described.get(), OneDnn::get().engine, data),
            "creating a memory object");
    }
    ~Memory() { OneDnn::get().memory_destroy(memory); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    dnnl_memory_t memory = nullptr;
  };

  dnnl_primitive_t primitive(Trans trans_a, Trans trans_b, bool accumulate) {
    const std::size_t kind = 4 * accumulate + 2 * (trans_a == Trans::yes) + (trans_b == Trans::yes);
    if (primitives_[kind] == nullptr) primitives_[kind] = make(trans_a, trans_b, accumulate);
    return primitives_[kind];
  }

  dnnl_primitive_t make(Trans trans_a, Trans trans_b, bool accumulate) const {
    const OneDnn& dnnl = OneDnn::get();
    constexpr std::int64_t any = DNNL_RUNTIME_DIM_VAL;
    const MatrixDescription a(dnnl_bf16, trans_a, any, any, any),
        b(dnnl_bf16, trans_b, any, any, any), c(dnnl_f32, Trans::no, any, any, any);
    dnnl_primitive_attr_t attributes = nullptr;
    check(dnnl.attr_create(&attributes), "creating attributes");
    if (accumulate) {
      dnnl_post_ops_t sum = nullptr;
      check(dnnl.post_ops_create(&sum), "creating a sum");
#if DNNL_VERSION_MAJOR == 2
      check(dnnl.post_ops_sum(sum, 1), "creating a sum");
#else
      check(dnnl.post_ops_sum(sum, 1, 0, dnnl_data_type_undef), "creating a sum");
#endif
      check(dnnl.attr_set_post_ops(attributes, sum), "setting a sum");
      dnnl.post_ops_destroy(sum);
    }
    dnnl_primitive_desc_t chosen = nullptr;
    dnnl_primitive_t made = nullptr;
#if DNNL_VERSION_MAJOR == 2
    dnnl_matmul_desc_t product;
    check(dnnl.matmul_desc(&product, a.get(), b.get(), nullptr, c.get()), "describing a product");
    check(dnnl.primitive_desc_create(&chosen, &product, attributes, dnnl.engine, nullptr),
          "choosing a product");
#else
    check(dnnl.primitive_desc_create(&chosen, dnnl.engine, a.get(), b.get(), nullptr, c.get(),
                                     attributes),
          "choosing a product");
#endif
    check(dnnl.primitive_create(&made, chosen), "creating a product");
    dnnl.primitive_desc_destroy(chosen);
    dnnl.attr_destroy(attributes);
    return made;
  }

  dnnl_stream_t stream_ = nullptr;
  std::array<dnnl_primitive_t, 8> primitives_{};
};

using Halves = std::vector<std::uint16_t, BlockAllocator<std::uint16_t>>;

/// The matrix in bf16, in the stored order without gaps between its rows.
Halves rounded(const float* x, std::int64_t rows, std::int64_t cols, std::int64_t distance) {
  Halves y(static_cast<std::size_t>(rows * cols));
  if (distance == cols) {
    to_bf16(x, y.data(), rows * cols);
  } else {
    for (std::int64_t r = 0; r < rows; ++r) to_bf16(x + r * distance, y.data() + r * cols, cols);
  }
  return y;
}

}  // namespace

const std::string& bf16_obstacle() { return OneDnn::get().obstacle; }

void gemm_bf16(Trans trans_a, Trans trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
               const real* a, std::int64_t lda, const real* b, std::int64_t ldb, bool accumulate,
               real* c, std::int64_t ldc) {
  thread_local Products products;
  const bool ta = trans_a == Trans::yes, tb = trans_b == Trans::yes;
  Halves a_rounded = rounded(a, ta ? k : m, ta ? m : k, lda),
         b_rounded = rounded(b, tb ? n : k, tb ? k : n, ldb);
  products.run(trans_a, trans_b, accumulate, {dnnl_bf16, trans_a, m, k, ta ? m : k},
               a_rounded.data(), {dnnl_bf16, trans_b, k, n, tb ? k : n}, b_rounded.data(),
               {dnnl_f32, Trans::no, m, n, ldc}, c);
}

#else

const std::string& bf16_obstacle() {
  static const std::string obstacle =
#ifdef HEED_DOUBLE
      "this build uses float64";
#else
      "heed was built without oneDNN (libdnnl-dev)";
#endif
  return obstacle;
}

void gemm_bf16(Trans, Trans, std::int64_t, std::int64_t, std::int64_t, const real*, std::int64_t,
               const real*, std::int64_t, bool, real*, std::int64_t) {
  throw Error(Exit::failed, "bf16 is not available: " + bf16_obstacle());
}

#endif

}  // namespace kernels
HEED_END
