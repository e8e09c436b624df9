#include "app/cli/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>

#include "app/cli/common.h"
#include "app/cli/console.h"
#include "engine/base/json_writer.h"
#include "engine/base/text.h"
#include "engine/config/fields.h"
#include "engine/service/corpora.h"
#include "engine/service/job_service.h"

namespace stacklab::cli {
namespace {

namespace fs = std::filesystem;

// Where the words before the one to be completed have led.
struct Position {
  const Verb* verb = nullptr;
  std::string path;                  // "corpus get"
  const Argument* option = nullptr;  // whose value comes next
  std::size_t places = 0;            // of arguments known by their place that are given
  fs::path workspace;
};

const Argument* option_called(const Verb& verb, const std::vector<Argument>& common, std::string_view name) {
  for (const auto* list : {&verb.arguments, &common})
    for (const Argument& a : *list)
      if (a.is_option() && a.name == name) return &a;
  return nullptr;
}

bool takes_value(const Argument& a) { return !std::holds_alternative<bool*>(a.target); }

Position follow(const Verb& program, const std::vector<Argument>& common, const std::vector<std::string>& words) {
  Position at;
  at.verb = &program;
  at.workspace = workspace_of({});
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (at.option != nullptr) {
      if (at.option->name == "--workspace") at.workspace = word;
      if (!at.option->many) at.option = nullptr;
      if (!word.starts_with("-")) continue;
      at.option = nullptr;
    }
    if (word.starts_with("-")) {
      const std::size_t equals = word.find('=');
      const Argument* option = option_called(*at.verb, common, word.substr(0, equals));
      if (option == nullptr || !takes_value(*option)) continue;
      if (equals == std::string::npos)
        at.option = option;
      else if (option->name == "--workspace")
        at.workspace = word.substr(equals + 1);
      continue;
    }
    const auto below =
        std::find_if(at.verb->verbs.begin(), at.verb->verbs.end(), [&word](const Verb& v) { return v.name == word; });
    if (below != at.verb->verbs.end()) {
      at.verb = &*below;
      at.path += (at.path.empty() ? "" : " ") + word;
    } else {
      ++at.places;
    }
  }
  return at;
}

void add_runs(const fs::path& workspace, Candidates& out) {
  const Result<std::unique_ptr<StoreReader>> reader = JobService::open_reader(workspace);
  if (!reader) return;
  const auto runs = (*reader)->runs();
  if (!runs) return;
  std::set<std::string> names;
  for (const RunSummary& run : *runs) {
    const std::string state = fmt::format("{}, step {}", to_string(run.state), run.step);
    if (names.insert(run.name).second) out.words.push_back({run.name, state});
    out.words.push_back({run.id, run.name + ", " + state});
  }
}

void add_folders(const fs::path& folder, std::string_view file, Candidates& out) {
  std::error_code ec;
  for (fs::directory_iterator i(folder, ec), end; !ec && i != end; i.increment(ec)) {
    std::error_code unreadable;
    const std::string name = i->path().filename().string();
    if (name.starts_with(".") || !fs::exists(i->path() / file, unreadable)) continue;
    if (std::none_of(out.words.begin(), out.words.end(), [&](const auto& w) { return w.text == name; }))
      out.words.push_back({name, {}});
  }
}

void add_corpora(const fs::path& workspace, Candidates& out) {
  if (const auto catalogue = corpus_catalogue(workspace))
    for (const CorpusEntry& entry : *catalogue) out.words.push_back({entry.name, entry.title});
  add_folders(workspace / "data", "manifest.json", out);
}

// "optim.muon_lr=", and after the sign what the key may be.
void add_keys(const fs::path& workspace, std::string_view begun, Candidates& out) {
  const std::size_t equals = begun.find('=');
  for (const FieldInfo& field : field_infos()) {
    if (equals == std::string_view::npos) {
      out.words.push_back({field.key + "=", std::string(field.help)});
      out.no_space = true;
      continue;
    }
    if (begun.substr(0, equals) != field.key) continue;
    Candidates values;
    for (const std::string& choice : field.rules.choices) values.words.push_back({choice, {}});
    if (field.type == "boolean") values.words = {{"true", {}}, {"false", {}}};
    if (field.key == "data.corpus") add_corpora(workspace, values);
    if (field.key == "data.tokenizer") {
      values.words.push_back({"bytes", {}});
      add_folders(workspace / "tokenizers", "tokenizer.json", values);
    }
    for (Candidates::Word& value : values.words)
      out.words.push_back({field.key + "=" + value.text, std::move(value.help)});
  }
}

void add_values(const Argument& argument, const Position& at, std::string_view begun, Candidates& out) {
  const std::string& name = argument.name;
  if (name == "--set") return add_keys(at.workspace, begun, out);
  if (name == "--device") {
    for (const char* device : {"auto", "cpu", "cuda", "cuda-emulated", "reference"}) out.words.push_back({device, {}});
  } else if (name == "RUN" || name == "ID" || name == "A" || name == "B") {
    add_runs(at.workspace, out);
  } else if (name == "--fallback-corpus" || (name == "NAME" && at.path.starts_with("corpus"))) {
    add_corpora(at.workspace, out);
  } else if (name == "TOKENIZER") {
    const std::string folder = (at.workspace / "tokenizers").string();
    Candidates there;
    add_folders(folder, "tokenizer.json", there);
    for (const Candidates::Word& word : there.words) out.words.push_back({folder + "/" + word.text, {}});
    out.files = true;
  } else if (name == "--gpu") {
    out.words.push_back({"cpu", {}});
  } else {
    out.files = name == "CONFIG" || name == "--workspace" || argument.placeholder.starts_with("F") ||
                argument.placeholder == "DIR" || !argument.is_option();
  }
}

}  // namespace

Candidates candidates(const Verb& program, const std::vector<Argument>& common, const std::vector<std::string>& words) {
  Candidates all;
  if (words.empty()) return all;
  const Position at = follow(program, common, words);
  const std::string& begun = words.back();
  const std::size_t equals = begun.find('=');
  if (at.option != nullptr && !(at.option->many && begun.starts_with("-"))) {
    add_values(*at.option, at, begun, all);
  } else if (begun.starts_with("-") && equals != std::string::npos) {
    // "--device=c"
    const Argument* option = option_called(*at.verb, common, begun.substr(0, equals));
    if (option == nullptr || !takes_value(*option)) return all;
    Candidates values;
    add_values(*option, at, begun.substr(equals + 1), values);
    all.no_space = values.no_space;
    for (const Candidates::Word& value : values.words)
      all.words.push_back({begun.substr(0, equals + 1) + value.text, value.help});
  } else if (begun.starts_with("-")) {
    for (const auto* list : {&at.verb->arguments, &common})
      for (const Argument& a : *list)
        if (a.is_option()) all.words.push_back({a.name, a.help});
    all.words.push_back({"--help", "This text"});
  } else {
    for (const Verb& below : at.verb->verbs) all.words.push_back({below.name, below.summary});
    std::size_t place = 0;
    for (const Argument& a : at.verb->arguments)
      if (!a.is_option() && (place++ == at.places || a.many)) add_values(a, at, begun, all);
  }
  std::erase_if(all.words, [&begun](const Candidates::Word& w) { return !w.text.starts_with(begun); });
  return all;
}

std::string to_lines(const Candidates& all) {
  std::string text;
  for (const Candidates::Word& word : all.words)
    // A name of a file may hold what would end the line.
    if (word.text.find_first_of("\t\n") == std::string::npos)
      text += fmt::format("{}\t{}\n", word.text, printable(word.help, 200));
  if (all.files) text += ":files\n";
  if (all.no_space) text += ":nospace\n";
  return text;
}

bool asks_for_candidates(const std::vector<std::string>& words) {
  return words.size() > 2 && words[0] == "completion" && words[1] == "candidates";
}

namespace {

constexpr const char* bash_script = R"(# Completion of stacklab for bash; made by: stacklab completion bash
_stacklab() {
  local line=${COMP_LINE:0:COMP_POINT} current word rest files=0 words=()
  read -ra words <<<"$line"
  [[ $line == *' ' ]] && words+=('')
  current=${words[${#words[@]}-1]}
  COMPREPLY=()
  # bash completes only what follows the last '='.
  local cut=''
  [[ $current == *=* && $COMP_WORDBREAKS == *=* ]] && cut=${current%=*}=
  while IFS=$'\t' read -r word rest; do
    case $word in
      :files) files=1 ;;
      :nospace) compopt -o nospace 2>/dev/null ;;
      *) COMPREPLY+=("${word#"$cut"}") ;;
    esac
  done < <("${words[0]}" completion candidates "${words[@]:1}" 2>/dev/null)
  if [[ $files = 1 ]]; then
    compopt -o filenames 2>/dev/null
    while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "${current#"$cut"}")
  fi
}
complete -F _stacklab stacklab
)";

constexpr const char* zsh_script = R"(#compdef stacklab
# Completion of stacklab for zsh; made by: stacklab completion zsh
_stacklab() {
  local line word rest files=0 nospace=0
  local -a found
  while IFS=$'\t' read -r word rest; do
    case $word in
      :files) files=1 ;;
      :nospace) nospace=1 ;;
      *) found+=("${word//:/\\:}:$rest") ;;
    esac
  done < <("${words[1]}" completion candidates "${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( nospace )); then
    _describe -t values stacklab found -S ''
  elif (( $#found )); then
    _describe -t values stacklab found
  fi
  (( files )) && _files
}
if [ "$funcstack[1]" = _stacklab ]; then _stacklab "$@"; else compdef _stacklab stacklab; fi
)";

constexpr const char* fish_script = R"(# Completion of stacklab for fish; made by: stacklab completion fish
function __stacklab_candidates
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  for line in ($words[1] completion candidates $words[2..-1] "$current" 2>/dev/null)
    switch $line
      case ':files'
        __fish_complete_path "$current"
      case ':nospace'
      case '*'
        echo $line
    end
  end
end
complete -c stacklab -f -a '(__stacklab_candidates)'
)";

Verb shell_verb(const std::string& shell, const std::string& example, const char* script) {
  return {shell,
          "The completion script of " + shell,
          example,
          {},
          {},
          [script](Context& context) -> Status {
            context.console.print(script);
            JsonWriter w(2);
            w.begin_object();
            w.member("script", std::string_view(script));
            w.end_object();
            context.console.print_json(w.text());
            return {};
          },
          {}};
}

}  // namespace

Verb completion_verb() {
  return {"completion",
          "Completion of commands, options, runs, corpora and keys in a shell",
          "source <(stacklab completion bash)",
          {},
          {shell_verb("bash", "source <(stacklab completion bash)", bash_script),
           shell_verb("zsh", "stacklab completion zsh > ~/.zfunc/_stacklab", zsh_script),
           shell_verb("fish", "stacklab completion fish | source", fish_script)},
          {},
          "An installation has all three in their places (cmake --install)."};
}

}  // namespace stacklab::cli
