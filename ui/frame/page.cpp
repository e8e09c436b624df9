#include "ui/frame/page.h"

#include <moc_page.cpp>
