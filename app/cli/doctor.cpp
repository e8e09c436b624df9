#include <fmt/format.h>

#include <algorithm>

#include "app/cli/common.h"
#include "app/cli/console.h"
#include "engine/base/text.h"
#include "engine/service/system_info.h"

namespace stacklab::cli {
namespace {

std::string as_json(const SystemInfo& info) {
  JsonWriter w(2);
  const auto list = [&w](std::string_view name, const std::vector<std::string>& items) {
    w.key(name);
    w.begin_array();
    for (const std::string& item : items) w.value(item);
    w.end_array();
  };
  w.begin_object();
  w.member("version", info.version);
  w.member("commit", info.commit);
  w.member("compiler", info.compiler);
  w.member("os", info.os);
  w.member("cpu", info.cpu);
  w.member("threads", info.threads);
  w.member("isa", info.isa);
  w.member("memory_total", info.memory_total);
  w.member("memory_free", info.memory_free);
  w.member("disk_free", info.disk_free);
  list("gpus", info.gpus);
  w.member("gpu_note", info.gpu_note);
  list("devices", info.devices);
  w.key("toolkit");
  w.null();  // built without CUDA
  w.key("libraries");
  w.begin_object();
  for (const auto& [name, version] : info.libraries) w.member(name, version);
  w.end_object();
  w.member("fingerprint", info.fingerprint);
  w.key("environment");
  w.begin_object();
  for (const auto& [field, value] : info.environment.fields) w.member(field, value);
  w.end_object();
  w.end_object();
  return w.text();
}

std::string as_text(const SystemInfo& info, const std::filesystem::path& workspace) {
  std::string libraries;
  for (const auto& [name, version] : info.libraries)
    libraries += (libraries.empty() ? "" : ", ") + name + " " + version;
  std::string text;
  const auto line = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("{:<12} {}\n", name, value);
  };
  line("Stacklab", fmt::format("{} ({}, {})", info.version, info.commit, info.compiler));
  line("System", info.os);
  line("Processor", fmt::format("{}, {} threads, {}", info.cpu, info.threads, info.isa));
  line("Memory", fmt::format("{}, {} free", format_bytes(static_cast<double>(info.memory_total)),
                             format_bytes(static_cast<double>(info.memory_free))));
  line("Disk", info.disk_free < 0 ? "unknown"
                                  : fmt::format("{} free at {}", format_bytes(static_cast<double>(info.disk_free)),
                                                workspace.string()));
  line("GPU", info.gpu_note);
  line("Devices", fmt::format("{}", fmt::join(info.devices, ", ")));
  line("Toolkit", "none: built without CUDA");
  line("Libraries", libraries);
  line("Fingerprint", info.fingerprint);
  return text;
}

}  // namespace

Verb doctor_verb() {
  return {"doctor",
          "Hardware, libraries, free memory and disk, and the fingerprint that decides a result's bits",
          "stacklab doctor --json",
          {},
          {},
          [](Context& context) -> Status {
            const std::filesystem::path workspace = workspace_of(context.common);
            const SystemInfo info = system_info(workspace);
            context.console.print(as_text(info, workspace));
            context.console.print_json(as_json(info));
            return {};
          },
          {}};
}

}  // namespace stacklab::cli
