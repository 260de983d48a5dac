package dev.oxbow.sample;

import dev.oxbow.Cancellation;
import dev.oxbow.TextListener;

/** One text on its way: counts its pieces and hands them on. */
final class Writing implements TextListener {
    interface Screen {
        void show(String piece, double piecesPerSecond);
    }

    final Cancellation cancellation = new Cancellation();
    private final Screen screen;
    private long firstPiece;
    private long pieces;

    Writing(Screen screen) {
        this.screen = screen;
    }

    void cancel() {
        cancellation.cancel();
    }

    @Override
    public boolean onText(String piece) {
        long now = System.nanoTime();
        if (pieces++ == 0) {
            firstPiece = now;
        }
        double seconds = (now - firstPiece) * 1e-9;
        screen.show(piece, seconds > 0.0 ? (pieces - 1) / seconds : 0.0);
        return true;
    }
}
