package dev.oxbow;

import java.nio.ByteBuffer;
import java.util.Objects;

/** How a model is opened. Read while it is. */
public final class OpenOptions {
    Access access = Access.MAP;
    boolean prefetch;
    boolean checkWeights;
    /** Null: the library allocates. */
    ByteBuffer memory;
    /** Null: no log. */
    LogListener log;
    /** Null: the default ones. */
    SessionOptions session;

    /** Whether a file is mapped, as it is unless this is set, or read. */
    public OpenOptions access(Access how) {
        access = Objects.requireNonNull(how);
        return this;
    }

    /** Whether all pages are asked for at once, in the background, instead of one by one in the first run. Off. */
    public OpenOptions prefetch(boolean on) {
        prefetch = on;
        return this;
    }

    /** Whether {@link Model#checkWeights} is part of opening. Off. */
    public OpenOptions checkWeights(boolean on) {
        checkWeights = on;
        return this;
    }

    /**
     * Where {@link Access#READ} reads to: the bytes between position and limit of this direct buffer, which begin at an
     * address aligned to 64 (see {@link DirectBuffers#allocate}), are as many as the file has and are the model's until it
     * is closed.
     */
    public OpenOptions memory(ByteBuffer buffer) {
        DirectBuffers.checkWritable(buffer, "the memory for the file");
        memory = buffer;
        return this;
    }

    /** Who hears what happens to the model, its sessions and generators. Nobody unless set. */
    public OpenOptions log(LogListener listener) {
        log = Objects.requireNonNull(listener);
        return this;
    }

    /**
     * The options of the session that will be created. Opening plans a session anyway: one with these options is not
     * planned again, and a backend that cannot be had is told at once. A lender is refused.
     */
    public OpenOptions session(SessionOptions planned) {
        session = Objects.requireNonNull(planned);
        return this;
    }
}
