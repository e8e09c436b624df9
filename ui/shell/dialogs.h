// The small dialogs of the shell: keys and gestures, about, and questions with one answer or two.
#pragma once

#include <QDialog>
#include <QStringList>
#include <functional>

#include "ui/models/snapshot.h"

namespace stacklab::ui {

class ActionSet;

// Read off the actions, in the order of these menus; others follow.
QDialog* make_cheat_sheet(const ActionSet& actions, const QStringList& menu_order, QWidget* parent);

// Versions, licences and what can change the bits of a run; info may be null.
QDialog* make_about(const SystemInfo* info, QWidget* parent);
QString about_text(const SystemInfo& info);  // what its button copies

// A sentence of fact, one of help, and a button that does it; without `action`, only one that closes.
QDialog* make_question(const QString& fact, const QString& help, const QString& action, std::function<void()> call,
                       QWidget* parent);

}  // namespace stacklab::ui
