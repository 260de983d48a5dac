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

    /**
     * Whether a file is mapped or read.
     *
     * @param how mapped unless set
     * @return this
     */
    public OpenOptions access(Access how) {
        access = Objects.requireNonNull(how);
        return this;
    }

    /**
     * Whether all pages are asked for at once, in the background, instead of one by one in the first run.
     *
     * @param on off unless set
     * @return this
     */
    public OpenOptions prefetch(boolean on) {
        prefetch = on;
        return this;
    }

    /**
     * Whether {@link Model#checkWeights} is part of opening.
     *
     * @param on off unless set
     * @return this
     */
    public OpenOptions checkWeights(boolean on) {
        checkWeights = on;
        return this;
    }

    /**
     * Where {@link Access#READ} reads to.
     *
     * @param buffer a direct one; what lies between position and limit begins at an address aligned to 64 (see {@link
     *     DirectBuffers#allocate}), has as many bytes as the file and is the model's until it is closed
     * @return this
     */
    public OpenOptions memory(ByteBuffer buffer) {
        DirectBuffers.checkWritable(buffer, "the memory for the file");
        memory = buffer;
        return this;
    }

    /**
     * Who hears what happens to the model, its sessions and generators.
     *
     * @param listener nobody unless set
     * @return this
     */
    public OpenOptions log(LogListener listener) {
        log = Objects.requireNonNull(listener);
        return this;
    }

    /**
     * The session that will be created. Opening plans one anyway: this one is then not planned again, and a backend
     * that cannot be had is told at once.
     *
     * @param planned its options; a lender is refused
     * @return this
     */
    public OpenOptions session(SessionOptions planned) {
        session = Objects.requireNonNull(planned);
        return this;
    }
}
