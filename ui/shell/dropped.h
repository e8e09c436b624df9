// What a file or folder is that was dropped on the window, and what can be done with it.
#pragma once

#include <QString>

#include "engine/run/run.h"

namespace stacklab::ui {

struct Dropped {
  enum class Kind { missing, config, workspace, checkpoint, model, tokenizer, corpus, text, unknown };
  Kind kind = Kind::unknown;
  QString path;
  qint64 bytes = 0;
  RunId run;               // of a checkpoint: the run that its folder names
  std::int64_t step = -1;  // of a checkpoint
};

// Looks at names and at the first bytes. May wait for a disk: not for the window's thread.
Dropped classify(const QString& path);
// From the name alone, while something hangs over the window.
QString drop_hint(const QString& path);

// One bold sentence of fact, one of help.
struct DropAnswer {
  QString fact, help;
};
DropAnswer answer_for(const Dropped& dropped);

}  // namespace stacklab::ui
