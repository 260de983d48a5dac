#include "tools/interrupt.h"

#include <signal.h>

namespace oxbow::tools {
namespace {

volatile sig_atomic_t interrupted = 0;

}  // namespace

void stop_on_interrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = 1; };
  // Reads begin anew: a text from a pipe is not lost to a signal.
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  ::sigaction(SIGINT, &action, nullptr);
}

bool stop_wanted() { return interrupted != 0; }

void forget_interrupt() {
  interrupted = 0;
  stop_on_interrupt();
}

}  // namespace oxbow::tools
