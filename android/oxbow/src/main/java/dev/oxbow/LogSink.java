package dev.oxbow;

/** A listener as the native side sees it. */
final class LogSink {
    private final LogListener listener;

    LogSink(LogListener listener) {
        this.listener = listener;
    }

    /** Called by native code, which drops what it throws. */
    private void onLine(int level, byte[] line) {
        listener.onLine(LogLevel.of(level), Text.decode(line));
    }
}
