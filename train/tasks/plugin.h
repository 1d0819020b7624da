#pragma once
/// For plugins: registers a task by name (docs/PLUGINS.md). At namespace scope of a source file:
///
///   HEED_TASK("mine.words", WordsTask, .help = "a label for each word",
///             .architecture = heed::Architecture::encoder, .metrics = {heed::Metric::loss})
///
/// WordsTask is derived from heed::Task and constructed from a Config; the other arguments
/// initialise members of TaskInfo. Tasks run with real = float only: pass their files to
/// heed_add_plugin under TASKS.
#include "nn/layers/plugin.h"
#include "train/tasks/task.h"

#ifdef HEED_DOUBLE
#error "tasks run with real = float only: pass this file to heed_add_plugin under TASKS"
#endif

#define HEED_TASK(task_name, Type, ...)                                                        \
  HEED_PLUGIN_ENTRY("task", task_name, false, ::heed::TaskInfo info{__VA_ARGS__};              \
                    info.name = task_name;                                                     \
                    ::heed::add_task(registered_name, info, [](const ::heed::Config& config) { \
                      return std::unique_ptr<::heed::Task>(std::make_unique<Type>(config));    \
                    }))
