#include "train/config/tasks.h"

namespace heed {

namespace {

/// Defined in this file, because a header would define another table in each plugin.
std::deque<TaskInfo>& table() {
  static std::deque<TaskInfo> rows = built_in_tasks();
  return rows;
}

}  // namespace

const std::deque<TaskInfo>& task_table() { return table(); }

OpenNames& open_names(TaskKind) {
  static OpenNames names("task", [] {
    std::vector<std::string_view> built_in;
    for (const TaskInfo& task : table()) built_in.push_back(task.name);
    return built_in;
  }());
  return names;
}

void add_task_info(const TaskInfo& info) { table().push_back(info); }

}  // namespace heed
