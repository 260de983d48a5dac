package dev.oxbow;

import androidx.annotation.WorkerThread;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;

/** What can be saved and gone on with later, by this process or another: a {@link Session} or a {@link Generator}. */
public abstract class Resumable extends NativeObject {
    Resumable() {}

    /** {@return bytes of a saved state} The same at every position of the stream. */
    public abstract long getStateBytes();

    /**
     * Writes the state, with a checksum.
     *
     * @param state a direct buffer, from its position on
     */
    @WorkerThread
    public abstract void save(ByteBuffer state);

    /**
     * Goes on where {@link #save} was called. A state that is refused changes nothing.
     *
     * @param state a direct buffer; what lies between position and limit is that state
     */
    @WorkerThread
    public abstract void load(ByteBuffer state);

    /** {@return the state as an array} */
    @WorkerThread
    public final byte[] save() {
        ByteBuffer state = stateNow();
        byte[] bytes = new byte[state.remaining()];
        state.get(bytes);
        return bytes;
    }

    /**
     * Goes on with a state that is an array.
     *
     * @param bytes what {@link #save()} gave
     */
    @WorkerThread
    public final void load(byte[] bytes) {
        ByteBuffer state = DirectBuffers.allocate(bytes.length);
        state.put(bytes);
        state.flip();
        load(state);
    }

    /**
     * Writes the state to a file, which is replaced as a whole or, with an exception, not at all.
     *
     * @param file where to
     * @throws IOException when it cannot be written
     */
    @WorkerThread
    public final void save(File file) throws IOException {
        WholeFile.write(file, stateNow());
    }

    /**
     * Goes on with the state in a file.
     *
     * @param file where from
     * @throws IOException when it cannot be read
     */
    @WorkerThread
    public final void load(File file) throws IOException {
        load(WholeFile.read(file));
    }

    private ByteBuffer stateNow() {
        ByteBuffer state = DirectBuffers.allocate(Math.toIntExact(getStateBytes()));
        save(state);
        return state;
    }
}
