// What could stand next on a command line, for the shells.
#pragma once

#include <string>
#include <vector>

#include "app/cli/verb.h"

namespace stacklab::cli {

struct Candidates {
  struct Word {
    std::string text, help;
  };
  std::vector<Word> words;
  bool files = false;     // names of files may stand there too
  bool no_space = false;  // a word is not whole: a key that wants its value
};

// words: those of the command line without the program's name; the last one, perhaps empty, is to be completed. From
// the tree of verbs alone, and where names of runs, corpora, tokenizers or keys are wanted, from the workspace.
Candidates candidates(const Verb& program, const std::vector<Argument>& common, const std::vector<std::string>& words);

// One a line: "word<TAB>help"; then ":files" and ":nospace" where they hold. What the scripts of the shells read.
std::string to_lines(const Candidates& candidates);

Verb completion_verb();

// The words of `stacklab completion candidates ...`, which are not to be parsed.
bool asks_for_candidates(const std::vector<std::string>& words);

}  // namespace stacklab::cli
