// golden_tests [DIR] [--device NAME] [--dtype fp64|fp32|bf16] [--break FAULT]
// Runs every case below a folder on every backend and type, one line each. Exit code 0 when all passed, 1 when one
// failed or none ran.
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/golden_tests/golden.h"

namespace stacklab::golden {
namespace {

namespace fs = std::filesystem;

struct Options {
  fs::path folder;
  std::string device, dtype, fault;
};

int usage(const std::string& why) {
  std::string faults;
  for (const std::string& f : fault_names()) faults += (faults.empty() ? "" : "|") + f;
  fmt::print(
      stderr,
      "golden_tests: {}\nusage: golden_tests [DIR] [--device reference|cpu] [--dtype fp64|fp32|bf16] [--break {}]\n",
      why, faults);
  return 2;
}

// Folders of cases for rooms that this program does not test (yet).
std::string other_room(const std::string& name) {
  static const std::map<std::string, std::string> rooms = {
      {"align", "objectives after pretraining are not built yet"},
      {"decode", "decoding is not built yet"},
      {"eval", "evaluation is not built yet"},
      {"interop", "interchange is not built yet"},
      {"quant", "quantisation is not built yet"},
      {"scaling", "scaling studies are not built yet"},
      {"tokenizer", "the tokenizer has tests of its own"},
      {"malformed", "files to be refused have tests of their own"}};
  const auto at = rooms.find(name.substr(0, name.find('/')));
  return at == rooms.end() ? std::string() : at->second;
}

// The folder that says what a case is about: the one that it lies in.
std::string folder_of(const fs::path& relative, const fs::path& folder) {
  const fs::path parent = relative.parent_path();
  return (parent.empty() ? folder : parent).filename().string();
}

// Folders whose cases this program runs.
bool known_folder(const std::string& name) { return name == "model" || name == "ops" || name == "optim"; }

// Every file that is a case, or half of one, as "folder/name" below the folder (or beginning with its own name), in
// order.
std::vector<std::string> case_names(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const fs::path relative = entry.path().lexically_relative(folder);
    if (!entry.is_regular_file()) continue;
    const fs::path extension = entry.path().extension();
    // Files without a folder stand for cases where the folder itself is one of kinds.
    const bool direct = relative.begin() == std::prev(relative.end());
    if (direct && !known_folder(folder.filename().string())) continue;
    if (extension == ".json" || (extension == ".safetensors" && known_folder(folder_of(relative, folder))))
      names.insert((relative.parent_path() / relative.stem()).generic_string());
  }
  return {names.begin(), names.end()};
}

const Kind* kind_of(const std::string& name, const std::vector<Kind>& kinds) {
  const Kind* best = nullptr;
  for (const Kind& k : kinds)
    if (name.starts_with(k.prefix) && (!best || k.prefix.size() > best->prefix.size())) best = &k;
  return best;
}

Case load(const fs::path& folder, const std::string& name) {
  Case c;
  c.name = name;
  c.json_path = folder / (name + ".json");
  if (!fs::exists(c.json_path)) throw std::runtime_error(c.json_path.filename().string() + " is missing");
  std::ifstream in(c.json_path);
  c.document = std::make_shared<const nlohmann::json>(nlohmann::json::parse(in));
  const fs::path tensors = folder / (name + ".safetensors");
  if (fs::exists(tensors)) {
    auto opened = Safetensors::open(tensors);
    if (!opened) throw std::runtime_error(opened.error().message());
    c.tensors = std::move(*opened);
  }
  return c;
}

struct Totals {
  int passed = 0, failed = 0, skipped = 0;
};

void run_case(const fs::path& folder, const std::string& name, const std::vector<Kind>& kinds,
              const std::vector<std::pair<std::string, Setup>>& setups, Totals& totals) {
  const auto skip = [&](const std::string& reason) {
    fmt::print("SKIP {} {}\n", name, reason);
    ++totals.skipped;
  };
  // "model/plain", however deep the folder lies.
  const fs::path path = name;
  const std::string short_name = folder_of(path, folder) + "/" + path.filename().string();
  const Kind* kind = kind_of(short_name, kinds);
  if (!kind) {
    std::string room = other_room(name);
    if (room.empty()) room = other_room(short_name);
    if (!room.empty()) return skip(room);
    fmt::print("FAIL {} is of no known kind\n", name);
    ++totals.failed;
    return;
  }
  if (!kind->skip.empty()) return skip(kind->skip);
  try {
    const Case c = load(folder, name);
    if (const std::string reason = missing_mixer(c); !reason.empty()) return skip(reason);
    for (const auto& [label, setup] : setups) {
      if (setup.mixed && (!kind->in_mixed_precision || c.measured_bf16("loss") < 0)) continue;
      Comparison comparison;
      kind->run(c, setup, comparison);
      fmt::print("{} {} [{}] {}\n", comparison.passed() ? "PASS" : "FAIL", name, label, comparison.summary());
      ++(comparison.passed() ? totals.passed : totals.failed);
    }
  } catch (const std::exception& e) {
    fmt::print("FAIL {} {}\n", name, e.what());
    ++totals.failed;
  }
}

// The same in a process of its own, which may use so much time and memory: a case that no program survives is one that
// fails, and the others are still run.
void run_case_apart(const fs::path& folder, const std::string& name, const std::vector<Kind>& kinds,
                    const std::vector<std::pair<std::string, Setup>>& setups, Totals& totals) {
  constexpr rlim_t most_seconds = 120;
  std::fflush(stdout);
  int channel[2];
  if (pipe(channel) != 0) throw std::runtime_error("pipe: " + std::string(std::strerror(errno)));
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork: " + std::string(std::strerror(errno)));
  if (child == 0) {
    close(channel[0]);
    const rlimit time = {most_seconds, most_seconds}, no_core = {0, 0};
    setrlimit(RLIMIT_CPU, &time);
    setrlimit(RLIMIT_CORE, &no_core);
    Totals mine;
    run_case(folder, name, kinds, setups, mine);
    std::fflush(stdout);
    const bool told = write(channel[1], &mine, sizeof mine) == static_cast<ssize_t>(sizeof mine);
    _exit(told ? 0 : 1);
  }
  close(channel[1]);
  Totals mine;
  const bool whole = read(channel[0], &mine, sizeof mine) == static_cast<ssize_t>(sizeof mine);
  close(channel[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!whole) {
    const std::string how = WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "no word";
    fmt::print("FAIL {} ended its process: {}\n", name, how);
    mine = {0, 1, 0};
  }
  totals.passed += mine.passed, totals.failed += mine.failed, totals.skipped += mine.skipped;
}

int run(const Options& options) {
  std::vector<std::unique_ptr<Backend>> faulty;
  std::vector<std::pair<std::string, Setup>> setups;
  for (const std::string_view name : backend_names()) {
    if (!options.device.empty() && options.device != name) continue;
    const Backend* backend = find_backend(name);
    if (!options.fault.empty()) {
      faulty.push_back(with_fault(*backend, options.fault));
      if (!faulty.back()) return usage("unknown fault " + options.fault);
      backend = faulty.back().get();
    }
    const std::pair<const char*, Setup> types[] = {{"fp64", {backend, DType::f64, false}},
                                                   {"fp32", {backend, DType::f32, false}},
                                                   {"bf16", {backend, DType::f32, true}}};
    for (const auto& [label, setup] : types) {
      if (!options.dtype.empty() && options.dtype != label) continue;
      if (find_backend(name)->supports(setup.real)) setups.emplace_back(fmt::format("{} {}", name, label), setup);
    }
  }
  if (setups.empty()) {
    fmt::print("SKIP all: no backend of this build is {} {}\n", options.device, options.dtype);
    return options.fault.empty() ? 0 : 1;
  }
  std::vector<Kind> kinds = model_kinds();
  for (const auto& more : {op_kinds(), optim_kinds()}) kinds.insert(kinds.end(), more.begin(), more.end());
  Totals totals;
  for (const std::string& name : case_names(options.folder))
    run_case_apart(options.folder, name, kinds, setups, totals);
  if (totals.passed + totals.failed + totals.skipped == 0)
    fmt::print("There is no case below {}: folders called model, ops and optim hold them\n", options.folder.string());
  fmt::print("{} passed, {} failed, {} skipped\n", totals.passed, totals.failed, totals.skipped);
  return totals.failed == 0 && totals.passed > 0 ? 0 : 1;
}

}  // namespace
}  // namespace stacklab::golden

int main(int argc, char** argv) {
  using namespace stacklab::golden;
  Options options;
  const char* fixtures = std::getenv("STACKLAB_FIXTURES");
  options.folder = fixtures && *fixtures ? fixtures : STACKLAB_SOURCE_DIR "/tests/golden";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    std::string* value = word == "--device"  ? &options.device
                         : word == "--dtype" ? &options.dtype
                         : word == "--break" ? &options.fault
                                             : nullptr;
    if (value) {
      if (++i == argc) return usage(std::string(word) + " needs a value");
      *value = argv[i];
    } else if (word.starts_with("-")) {
      return usage("unknown option " + std::string(word));
    } else {
      options.folder = word;
    }
  }
  const auto one_of = [](const std::string& word, std::initializer_list<std::string_view> words) {
    return word.empty() || std::find(words.begin(), words.end(), word) != words.end();
  };
  if (!one_of(options.dtype, {"fp64", "fp32", "bf16"})) return usage("--dtype " + options.dtype + " is unknown");
  if (!one_of(options.device, {"reference", "cpu", "cuda", "cuda-emulated"}))
    return usage("--device " + options.device + " is unknown");
  options.folder = std::filesystem::weakly_canonical(options.folder);
  if (!std::filesystem::is_directory(options.folder)) return usage(options.folder.string() + " is not a folder");
  return run(options);
}
