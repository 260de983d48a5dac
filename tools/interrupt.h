#pragma once

// Ctrl-C while a command works: it ends what it does after the current token and tells what it has.

namespace oxbow::tools {

/// Exit code of a command that somebody interrupted, as shells give it.
inline constexpr int kExitInterrupted = 130;

/// From now on the first Ctrl-C makes stop_wanted() true; the second ends the program.
void stop_on_interrupt();
bool stop_wanted();
/// Forgets the first one and waits for another.
void forget_interrupt();

}  // namespace oxbow::tools
