// Whether everything in a widget can be heard of, and reached by the keyboard.
#pragma once

#include <QAbstractButton>
#include <QAccessible>
#include <QStackedWidget>
#include <set>

#include "tests/ui/ui_test.h"

namespace stacklab::ui {

// What can take the focus in it has a name for those who hear the screen.
inline void expect_names(QWidget* in, const char* where) {
  QList<QWidget*> all = in->findChildren<QWidget*>();
  all.append(in);
  int controls = 0;
  for (QWidget* widget : all) {
    if (!widget->isVisible() || widget->focusPolicy() == Qt::NoFocus) continue;
    if (qobject_cast<const QStackedWidget*>(widget)) continue;
    const QAccessibleInterface* face = QAccessible::queryAccessibleInterface(widget);
    ASSERT_NE(face, nullptr);
    EXPECT_FALSE(face->text(QAccessible::Name).isEmpty())
        << where << ": " << widget->metaObject()->className() << " " << widget->objectName().toStdString();
    ++controls;
  }
  EXPECT_GT(controls, 0) << where;
}

// Every control that Tab should reach is reached by pressing it, and in the end one is back.
inline void expect_tab_reaches_all(QWidget* in, const char* where) {
  std::set<const QWidget*> wanted, reached;
  for (const QWidget* widget : in->findChildren<QWidget*>()) {
    if (!widget->isVisible() || !widget->isEnabled() || widget->window() != in->window()) continue;
    if (!(widget->focusPolicy() & Qt::TabFocus) || widget->focusProxy()) continue;
    // One of a group of exclusive buttons stands for all; arrows go on from there.
    const auto* button = qobject_cast<const QAbstractButton*>(widget);
    if (button && button->autoExclusive() && !button->isChecked()) continue;
    wanted.insert(widget);
  }
  QWidget* at = nullptr;
  for (std::size_t i = 0; i < wanted.size() + 20; ++i) {
    QTest::keyClick(in->window(), Qt::Key_Tab);
    at = in->window()->focusWidget();
    if (at) reached.insert(at);
  }
  for (const QWidget* widget : wanted)
    EXPECT_TRUE(reached.count(widget)) << where << ": " << widget->metaObject()->className() << " "
                                       << widget->objectName().toStdString() << " "
                                       << widget->accessibleName().toStdString();
}

}  // namespace stacklab::ui
