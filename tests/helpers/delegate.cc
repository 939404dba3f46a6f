// A TFLite delegate for the tests: it takes the operators that it is told to and runs them by
// TFLite's own kernels, so that its answers are those of the CPU unless it is told to spoil them.
//
// Options: `operators`, the numbers of the built-in operators that it takes, separated by spaces;
// `log`, a file that gets the number of operators of each part, one line a part; `refuse`, a text
// to refuse to start with; `add`, what is added to the first of a part's float outputs, in all its
// even places; `noise`, the largest of random numbers that are added to all of it.
//
// The structures are those of tensorflow/lite/core/c/common.h, which no package of LiteRT contains
// (2.3): as many of the members as are used here, in the same order.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

struct IntArray {
  int size;
  int data[1];  // in fact `size` of them
};
struct Delegate;
struct Registration;
struct Node {
  IntArray *inputs, *outputs, *intermediates, *temporaries;
  void *user_data, *builtin_data;
  const void* custom_initial_data;
  int custom_initial_data_size;
  Delegate* delegate;
  bool might_have_side_effect;
};
struct Tensor {
  int type;
  float* data;
  IntArray* dims;
  float scale;
  int zero_point, allocation_type;
  size_t bytes;
  const void *allocation, *name;
  Delegate* delegate;
  int buffer_handle;
  bool data_is_stale, is_variable;
  int quantization_type;
  void *quantization, *sparsity, *dims_signature;
};
struct Context {
  size_t tensors_size;
  int (*GetExecutionPlan)(Context*, IntArray**);
  Tensor* tensors;
  void* impl;
  void *resize_tensor, *report_error, *add_tensors;
  int (*GetNodeAndRegistration)(Context*, int, Node**, Registration**);
  int (*ReplaceNodes)(Context*, Registration, const IntArray*, Delegate*);
};
struct Registration {
  void* (*init)(Context*, const char*, size_t);
  void (*free)(Context*, void*);
  int (*prepare)(Context*, Node*);
  int (*invoke)(Context*, Node*);
  void* profiling_string;
  int32_t builtin_code;
  const char* custom_name;
  int version;
  void *registration_external, *async_kernel;
  uint64_t inplace_operator;
};
struct Delegate {
  void* data;
  int (*prepare)(Context*, Delegate*);
  void *copy_from, *copy_to, *free_handle;
  int64_t flags;
  void* opaque_builder;
};
struct Params {
  Delegate* delegate;
  IntArray *nodes, *inputs, *outputs;
};

namespace {

const int kOk = 0, kError = 1, kFloat = 1, kDelegate = 51;

struct Settings {
  std::set<int> operators;
  std::string log;
  float add = 0, noise = 0;
};

// An array of LiteRT's, which frees it.
IntArray* Array(const std::vector<int>& values) {
  auto* array = static_cast<IntArray*>(malloc(sizeof(int) * (values.size() + 1)));
  array->size = static_cast<int>(values.size());
  if (!values.empty()) memcpy(array->data, values.data(), sizeof(int) * values.size());
  return array;
}

// One operator of a part: its kernel, and a copy of its node with temporary tensors of its own.
struct Operator {
  Node node;
  Registration kernel;
};
struct Part {
  std::vector<Operator> operators;
  const Settings* settings;
};

void* InitPart(Context* context, const char* data, size_t) {
  const auto* params = reinterpret_cast<const Params*>(data);
  const auto* settings = static_cast<Settings*>(params->delegate->data);
  if (!settings->log.empty()) {
    FILE* log = fopen(settings->log.c_str(), "a");
    fprintf(log, "%d\n", params->nodes->size);
    fclose(log);
  }
  auto* part = new Part;
  part->settings = settings;
  for (int i = 0; i < params->nodes->size; ++i) {
    Node* node;
    Registration* kernel;
    if (context->GetNodeAndRegistration(context, params->nodes->data[i], &node, &kernel) != kOk)
      abort();
    part->operators.push_back({*node, *kernel});
    part->operators.back().node.temporaries = Array({});
  }
  return part;
}

void FreePart(Context*, void* data) {
  auto* part = static_cast<Part*>(data);
  for (auto& one : part->operators) free(one.node.temporaries);
  delete part;
}

// What a part's operators need besides its inputs and outputs becomes its temporary tensors: those
// alone get memory.
int PreparePart(Context* context, Node* whole) {
  std::set<int> needed;
  for (auto& one : static_cast<Part*>(whole->user_data)->operators) {
    if (one.kernel.prepare && one.kernel.prepare(context, &one.node) != kOk) return kError;
    for (const auto* tensors : {one.node.outputs, one.node.temporaries})
      needed.insert(tensors->data, tensors->data + tensors->size);
  }
  for (int i = 0; i < whole->outputs->size; ++i) needed.erase(whole->outputs->data[i]);
  free(whole->temporaries);
  whole->temporaries = Array({needed.begin(), needed.end()});
  return kOk;
}

int RunPart(Context* context, Node* whole) {
  const auto& part = *static_cast<Part*>(whole->user_data);
  for (auto& one : part.operators)
    if (one.kernel.invoke(context, const_cast<Node*>(&one.node)) != kOk) return kError;
  const Tensor& output = context->tensors[whole->outputs->data[0]];
  for (size_t i = 0; output.type == kFloat && i < output.bytes / sizeof(float); ++i) {
    if (i % 2 == 0) output.data[i] += part.settings->add;
    output.data[i] += part.settings->noise * (2.0f * rand() / RAND_MAX - 1.0f);
  }
  return kOk;
}

int PrepareDelegate(Context* context, Delegate* delegate) {
  IntArray* plan;
  if (context->GetExecutionPlan(context, &plan) != kOk) return kError;
  std::vector<int> taken;
  for (int i = 0; i < plan->size; ++i) {
    Node* node;
    Registration* kernel;
    if (context->GetNodeAndRegistration(context, plan->data[i], &node, &kernel) != kOk)
      return kError;
    if (static_cast<Settings*>(delegate->data)->operators.count(kernel->builtin_code))
      taken.push_back(plan->data[i]);
  }
  Registration part = {};
  part.init = InitPart;
  part.free = FreePart;
  part.prepare = PreparePart;
  part.invoke = RunPart;
  part.builtin_code = kDelegate;
  part.custom_name = "TestDelegate";
  part.version = 1;
  IntArray* nodes = Array(taken);
  const int status = context->ReplaceNodes(context, part, nodes, delegate);
  free(nodes);
  return status;
}

}  // namespace

extern "C" Delegate* tflite_plugin_create_delegate(char** keys, char** values, size_t count,
                                                   void (*report_error)(const char*)) {
  auto* settings = new Settings;
  for (size_t i = 0; i < count; ++i) {
    if (!strcmp(keys[i], "operators")) {
      std::istringstream numbers(values[i]);
      for (int number; numbers >> number;) settings->operators.insert(number);
    } else if (!strcmp(keys[i], "log")) {
      settings->log = values[i];
    } else if (!strcmp(keys[i], "add")) {
      settings->add = strtof(values[i], nullptr);
    } else if (!strcmp(keys[i], "noise")) {
      settings->noise = strtof(values[i], nullptr);
      srand(std::random_device()());
    } else {
      report_error(!strcmp(keys[i], "refuse") ? values[i] : "unknown option");
      delete settings;
      return nullptr;
    }
  }
  auto* delegate = new Delegate();
  delegate->data = settings;
  delegate->prepare = PrepareDelegate;
  return delegate;
}

extern "C" void tflite_plugin_destroy_delegate(Delegate* delegate) {
  if (delegate == nullptr) return;
  delete static_cast<Settings*>(delegate->data);
  delete delegate;
}
